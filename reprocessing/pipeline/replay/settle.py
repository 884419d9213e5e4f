"""Settle attempts: record their outcomes, give their letters the next state, and find the next letter of each lane."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import assert_never

from reprocessing.domain.lifecycle import AttemptOutcome, LetterState, ParkedReason
from reprocessing.domain.replay.attempt_detail import detail_of
from reprocessing.domain.replay.verdicts import NotSent, Outcome, Refused, Taken, Unknown
from reprocessing.models import DeadLetterQueue, Target
from reprocessing.models.target import MAX_SECONDS, Advance, Proof
from reprocessing.store import rows
from reprocessing.store.ordering import lane_state, lanes
from reprocessing.store.ordering.lane_state import LaneState
from reprocessing.store.payloads import answer_texts
from reprocessing.store.payloads.answer_texts import AnswerText
from reprocessing.store.replay.intent import IntendedSend
from reprocessing.store.replay.settlement import (
    WAITS_FOR_COPY,
    Deletable,
    LetterClosing,
    Settlement,
    close_letters,
    put_off_letters,
    record_message_ids,
    returned_attempts,
    settle_attempts,
)
from reprocessing.store.routing import routing_decisions
from reprocessing.store.safety.outage_attempts import spare_late

Dice = Callable[[], float]

_SWALLOWED = Refused("Swallowed", "SQS dropped it as a repeat of a copy that had come back already")
#: Longest wait in seconds until a letter that was not sent is tried again.
UNSENT_CAP = 60.0


@dataclass(frozen=True, slots=True)
class Settled:
    """The result of settling.

    `lane_states`: lanes with their next heads (first unfinished letters). `deletable`: copies that may be deleted from
    DLQs. `closed`: letters that were finished or parked without being sent.
    """

    lane_states: list[LaneState]
    deletable: list[Deletable]
    closed: tuple[LetterClosing, ...] = ()


def attempts(  # noqa: PLR0913  # arguments are passed by name
    intended: Sequence[IntendedSend], outcomes: Mapping[int, Outcome], *, targets: Mapping[int, Target],
    dlqs: Mapping[int, DeadLetterQueue], dice: Dice, lease: float, keep: bool = True,
) -> Settled:  # fmt: skip
    """Record the outcomes of attempts; return the lanes with their next heads (first unfinished letters).

    `outcomes`: by attempt id. An attempt without an outcome counts as unknown. If the caller has lost a lane's lease,
    only the message id from the target is recorded. `keep`: True: lanes with a due head stay leased, for `lease`
    seconds.
    """
    unknown = Unknown("no outcome was recorded")
    outcomes = _with_sealed_texts(intended, outcomes)
    fates = {
        attempt.attempt_id: _fate(attempt, outcomes.get(attempt.attempt_id, unknown), targets, dlqs, dice)
        for attempt in intended
    }
    ordered = sorted(intended, key=lambda attempt: (attempt.dlq_id, attempt.message_id))  # the order of all locks

    def record() -> Settled:
        mine = lanes.lock([attempt.lane_id for attempt in ordered], [attempt.fence for attempt in ordered])
        ours = [attempt for attempt in ordered if attempt.lane_id in mine]
        lost = [fates[attempt.attempt_id] for attempt in ordered if attempt.lane_id not in mine]
        if lost:
            record_message_ids([fate.attempt_id for fate in lost], [fate.sent_message_id for fate in lost])
        if not ours:
            return Settled([], [])
        final = _after_returns(ours, fates, outcomes, dlqs, dice)
        deletable = settle_attempts(final)
        spare_late([fate.attempt_id for fate in final if fate.counts_as_failure and fate.counted])
        return Settled(_next(ours, outcomes, lease, keep=keep), deletable)

    return rows.in_transaction(record)


def _with_sealed_texts(
    intended: Sequence[IntendedSend], outcomes: Mapping[int, Outcome]
) -> Mapping[int, Outcome]:  # fmt: skip
    """Return the outcomes with encrypted texts of targets, because such a text may quote a payload."""
    quoting = [
        (attempt, outcome)
        for attempt in intended
        if isinstance(outcome := outcomes.get(attempt.attempt_id), Refused) and outcome.quotes
    ]
    if not quoting:
        return outcomes
    texts = answer_texts.sealed(
        [AnswerText(attempt.dlq_id, attempt.message_id, outcome.message) for attempt, outcome in quoting]
    )
    sealed = {
        attempt.attempt_id: replace(outcome, message=text)
        for (attempt, outcome), text in zip(quoting, texts, strict=True)
    }
    return {**outcomes, **sealed}


def _next(
    ours: Sequence[IntendedSend], outcomes: Mapping[int, Outcome], lease: float, *, keep: bool
) -> list[LaneState]:
    return lane_state.advance(
        [attempt.lane_id for attempt in ours], [attempt.fence for attempt in ours],
        passed=[attempt.sequence if _has_passed(outcomes.get(attempt.attempt_id)) else None for attempt in ours],
        keep=keep, lease=lease,
    )  # fmt: skip


def _has_passed(outcome: Outcome | None) -> bool:
    return outcome is None or isinstance(outcome, Taken | Unknown)


def _after_returns(
    ours: Sequence[IntendedSend], fates: Mapping[int, Settlement], outcomes: Mapping[int, Outcome],
    dlqs: Mapping[int, DeadLetterQueue], dice: Dice,
) -> list[Settlement]:  # fmt: skip
    """Return the settlements of these attempts, after a check for resends that SQS dropped as repetitions.

    A FIFO queue drops a message with a deduplication id that it knows. If the message that it knows has come back to
    the DLQ meanwhile, the consumer gets neither message, so both attempts have failed.
    """
    taken = {
        attempt.attempt_id: outcome.message_id
        for attempt in ours
        if isinstance(outcome := outcomes.get(attempt.attempt_id), Taken) and outcome.message_id and attempt.no > 1
    }
    back = returned_attempts(taken) if taken else set()
    final: list[Settlement] = []
    for attempt in ours:
        fate = fates[attempt.attempt_id]
        if attempt.attempt_id in back:
            failed = _failed(replace(attempt, unsure=False), _SWALLOWED, dlqs[attempt.dlq_id], dice, None)
            sent_as = taken[attempt.attempt_id]
            fate = replace(failed, outcome=AttemptOutcome.RETURNED, sent_message_id=sent_as, taken=True)
        final.append(fate)
    return final


def heads(closings: Mapping[tuple[int, int], LetterClosing], *, lease: float) -> Settled:
    """Park or close the heads (first unfinished letters) of leased lanes without sending them; find the next heads.

    If a head was sent before and may still come back, the head and its lane wait until it cannot come back any more.
    Then the gate decides again. `closings`: the decision, by (lane id, fencing token of the lane's lease).
    """

    def record() -> Settled:
        mine = lanes.lock([lane for lane, _ in closings], [fence for _, fence in closings])
        ours = {lane: closing for lane, closing in closings.items() if lane[0] in mine}
        later = put_off_letters([closing.letter_id for closing in ours.values()])
        closed = tuple(closing for closing in ours.values() if closing.letter_id not in later)
        deletable = close_letters(closed)
        lane_states = lane_state.advance(
            [lane for lane, _ in ours], [fence for _, fence in ours], keep=True, lease=lease
        )
        if later:
            routing_decisions.record_reasons(
                {lane: WAITS_FOR_COPY for (lane, _), closing in ours.items() if closing.letter_id in later}
            )
        return Settled(lane_states, deletable, closed)

    return rows.in_transaction(record)


def _fate(
    attempt: IntendedSend,
    outcome: Outcome,
    targets: Mapping[int, Target],
    dlqs: Mapping[int, DeadLetterQueue],
    dice: Dice,
) -> Settlement:
    match outcome:
        case Taken(message_id):
            return _taken(attempt, message_id, targets[attempt.target_id])
        case NotSent():
            return Settlement(
                attempt.attempt_id, attempt.letter_id, AttemptOutcome.NOT_SENT, LetterState.WAITING,
                "held" if attempt.unsure else "free",
                due=max(unsent_wait(attempt.not_sent), _asked(outcome.after)), detail=outcome.why, counted=False,
                counts_as_failure=outcome.unreachable or None,
            )  # fmt: skip
        case Unknown() | Refused():
            return _failed(attempt, outcome, dlqs[attempt.dlq_id], dice, targets[attempt.target_id])
        case _ as never:
            assert_never(never)


def unsent_wait(before: int) -> float:
    """Return the seconds until a letter that could not be sent is tried again: 0, 1, 3, 7 and so on, at most 60.

    `before`: how often, in a row, the letter could not be sent before.
    """
    return min(UNSENT_CAP, 2.0 ** min(before, 10) - 1.0)


def _asked(after: timedelta | None) -> float:
    return 0.0 if after is None else min(max(0.0, after.total_seconds()), MAX_SECONDS)


def _taken(attempt: IntendedSend, message_id: str | None, target: Target) -> Settlement:
    if target.proof == Proof.ACCEPTED:
        return Settlement(
            attempt.attempt_id, attempt.letter_id, AttemptOutcome.ACCEPTED, LetterState.DELIVERED, "delivered",
            sent_message_id=message_id, taken=True, counts_as_failure=False,
        )  # fmt: skip
    frees_lane = target.advance == Advance.ACCEPTED or attempt.waits_for_outcomes is False
    return Settlement(
        attempt.attempt_id, attempt.letter_id, None, LetterState.AWAITING, "held",
        sent_message_id=message_id, taken=True, deadline=target.window, frees_lane=frees_lane,
    )  # fmt: skip


def _failed(
    attempt: IntendedSend, failure: Unknown | Refused, dlq: DeadLetterQueue, dice: Dice, target: Target | None
) -> Settlement:
    """Return what follows from a failed attempt: the letter is sent again after a backoff, or parked.

    If the outcome is unknown, the target may have the letter. If such a letter is parked, no other letter with its
    idempotency key is sent while the letter may still come back. With the target's setting `--advance settled`, the
    letter's lane waits until then, too.
    """
    known = isinstance(failure, Refused) and not attempt.unsure
    outcome = AttemptOutcome.REFUSED if isinstance(failure, Refused) else AttemptOutcome.UNKNOWN
    detail = detail_of(failure)
    reason = (failure.reason or ParkedReason.REFUSED) if isinstance(failure, Refused) and failure.poison else None
    counts_as_failure = True if reason is None else None  # a target that rejects an invalid message is healthy
    if reason is None and attempt.attempts >= dlq.max_attempts and not attempt.is_automatic:  # else the gate decides
        reason = ParkedReason.ATTEMPTS_SPENT
    if reason is not None and not known and target is not None and target.holds_lane_after_unknown:
        return Settlement(
            attempt.attempt_id, attempt.letter_id, None, LetterState.PARKED, "held",
            deadline=target.window, detail=detail, reason=reason, counts_as_failure=counts_as_failure,
        )  # fmt: skip
    if reason is not None:
        return Settlement(
            attempt.attempt_id, attempt.letter_id, outcome, LetterState.PARKED, "free" if known else "held",
            deadline=target.copy_window if target is not None and outcome is AttemptOutcome.UNKNOWN else None,
            detail=detail, reason=reason, known=known, counts_as_failure=counts_as_failure,
        )  # fmt: skip
    due = dlq.backoff_delay(attempt.tries, dice(), attempt).total_seconds()
    asked = _asked(failure.after) if isinstance(failure, Refused) else 0.0
    return Settlement(
        attempt.attempt_id, attempt.letter_id, outcome, LetterState.WAITING, "free" if known else "held",
        due=max(due, asked), detail=detail, known=known, counts_as_failure=counts_as_failure,
    )  # fmt: skip
