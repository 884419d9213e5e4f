"""A target that is seen empty twice shows that a letter has left it, long before its window is over (ADR 0029)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest
from django.db import connection

from reprocessing.gateways.sqs import Depth
from reprocessing.models import Attempt, DeadLetterQueue, Target
from reprocessing.models.target import TargetCheck
from reprocessing.pipeline.outcomes import resolve_outcomes
from reprocessing.store.ordering import lanes
from reprocessing.store.outcomes import evidence, pending_outcomes
from tests.reprocessing.pipeline.bench import BRISK, Clock, Workbench, enqueued, redriven

pytestmark = pytest.mark.django_db(transaction=True)

LAG, WINDOW = 60.0, 3_600.0
NOTHING = Depth(0, 0, 0)


@pytest.fixture(autouse=True)
def _two_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two looks are enough here: their times are what is tested."""
    monkeypatch.setattr(evidence, "MIN_LOOKS", 2)


@dataclass
class Trial:
    """A letter that its target took, and looks at that target. All seconds count from the send."""

    bench: Workbench
    clock: Clock
    patch: pytest.MonkeyPatch
    taken: datetime

    def go_to(self, seconds: float) -> None:
        self.clock.advance((self.taken + timedelta(seconds=seconds) - lanes.database_now()).total_seconds())

    def look(self, seconds: float, found: Depth = NOTHING) -> int:
        self.go_to(seconds)
        with self.patch.context() as patch:
            patch.setattr(resolve_outcomes, "depth", lambda _: found)
            return self.bench.promote()

    def is_known(self, *, drained: float) -> bool:
        """Whether the letter may be presumed delivered after a drained capture that began then."""
        through = self.taken + timedelta(seconds=drained)
        DeadLetterQueue.objects.filter(pk=self.bench.dlq.pk).update(drained_through=through)
        return len(evidence.presumable_attempts(count_lag=LAG, limit=10)) == 1


@pytest.fixture
def trial(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Trial:
    bench = redriven("letter", conf=replace(BRISK, count_lag=timedelta(seconds=LAG)), absence={"window": WINDOW})
    taken = Attempt.objects.get().taken_at
    assert taken is not None
    return Trial(bench, clock, monkeypatch, taken)


@contextmanager
def answering_late(seconds: float, clock: Clock) -> Iterator[None]:
    now = [100.0]

    def depth(_: object) -> Depth:
        now[0] += seconds
        clock.advance(seconds)
        connection.close()  # of this thread, which ends
        return NOTHING

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resolve_outcomes, "suspend_aware_clock", lambda: lambda: now[0])
        patch.setattr(resolve_outcomes, "depth", depth)
        yield


VISIBLE, IN_FLIGHT, DELAYED = Depth(1, 0, 0), Depth(0, 1, 0), Depth(0, 0, 1)
FIRST, SECOND, THIRD = LAG + 1, 2 * LAG + 2, 3 * LAG + 3
LAST = LAG + WINDOW + 2


@pytest.mark.parametrize(
    ("looks", "drained", "known"),
    [
        pytest.param({FIRST: NOTHING, SECOND: NOTHING}, SECOND + 1, True, id="two empty looks"),
        pytest.param({SECOND: NOTHING}, 5 * LAG, False, id="one empty look"),
        pytest.param({FIRST: NOTHING, 2 * LAG: NOTHING}, 2 * LAG + 1, False, id="less than a count lag apart"),
        pytest.param({LAG - 1: NOTHING, 2 * LAG - 0.5: NOTHING}, 5 * LAG, False, id="before the count lag"),
        *(
            pytest.param(looks, drained, known, id=f"{case}: {found}")
            for found in (VISIBLE, IN_FLIGHT, DELAYED)
            for case, looks, drained, known in (
                ("never empty", {FIRST: found, SECOND: found, 3 * LAG: found}, 5 * LAG, False),
                ("found between", {FIRST: NOTHING, LAG + 30: found, SECOND: NOTHING}, SECOND + 1, False),
                ("again", {FIRST: NOTHING, LAG + 30: found, SECOND: NOTHING, THIRD: NOTHING}, 5 * LAG, True),
            )
        ),
        pytest.param({FIRST: NOTHING, SECOND: NOTHING, SECOND + 8: IN_FLIGHT}, SECOND + 18, True, id="found later"),
        pytest.param({FIRST: IN_FLIGHT, SECOND: IN_FLIGHT, LAST: IN_FLIGHT}, WINDOW, False, id="busy, too early"),
        pytest.param({FIRST: IN_FLIGHT, SECOND: IN_FLIGHT, LAST: IN_FLIGHT}, LAST + 1, True, id="busy, for a window"),
        pytest.param({1: IN_FLIGHT, FIRST: Depth(1, 1, 0), LAST: IN_FLIGHT}, LAST + 1, False, id="visible at first"),
        pytest.param({1: IN_FLIGHT, FIRST: IN_FLIGHT, LAST: Depth(1, 1, 0)}, LAST + 1, False, id="visible at last"),
    ],
)
def test_two_empty_looks_or_a_window_without_visible_messages_prove_absence(
    trial: Trial, looks: dict[float, Depth], drained: float, known: bool
) -> None:
    for seconds, found in looks.items():
        trial.look(seconds, found)
    assert trial.is_known(drained=drained) is known


@pytest.mark.parametrize(("more", "known"), [((), False), ((LAG + 20,), False), ((LAG + 20, LAG + 40), True)])
def test_four_looks_in_a_row_must_find_the_target_empty(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, *, more: tuple[float, ...], known: bool
) -> None:
    monkeypatch.undo()
    assert evidence.MIN_LOOKS == 4
    for seconds in (FIRST, *more, SECOND):
        trial.look(seconds)
    assert trial.is_known(drained=SECOND + 1) is known


def test_the_capture_begins_after_the_second_look_was_answered(trial: Trial) -> None:
    trial.look(LAG + 1)
    trial.go_to(2 * LAG + 10)
    with answering_late(5, trial.clock):
        assert trial.bench.promote() == 0
    assert not trial.is_known(drained=2 * LAG + 14)
    assert trial.is_known(drained=2 * LAG + 16)


def test_the_pause_begins_when_the_first_look_was_answered(trial: Trial) -> None:
    trial.go_to(LAG + 1)
    with answering_late(30, trial.clock):
        trial.bench.promote()
    trial.look(2 * LAG + 2)
    assert not trial.is_known(drained=2 * LAG + 3)
    trial.look(2 * LAG + 32)
    assert trial.is_known(drained=5 * LAG)


def test_a_look_before_messages_were_found_does_not_count(trial: Trial) -> None:
    trial.look(LAG + 1)
    trial.look(LAG + 2, Depth(0, 1, 0))
    trial.go_to(LAG + 10)
    with answering_late(30, trial.clock):
        trial.bench.promote()
    trial.look(2 * LAG + 11)
    assert not trial.is_known(drained=2 * LAG + 12)


def test_an_empty_target_of_an_observed_dlq_proves_nothing(trial: Trial) -> None:
    trial.look(LAG + 1)
    trial.look(2 * LAG + 2)
    DeadLetterQueue.objects.filter(pk=trial.bench.dlq.pk).update(mode="observe")
    assert not trial.is_known(drained=5 * LAG)


def test_a_consumer_has_its_window_to_acknowledge(trial: Trial) -> None:
    Target.objects.filter(pk=trial.bench.target.pk).update(proof="acknowledged")
    trial.look(LAG + 1)
    trial.look(2 * LAG + 2)
    assert not trial.is_known(drained=WINDOW - 1)
    assert trial.is_known(drained=WINDOW + 1)


def test_an_attempt_of_unknown_outcome_waits_for_its_window(clock: Clock) -> None:
    bench = enqueued("letter", fields={"max_attempts": 1}, absence={"window": WINDOW})
    bench.replay_unheard()
    bench.delivered()
    clock.advance(1)
    bench.promote()
    bench.capture()
    bench.promote()
    assert (bench.states(), Attempt.objects.get().closed_at) == ({"letter": "parked"}, None)


@pytest.mark.soak
def test_a_message_in_flight_for_longer_than_the_window_is_awaited(clock: Clock) -> None:
    bench = redriven("letter", absence={"window": 30})
    (out,) = bench.sqs.receive_message(QueueUrl=bench.source_url, VisibilityTimeout=600, MessageAttributeNames=["All"])[
        "Messages"
    ]
    clock.advance(20)
    assert _turns(bench) == {"letter": "awaiting"}
    bench.come_back(out)
    bench.sqs.delete_message(QueueUrl=bench.source_url, ReceiptHandle=out["ReceiptHandle"])
    assert (_turns(bench), bench.history()) == ({"letter": "waiting"}, [(1, "returned", 0)])


@pytest.mark.parametrize(("fails", "state", "outcome"), [(False, "delivered", "absent"), (True, "waiting", "returned")])
def test_the_next_capture_shows_whether_a_letter_was_consumed_or_failed(fails: bool, state: str, outcome: str) -> None:
    bench = redriven("letter", absence={"window": WINDOW})
    (sent,) = bench.delivered()
    if fails:
        bench.come_back(sent)
    assert (_turns(bench), bench.history()) == ({"letter": state}, [(1, outcome, 0)])


def test_only_the_first_look_that_finds_messages_is_noted(trial: Trial) -> None:
    trial.look(LAG + 1)
    for seconds in range(10):
        trial.look(LAG + 2 + seconds, Depth(1, 0, 0))
    trial.look(LAG + 20)
    assert list(TargetCheck.objects.order_by("seen_at").values_list("empty", flat=True)) == [True, False, True]


def test_the_status_names_each_missing_step_of_the_evidence(trial: Trial) -> None:

    def told() -> str:
        (waiting,) = pending_outcomes.of_targets(trial.bench.dlq.pk, count_lag=LAG)
        said = pending_outcomes.describe(waiting)
        assert bool(evidence.presumable_attempts(count_lag=LAG, limit=10)) == said.startswith("the next outcome check")
        return said

    def at(seconds: float) -> str:
        return f"{trial.taken + timedelta(seconds=seconds):%H:%M:%S} UTC"

    name = trial.bench.name
    steps = [told()]
    trial.go_to(LAG + 1)
    steps.append(told())
    trial.look(LAG + 2, Depth(0, 1, 0))
    steps.append(told())
    trial.look(LAG + 10)
    steps.append(told())
    trial.look(2 * LAG + 11)
    steps.append(told())
    assert trial.is_known(drained=2 * LAG + 12)
    steps.append(told())
    beginnings = [
        f"a check whether {name} is empty, at {at(LAG)} or later: SQS's counts may lag by 60 s",
        f"{name} has not been empty since it received the oldest message, at ",
        f"{name} to have no message in flight, or ",
        f"another check whether {name} is empty, at ",
        f"a capture of {name} that begins after ",
        "the next outcome check: the evidence is complete",
    ]
    assert [said.startswith(begin) for said, begin in zip(steps, beginnings, strict=True)] == [True] * 6


def _turns(bench: Workbench) -> dict[str, str]:
    bench.promote()
    bench.capture()
    bench.promote()
    return bench.states()
