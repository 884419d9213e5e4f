"""A drain captures, plans, replays and proves outcomes in one process; repeating a run changes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings

from reprocessing.domain.errors import RunIdInUse
from reprocessing.domain.runs.selection import Selection
from reprocessing.gateways.redis.send_rate import Rates
from reprocessing.models import HealthCheck, Letter, Run
from reprocessing.models.safety import CheckKind
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.pipeline.runs import drain
from reprocessing.store.safety import health_checks
from reprocessing.store.safety.health_checks import CheckQuestion
from tests.reprocessing.pipeline.bench import KEYED, Workbench
from tests.reprocessing.pipeline.benches import parked
from tests.reprocessing.pipeline.rulings import rule

pytestmark = pytest.mark.django_db(transaction=True)


def _hands(bench: Workbench) -> drain.DrainContext:
    return drain.DrainContext(
        conf=bench.conf, rates=Rates.at(settings.REDIS_URL), dice=lambda: 0.0, owner="a drain", stop=lambda: False
    )


def _drained(bench: Workbench, limit: int | None = None) -> Run:
    drain.capture_dlq(bench.dlq, _hands(bench), on_progress=lambda _: None, seconds=10)
    run = drain.start_run(bench.dlq, name="run", asked_by="anna", selection=Selection(limit=limit))
    drain.replay_run(run, _hands(bench), on_progress=lambda _: None)
    return run


@pytest.mark.soak
def test_a_drain_needs_neither_worker_nor_beat_and_checks_the_health_of_its_target() -> None:
    bench = Workbench()
    health_checks.add_check(bench.target.pk, CheckQuestion(CheckKind.DEPTH, ceiling=0), by="ann", reason="why")
    bench.bury_all(*map(str, range(5)))
    run = _drained(bench)
    assert (len(bench.delivered()), bench.left()) == (5, 0)
    assert Run.objects.get(pk=run.pk).state == "finished"


@pytest.mark.soak
def test_a_drain_finds_the_outcome_of_letters_that_a_rule_sends_elsewhere() -> None:
    bench, other, consumed = Workbench(), Workbench(), list[dict[str, Any]]()
    other.judge_by_absence(window=0)
    rule("elsewhere", "divert", target=other.target)
    bench.bury("letter")
    drain.capture_dlq(bench.dlq, _hands(bench), on_progress=lambda _: None, seconds=10)
    run = drain.start_run(bench.dlq, name="run", asked_by="anna")
    drain.replay_run(run, _hands(bench), on_progress=lambda _: consumed.extend(other.delivered()))
    letter = bench.letter()
    assert [one["Body"] for one in consumed] == ["letter"]
    assert (letter.state, letter.presumed, Run.objects.get(pk=run.pk).state) == ("delivered", True, "finished")


def test_a_drain_assigns_the_letters_it_leaves_to_failure_groups() -> None:
    bench = Workbench(fields={"ordering_key": "attribute:key"})
    bench.bury("{}")
    _drained(bench)
    left = bench.letter()
    assert (left.reason, left.group and left.group.cause) == ("no_ordering_key", "body")


@pytest.mark.soak
def test_a_drain_checks_the_health_of_the_target_that_a_person_chose() -> None:
    bench, other = parked("letter"), Workbench()
    health_checks.add_check(other.target.pk, CheckQuestion(CheckKind.DEPTH, ceiling=9), by="ann", reason="why")
    act_on_parked.release([bench.letter().pk], by="anna", reason="they take it now", target=other.target.pk)
    run, turns = bench.letter().run, list[object]()
    assert run is not None
    drain.replay_run(run, replace(_hands(bench), stop=lambda: len(turns) > 100), on_progress=turns.append)
    assert (bench.letter().state, other.delivered_bodies()) == ("delivered", ["letter"])


@pytest.mark.soak
def test_a_drain_does_not_check_the_health_of_targets_of_other_dlqs() -> None:
    bench, theirs = Workbench(), Workbench()
    for one in (bench, theirs):
        health_checks.add_check(one.target.pk, CheckQuestion(CheckKind.DEPTH, ceiling=9), by="ann", reason="why")
        one.bury("letter")
    theirs.ready()
    _drained(bench)
    looked_at = HealthCheck.objects.filter(checked_at__isnull=False).values_list("target", flat=True)
    assert (len(bench.delivered()), list(looked_at)) == (1, [bench.target.pk])


@pytest.mark.soak
def test_a_drain_sends_nothing_to_a_target_whose_health_cannot_be_known() -> None:
    bench = Workbench()
    health_checks.add_check(
        bench.target.pk, CheckQuestion(CheckKind.HTTP, "http://127.0.0.1:1/"), by="ann", reason="why"
    )
    bench.bury("letter")
    drain.capture_dlq(bench.dlq, _hands(bench), on_progress=lambda _: None, seconds=10)
    run = drain.start_run(bench.dlq, name="run", asked_by="anna")
    looks = 0

    def seen() -> bool:
        nonlocal looks
        looks += HealthCheck.objects.filter(checked_at__isnull=False).exists()
        return looks > 2

    drain.replay_run(run, replace(_hands(bench), stop=seen), on_progress=lambda _: None)
    assert (bench.states(), bench.history(), bench.delivered()) == ({"letter": "waiting"}, [], [])


@pytest.mark.soak
def test_a_run_that_is_repeated_changes_nothing_and_takes_no_later_letter() -> None:
    bench = Workbench()
    bench.bury("letter")
    first = _drained(bench)
    before = Letter.objects.values().get()
    bench.bury("later")
    again = _drained(bench)
    assert (again.pk, again.asked_by, Letter.objects.values().earliest("id")) == (first.pk, "anna", before)
    assert (Run.objects.count(), len(bench.delivered())) == (1, 1)
    assert bench.states() == {"letter": "delivered", "later": "captured"}


@pytest.mark.soak
def test_another_selection_under_the_same_id_is_refused() -> None:
    bench, other = Workbench(), Workbench()
    bench.bury("letter")
    run = _drained(bench, limit=1)
    for dlq, limit in ((bench.dlq, None), (bench.dlq, 2), (other.dlq, 1)):
        with pytest.raises(RunIdInUse, match="run"):
            drain.start_run(dlq, name="run", asked_by="ben", selection=Selection(limit=limit))
    assert Run.objects.get() == run


def test_collecting_sends_parks_and_discards_nothing() -> None:
    bench = Workbench(fields=KEYED)
    bench.bury("keyless")
    bench.bury("keyed", key="a", n="1")
    drain.capture_dlq(bench.dlq, _hands(bench), on_progress=lambda _: None, seconds=10)
    assert set(bench.states().values()) == {"captured"}
    assert (bench.delivered(), bench.history(), bench.left()) == ([], [], 2)
