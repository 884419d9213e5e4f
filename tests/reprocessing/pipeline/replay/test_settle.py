"""What each outcome does to attempt, letter, lane and copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import Mock

import pytest
from django.db import DatabaseError

from reprocessing.domain.replay.verdicts import NotSent, Outcome, Refused, Unknown
from reprocessing.models import Attempt
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.pipeline.replay import send_batches, settle
from reprocessing.store.replay.intent import IntendedSend
from tests.reprocessing.pipeline.bench import KEYED, Clock, Workbench, enqueued, redriven

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def _answers(outcome: Outcome | None) -> Iterator[None]:
    def answer(intended: Sequence[IntendedSend], *_: object, **__: object) -> dict[int, Outcome]:
        return {attempt.attempt_id: outcome for attempt in intended} if outcome else {}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(send_batches, "letters", answer)
        yield


def _bench(**fields: object) -> Workbench:
    return enqueued("letter", fields={"backoff_base": 60, "backoff_jitter": "none", **fields})


@pytest.mark.parametrize(
    ("outcome", "said", "epoch"),
    [
        (Refused("Busy", "not now"), ("refused", "Busy: not now"), 1),
        (Unknown("the reply was lost"), ("unknown", "the reply was lost"), 0),
        (None, ("unknown", "no outcome was recorded"), 0),
    ],
)
def test_a_failed_attempt_counts_and_the_letter_waits(
    outcome: Outcome | None, said: tuple[str, str], epoch: int
) -> None:
    bench = _bench()
    with _answers(outcome):
        bench.replay()
    letter, attempt = bench.letter(), Attempt.objects.get()
    assert (attempt.outcome, attempt.detail) == said
    assert (letter.state, letter.attempts, letter.not_sent, letter.epoch) == ("waiting", 1, 0, epoch)
    assert letter.due_at is not None
    assert attempt.closed_at is not None
    assert round((letter.due_at - attempt.closed_at).total_seconds(), -1) == 60
    assert (bench.lane().phase, bench.lane().due_at, bench.left()) == ("ready", letter.due_at, 1)


def test_each_failure_doubles_the_backoff(clock: Clock) -> None:
    bench = _bench(max_attempts=9)
    rests = []
    for _ in range(3):
        with _answers(Refused("Busy", "not now")):
            bench.replay()
        due, closed = bench.letter().due_at, Attempt.objects.latest("id").closed_at
        assert due is not None
        assert closed is not None
        rests.append(round((due - closed).total_seconds(), -1))
        clock.advance(rests[-1] + 5)
    assert rests == [60, 120, 240]


def test_an_attempt_that_was_not_sent_does_not_count() -> None:
    bench = _bench(max_attempts=1)
    once = iter([False, True])
    with _answers(NotSent("its time had run out")):
        bench.replay(stop=lambda: next(once))
    letter = bench.letter()
    assert (letter.state, letter.attempts, letter.epoch, letter.not_sent) == ("waiting", 0, 0, 1)
    assert len(bench.history()) == 1
    assert bench.replay().taken == 1


def test_the_wait_of_a_letter_that_is_not_sent_grows_to_a_minute() -> None:
    bench = _bench(max_attempts=1)
    with _answers(NotSent("nobody listens there")):
        bench.replay()
    assert bench.letter().not_sent == 2  # the second rests a second
    assert [settle.unsent_wait(before) for before in (0, 1, 2, 5, 6, 5000)] == [0, 1, 3, 31, 60, 60]


def test_a_parked_head_lets_the_next_letter_go() -> None:
    bench = _two_of_one_lane()
    assert bench.states() == {"first": "parked", "second": "delivered"}


def test_a_parked_head_holds_its_lane_if_the_dlq_says_so() -> None:
    bench = _two_of_one_lane(when_parked="hold")
    assert bench.states() == {"first": "parked", "second": "waiting"}
    assert (bench.lane().phase, bench.lane().due_at) == ("held", None)
    act_on_parked.discard([bench.letter(state="parked").pk], by="anna", reason="of no use")
    bench.replay()
    assert bench.states() == {"first": "discarded", "second": "delivered"}


def _two_of_one_lane(**fields: object) -> Workbench:
    bench = Workbench(fields=KEYED | fields)
    bench.bury("first", key="a", n="1")
    bench.enqueue("second", key="a", n="2")
    with bench.refusing("first", poison=True):
        bench.replay()
    return bench


def test_with_outcome_absence_the_attempt_stays_open() -> None:
    bench = redriven("letter", absence={"window": 60})
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.closed_at, attempt.holds_lane) == (None, None, True)
    assert attempt.taken_at is not None
    assert attempt.deadline is not None
    assert round((attempt.deadline - attempt.taken_at).total_seconds(), -1) == 60
    assert (bench.letter().state, bench.left()) == ("awaiting", 1)


def test_an_outcome_that_is_rolled_back_deletes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = _bench()
    monkeypatch.setattr(settle, "_next", Mock(side_effect=DatabaseError("gone")))
    with pytest.raises(DatabaseError):
        bench.replay()
    assert (bench.letter().state, bench.history(), bench.left()) == ("sending", [(1, None, 0)], 1)
