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
from reprocessing.models.target import Sighting
from reprocessing.pipeline.outcomes import resolve_outcomes
from reprocessing.store.ordering import lanes
from reprocessing.store.outcomes import evidence, pending_outcomes
from tests.reprocessing.pipeline.bench import BRISK, Clock, Workbench, enqueued, redriven

pytestmark = pytest.mark.django_db(transaction=True)

LAG, WINDOW = 60.0, 3_600.0
NOTHING = Depth(0, 0, 0)


@dataclass
class Trial:
    """A letter that its target took at a moment, and looks at that target; all seconds count from then."""

    bench: Workbench
    clock: Clock
    patch: pytest.MonkeyPatch
    taken: datetime

    def go_to(self, seconds: float) -> None:
        """Let time pass until then."""
        self.clock.advance((self.taken + timedelta(seconds=seconds) - lanes.clock()).total_seconds())

    def look(self, seconds: float, found: Depth = NOTHING) -> int:
        """Look at the target, which says that it holds this; how many letters are promoted then."""
        self.go_to(seconds)
        with self.patch.context() as patch:
            patch.setattr(resolve_outcomes, "depth", lambda _: found)
            return self.bench.promote()

    def is_known(self, *, drained: float) -> bool:
        """Whether the letter may be presumed delivered, after a capture that began then and ran dry."""
        through = self.taken + timedelta(seconds=drained)
        DeadLetterQueue.objects.filter(pk=self.bench.dlq.pk).update(drained_through=through)
        return len(evidence.ripe(count_lag=LAG, limit=10)) == 1


@pytest.fixture
def trial(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Trial:
    bench = redriven("letter", conf=replace(BRISK, count_lag=timedelta(seconds=LAG)), absence={"window": WINDOW})
    taken = Attempt.objects.get().taken_at
    assert taken is not None
    return Trial(bench, clock, monkeypatch, taken)


@contextmanager
def answering_late(seconds: float, clock: Clock) -> Iterator[None]:
    """Each look takes so long from its question to its answer."""
    now = [100.0]

    def depth(_: object) -> Depth:
        now[0] += seconds
        clock.advance(seconds)
        connection.close()  # of this thread, which ends
        return NOTHING

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resolve_outcomes, "unslept", lambda: lambda: now[0])
        patch.setattr(resolve_outcomes, "depth", depth)
        yield


def test_one_empty_look_proves_nothing(trial: Trial) -> None:
    trial.look(2 * LAG + 2)
    assert not trial.is_known(drained=5 * LAG)


def test_two_empty_looks_must_be_a_count_lag_apart(trial: Trial) -> None:
    trial.look(LAG + 1)
    trial.look(2 * LAG)
    assert not trial.is_known(drained=2 * LAG + 1)
    trial.look(2 * LAG + 2)
    assert trial.is_known(drained=5 * LAG)


def test_a_look_before_the_count_lag_is_ignored(trial: Trial) -> None:
    trial.look(LAG - 1)
    trial.look(2 * LAG - 1 + 0.5)
    assert not trial.is_known(drained=5 * LAG)


@pytest.mark.parametrize("found", [Depth(1, 0, 0), Depth(0, 1, 0), Depth(0, 0, 1)])
def test_a_visible_delayed_or_in_flight_message_may_be_the_letter(trial: Trial, found: Depth) -> None:
    trial.look(LAG + 1, found)
    trial.look(2 * LAG + 2, found)
    trial.look(3 * LAG, found)
    assert not trial.is_known(drained=5 * LAG)


@pytest.mark.parametrize("found", [Depth(1, 0, 0), Depth(0, 1, 0), Depth(0, 0, 1)])
def test_a_look_that_finds_messages_begins_the_wait_again(trial: Trial, found: Depth) -> None:
    """Its counts may lag by turns: the letter is in flight where a late count says visible, and the other way round."""
    trial.look(LAG + 1)
    trial.look(LAG + 30, found)
    trial.look(2 * LAG + 2)
    assert not trial.is_known(drained=2 * LAG + 3)
    trial.look(3 * LAG + 3)
    assert trial.is_known(drained=5 * LAG)


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
    """The first of the two that follow is answered too late for the second."""
    trial.look(LAG + 1)
    trial.look(LAG + 2, Depth(0, 1, 0))
    trial.go_to(LAG + 10)
    with answering_late(30, trial.clock):
        trial.bench.promote()
    trial.look(2 * LAG + 11)
    assert not trial.is_known(drained=2 * LAG + 12)


def test_later_messages_do_not_undo_the_evidence(trial: Trial) -> None:
    trial.look(LAG + 1)
    trial.look(2 * LAG + 2)
    trial.look(2 * LAG + 10, Depth(0, 1, 0))
    assert trial.is_known(drained=2 * LAG + 20)


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
    """Its request may be on its way still when the target is seen empty."""
    bench = enqueued("letter", fields={"max_attempts": 1}, absence={"window": WINDOW})
    bench.replay_unheard()
    bench.delivered()
    clock.advance(1)
    bench.promote()
    bench.capture()
    bench.promote()
    assert (bench.states(), Attempt.objects.get().closed_at) == ({"letter": "parked"}, None)


def test_a_message_in_flight_for_longer_than_the_window_is_awaited(clock: Clock) -> None:
    """It extends the visibility again and again; then it fails, and the message dies."""
    bench = redriven("letter", absence={"window": 30})
    (out,) = bench.sqs.receive_message(QueueUrl=bench.origin_url, VisibilityTimeout=600, MessageAttributeNames=["All"])[
        "Messages"
    ]
    clock.advance(20)
    assert _turns(bench) == {"letter": "awaiting"}
    bench.come_back(out)
    bench.sqs.delete_message(QueueUrl=bench.origin_url, ReceiptHandle=out["ReceiptHandle"])
    assert (_turns(bench), bench.history()) == ({"letter": "waiting"}, [(1, "returned", 0)])


def test_a_consumed_letter_is_delivered_with_the_next_capture() -> None:
    """Where counts do not lag one look is both, and nothing is waited for but a capture that begins after it."""
    bench = redriven("letter", absence={"window": WINDOW})
    bench.delivered()
    assert (_turns(bench), bench.history()) == ({"letter": "delivered"}, [(1, "absent", 0)])


def test_a_letter_that_failed_again_is_found_by_the_next_capture() -> None:
    bench = redriven("letter", absence={"window": WINDOW})
    bench.come_back(bench.delivered()[0])
    assert (_turns(bench), bench.history()) == ({"letter": "waiting"}, [(1, "returned", 0)])


def test_a_busy_target_is_judged_by_its_window(trial: Trial) -> None:
    """It is never empty; that nothing is visible at two looks a window apart is enough, as ever."""
    busy = Depth(0, 3, 0)
    for seconds in (LAG + 1, 2 * LAG + 2, LAG + WINDOW + 2):
        trial.look(seconds, busy)
    assert not trial.is_known(drained=WINDOW)
    assert trial.is_known(drained=LAG + WINDOW + 3)


@pytest.mark.parametrize("lies_there_at", [LAG + 1, LAG + WINDOW + 2], ids=["the first look", "the second look"])
def test_a_look_that_finds_visible_messages_does_not_count(trial: Trial, lies_there_at: float) -> None:
    for seconds in (1, LAG + 1, LAG + WINDOW + 2):
        trial.look(seconds, Depth(1 if seconds == lies_there_at else 0, 1, 0))
    assert not trial.is_known(drained=LAG + WINDOW + 3)


def test_only_the_first_look_that_finds_messages_is_noted(trial: Trial) -> None:
    """Their consumer may be away for days."""
    trial.look(LAG + 1)
    for seconds in range(10):
        trial.look(LAG + 2 + seconds, Depth(1, 0, 0))
    trial.look(LAG + 20)
    assert list(Sighting.objects.order_by("seen_at").values_list("empty", flat=True)) == [True, False, True]


def test_the_status_names_each_missing_step_of_the_evidence(trial: Trial) -> None:
    """What is said is what is lacking: the evidence is there when nothing is waited for but a promotion."""

    def told() -> str:
        (one,) = pending_outcomes.of_targets(trial.bench.dlq.pk, count_lag=LAG)
        said = pending_outcomes.in_words(one)
        assert bool(evidence.ripe(count_lag=LAG, limit=10)) == said.startswith("the next promotion")
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
        f"a look at {name}, at {at(LAG)} or later: SQS's counts may be 60 s late",
        f"{name} has not been seen empty since it took its oldest letter, at ",
        f"{name} to have no message in flight, or ",
        f"another look at {name}, at ",
        f"a capture of {name} that begins after ",
        "the next promotion: the evidence is there",
    ]
    assert [said.startswith(begin) for said, begin in zip(steps, beginnings, strict=True)] == [True] * 6


def _turns(bench: Workbench) -> dict[str, str]:
    """A look, a capture, and what follows; the letters' states."""
    bench.promote()
    bench.capture()
    bench.promote()
    return bench.states()
