"""Waves of a run: killed workers, silent letters, released and delayed letters."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from reprocessing.models import Attempt, Letter, Run, Wave
from reprocessing.pipeline.outcomes import record_reports
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.pipeline.runs import drain
from reprocessing.store.ordering import lanes
from reprocessing.store.safety import waves
from tests.reprocessing.pipeline.bench import Clock, Workbench
from tests.reprocessing.pipeline.rulings import rule
from tests.stories.scene import lettered, published

pytestmark = pytest.mark.django_db(transaction=True)

WAVES: dict[str, Any] = {"waves": True, "max_attempts": 9, "backoff_base": 3_600, "backoff_jitter": "none"}
WINDOW, DAY = 1_000.0, 86_400.0


def _bury(bench: Workbench, letters: int) -> None:
    published(bench.sqs, bench.dlq_url, (lettered(f"{number}") for number in range(letters)))


def _waves() -> list[tuple[int | None, int | None, int | None]]:
    return list(Wave.objects.order_by("no").values_list("size", "sent", "failed"))


def test_a_dlq_without_waves_ends_the_waves_of_its_run() -> None:
    bench = Workbench(fields={**WAVES, "mode": "automatic"})
    bench.bury("letter")
    bench.capture()
    type(bench.dlq).objects.update(waves=False)
    _bury(bench, 12)
    bench.capture()
    assert (Run.objects.get().waves, _waves()) == (False, [(1, 0, 0)])
    assert bench.replay().taken == 13


@pytest.mark.soak
@pytest.mark.parametrize("sent", [True, False])
def test_a_wave_of_a_killed_worker_goes_on_with_the_same_letter(clock: Clock, *, sent: bool) -> None:
    bench = Workbench(fields={**WAVES, "backoff_base": 0})
    _bury(bench, 15)
    bench.capture()
    drain.start_run(bench.dlq, name="monday", asked_by="ann")
    bench.lose_worker(clock, sent=sent)
    bench.replay()
    assert (set(bench.states().values()), _waves()[0]) == ({"delivered"}, (1, 1, 0))


def test_a_wave_goes_on_when_an_earlier_letter_arrives(clock: Clock) -> None:
    keys = {"ordering_key": "attribute:key", "sequence": "attribute:n", "stale": "deliver"}
    bench = Workbench(fields={**WAVES, **keys, "backoff_base": 0, "mode": "automatic"})
    bench.bury("2", key="account", n="2")
    bench.capture()
    bench.replay_and_die(sent=False)
    bench.bury("1", key="account", n="1")
    bench.capture()
    assert bench.states() == {"1": "waiting", "2": "sending"}
    clock.advance(9)  # the dead worker's lease
    for _ in range(3):
        bench.replay()
        waves.judge_all_waves()
    assert (bench.states(), _waves()[:2]) == ({"1": "delivered", "2": "delivered"}, [(1, 1, 0), (1, 1, 0)])


def _one_of_ten_was_silent(clock: Clock) -> tuple[Workbench, int]:
    """A wave of ten: nine letters await their outcome, one is silent (its id is returned), and "next" waits."""
    bench = Workbench(
        fields={**WAVES, "backoff_base": 0, "mode": "automatic"},
        target_fields={"proof": "acknowledged", "advance": "settled", "window": WINDOW},
    )
    _captured(bench, "one", "other")
    bench.replay()
    _all_went_well(bench)
    bench.replay()
    assert _waves() == [(1, 1, 0), (10, None, None)]
    clock.advance(WINDOW / 2)
    _captured(bench, *(f"letter {number}" for number in range(9)))
    bench.replay()
    _captured(bench, "next")
    clock.advance(WINDOW / 2)
    bench.promote()
    assert Counter(bench.states().values()) == {"delivered": 1, "parked": 1, "awaiting": 9, "waiting": 1}
    return bench, bench.letter(state="parked").pk


def _captured(bench: Workbench, *bodies: str) -> None:
    bench.bury_all(*bodies)
    bench.capture()
    bench.capture()


def _all_went_well(bench: Workbench) -> None:
    ids = Attempt.objects.filter(letter__dlq=bench.dlq, closed_at=None).values_list("sent_message_id", flat=True)
    said = [{"message_id": message_id, "verdict": "delivered"} for message_id in ids]
    record_reports.record_json(said, reporter=None, dice=lambda: 0.0)


def _is(silent: int) -> str:
    return Letter.objects.get(pk=silent).state


@pytest.mark.soak
def test_a_wave_goes_on_with_a_released_silent_letter(clock: Clock) -> None:
    bench, silent = _one_of_ten_was_silent(clock)
    act_on_parked.release([silent], by="ann", reason="mended")
    _all_went_well(bench)
    bench.replay()
    assert (_is(silent), _waves()) == ("awaiting", [(1, 1, 0), (10, None, None)])
    _all_went_well(bench)
    bench.replay()
    assert _waves() == [(1, 1, 0), (10, 10, 0), (100, None, None)]
    assert (_is(silent), bench.states()["next"]) == ("delivered", "awaiting")


@pytest.mark.soak
def test_a_letter_released_for_tomorrow_delays_no_wave(clock: Clock) -> None:
    bench, silent = _one_of_ten_was_silent(clock)
    act_on_parked.release([silent], by="ann", reason="not today", due=lanes.database_now() + timedelta(seconds=DAY))
    _all_went_well(bench)
    bench.replay()
    assert _waves() == [(1, 1, 0), (10, 10, 0), (100, None, None)]
    assert (_is(silent), bench.states()["next"]) == ("waiting", "awaiting")
    clock.advance(DAY)
    bench.replay()
    assert (_is(silent), Attempt.objects.filter(wave__size=100).count()) == ("awaiting", 1)


@pytest.mark.soak
def test_a_letter_that_a_rule_delays_delays_no_wave(clock: Clock) -> None:
    bench = Workbench(fields={**WAVES, "backoff_base": 0, "mode": "automatic"})
    bench.bury("slow", tenant="slow")
    bench.capture()
    bench.replay_and_die(sent=False)
    rule("later", "delay", "attribute:tenant equals slow", delay=DAY)
    _captured(bench, "next")
    clock.advance(9)  # the dead worker's lease
    bench.replay()
    waves.judge_all_waves()
    bench.replay()
    assert bench.states() == {"slow": "waiting", "next": "delivered"}
    assert _waves() == [(1, 1, 0), (1, 1, 0), (10, None, None)]
