"""Changes during a turn apply to its next letters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reprocessing.models import Breaker, DeadLetter, Lane, RateClass
from reprocessing.pipeline.replay import replay_slice
from reprocessing.store.safety import send_limits
from tests.reprocessing.pipeline.bench import BRISK, Workbench, enqueued
from tests.reprocessing.pipeline.rulings import rule

pytestmark = pytest.mark.django_db(transaction=True)

AN_HOUR = 3_600.0


@pytest.fixture(autouse=True)
def _turns_that_look_once_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_slice, "_SEEN_FOR", AN_HOUR)


def test_no_letter_is_sent_under_old_rules() -> None:
    bench = enqueued(*map(str, range(6)), conf=replace(BRISK, intent_size=2))
    with bench.meanwhile(lambda: rule("none of them", "discard")):
        bench.replay()
    assert sorted(bench.states().values()) == ["delivered"] * 2 + ["discarded"] * 4
    assert len(bench.history()) == 2


def test_letters_go_on_after_the_last_rule_is_disabled() -> None:
    bench = Workbench(conf=replace(BRISK, intent_size=2))
    rule("all", "replay")
    bench.enqueue(*map(str, range(6)))
    with bench.meanwhile(lambda: rule("all", "replay", enabled=False)):
        bench.replay()
    assert bench.states() == {str(number): "delivered" for number in range(6)}


def test_a_new_breaker_delays_no_letter() -> None:
    bench = enqueued(*map(str, range(6)), conf=replace(BRISK, lanes_per_task=2, intent_size=1))
    with bench.meanwhile(lambda: _route_into_a_new_class(bench)):
        bench.replay(seconds=5)
    assert list(Lane.objects.exclude(why="").values_list("why", flat=True)) == []
    assert bench.states() == {str(number): "delivered" for number in range(6)}


def _route_into_a_new_class(bench: Workbench) -> None:
    slow = RateClass.objects.create(name="slow", rate=1_000)
    send_limits.make_breakers({(bench.target.pk, slow.pk)})
    DeadLetter.objects.filter(state="waiting").update(rate_class=slow)
    Lane.objects.filter(phase="ready").update(breaker=Breaker.objects.get(rate_class=slow))
