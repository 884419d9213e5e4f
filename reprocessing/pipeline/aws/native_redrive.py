"""Hand a dlq to AWS's own redrive, look what became of it, and take it back.

The claim is committed before AWS is asked, and only what AWS says ends it. So a process that dies in between, or whose
answer is lost, leaves a dlq that nobody of ours touches, until a look at AWS's list tells: by beat's sweep, or by
`native_redrive list`. What AWS lists tells only of what was claimed before it was asked: whose a dlq is, is read first.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, assert_never

from reprocessing.domain.errors import QueueIsOutOfReach, QueueRefuses
from reprocessing.domain.replay.verdicts import NotSent, Refused, Unknown
from reprocessing.gateways.aws.request_threads import as_they_end
from reprocessing.gateways.sqs import Begun, Move, begin_move, cancel_move, move_tasks
from reprocessing.models import DeadLetterQueue
from reprocessing.store.aws import aws_redrives, looks_at_moves, native_redrive_lock
from reprocessing.store.aws.aws_redrives import Native
from reprocessing.store.aws.native_redrive_lock import Standing, Wish
from reprocessing.store.capture import moved_by_aws
from reprocessing.store.ordering import lanes

logger = logging.getLogger(__name__)

#: Seconds after the claim in which AWS may be asked; a process that slept longer asks nothing. The call ends within
#: thirteen more, and what AWS does not list at GRACE was never begun.
SOON: Final = 20.0
GRACE: Final = 60.0
#: Seconds between two questions, whether somebody else has AWS move messages of a dlq that is to be captured.
EVERY: Final = 60.0
#: Dlqs about which AWS is asked at the same time, and seconds after which about no other one.
_THREADS: Final = 16
_LOOKS_FOR: Final = 5.0
#: What AWS says of one that failed (AWS: ListMessageMoveTasks, Status).
_FAILED: Final = "FAILED"


@dataclass(frozen=True, slots=True)
class Refusal:
    """AWS did not begin, and says why; the dlq is ours as before."""

    why: str


@dataclass(frozen=True, slots=True)
class Open:
    """AWS may have begun: its answer was lost. The dlq stays AWS's until its list tells."""

    why: str


def start(
    dlq: DeadLetterQueue, *, to: str, per_second: int | None, by: str, reason: str
) -> Begun | Refusal | Open | Standing:
    """Have AWS move what is visible in a dlq; or say what keeps it from that.

    Raises:
        QueueIsOutOfReach: AWS does not list its tasks, so that nobody could tell what becomes of another.
    """
    listed = look(dlq)
    after = max((one.started_at for one in listed), default=None)
    began = lanes.clock()  # goes on while this machine is suspended
    claimed = native_redrive_lock.claim(dlq.pk, Wish(to, per_second, after), by=by, reason=reason)
    if isinstance(claimed, Standing):
        return claimed
    if (lanes.clock() - began).total_seconds() > SOON:
        aws_redrives.ended(claimed, "AWS was not asked: the claim took too long.")
        return Refusal("it was not asked, since the claim took too long; ask again")
    answer = begin_move(dlq.arn, to=to, per_second=per_second, role=dlq.role_arn)
    match answer:
        case Begun(handle):
            aws_redrives.told(claimed, handle)
            return answer
        case Refused(code, message):
            return _given_back(claimed, f"{code}: {message}")
        case NotSent(why):
            return _given_back(claimed, why)
        case Unknown(why):
            return Open(why)
        case _ as never:
            assert_never(never)


def _given_back(claimed: Native, why: str) -> Refusal:
    aws_redrives.ended(claimed, f"AWS did not begin: {why}")
    return Refusal(why)


def look(dlq: DeadLetterQueue) -> list[Move]:
    """Ask AWS for its redrives out of a dlq, newest first, and write down what that says of whose the dlq is.

    Raises:
        QueueIsOutOfReach: SQS refused or did not answer.
    """
    own, at = aws_redrives.of(dlq.pk), lanes.clock()
    listed = move_tasks(dlq.arn, dlq.role_arn)
    _note(own, at, dlq, listed)
    return listed


def _resolve(dlq: DeadLetterQueue, own: Native | None, listed: list[Move]) -> None:
    """Write down what AWS listed says; `own` was read before: what was claimed since then is not this list's to end."""
    active = next((one for one in listed if one.is_active), None)
    if own is None:
        _note_missed(dlq, [one for one in listed if not one.is_active])
        if active is not None:
            _notice(dlq, active, listed)
        return
    if active is not None:
        if not own.handle and active.handle:
            aws_redrives.told(own, active.handle)
        return
    since = [one for one in listed if own.after is None or one.started_at > own.after]
    if since:
        _end(dlq, own, _became(since[0]), since)
    elif own.handle:
        _end(dlq, own, "AWS lists it no more.", moved=True)
    elif own.age > GRACE:
        _end(dlq, own, "AWS never began it.")


def _note_missed(dlq: DeadLetterQueue, ended: Sequence[Move]) -> None:
    """Nobody saw these at work; what they moved is not to be sent once more."""
    if not ended:
        return
    moved = next((one.started_at for one in ended if one.moved), None)
    if n := aws_redrives.missed(dlq.pk, through=ended[0].started_at, moved=moved):
        logger.warning(
            "%s: AWS's own redrive, begun outside of this service, has ended unseen: %d letters may be moved.",
            dlq.name, n,
        )  # fmt: skip


def _notice(dlq: DeadLetterQueue, active: Move, listed: list[Move]) -> None:
    """Somebody outside has AWS move messages of a dlq that was thought ours."""
    before = max((one.started_at for one in listed if one.started_at < active.started_at), default=None)
    if aws_redrives.noticed(dlq.pk, to=active.destination_arn or "", handle=active.handle, after=before):
        logger.warning(
            "%s: AWS's own redrive is at work, begun outside of this service. Nothing is captured.", dlq.name
        )
    elif aws_redrives.of(dlq.pk) is None:
        moved_by_aws.let_go(dlq.pk)  # a capture is under way: the next one tells what is there still


def _end(dlq: DeadLetterQueue, own: Native, said: str, since: Sequence[Move] = (), *, moved: bool = False) -> None:
    """It has ended, as `since`, newest first, tells; `moved`: it may have moved messages, whatever these tell."""
    through = since[0].started_at if since else None
    moved, failed = moved or any(one.moved for one in since), bool(since) and since[0].status == _FAILED
    if aws_redrives.ended(own, said, through=through, moved=moved, failed=failed):
        logger.info("%s: AWS's own redrive has ended: %s", dlq.name, said)


def _became(one: Move) -> str:
    why = f" ({one.failure})" if one.failure else ""
    return f"AWS says {one.status}{why}: {one.moved:,} messages moved."


def is_aws_s(dlq: DeadLetterQueue) -> bool:
    """Whether a dlq that is to be captured is AWS's to empty; AWS is asked once in a while. Unknown is no.

    Without the right to ask, what somebody has AWS do outside of this service is not seen.
    """
    if aws_redrives.is_time_to_ask(dlq.pk, every=EVERY):
        own, at = aws_redrives.of(dlq.pk), lanes.clock()
        _note(own, at, *_listed(dlq))
    return aws_redrives.of(dlq.pk) is not None


def look_first(dlq: int | None) -> None:
    """Before letters of a dlq, or of all, go on that were kept from it: what AWS has moved of them stays where it is.

    Where AWS does not tell, or not in time, they go on: whoever may not ask it could let nothing go on otherwise.
    """
    _look_at(moved_by_aws.exposed(dlq))


def before_lanes_are_leased(runs: Sequence[int] | None) -> None:
    """Ask about DLQs with lanes to lease, of these runs or of any, about which AWS has not been asked for a while.

    A DLQ's lanes are leased when AWS has answered (docs/adr/0032). Called outside transactions. One statement where
    there is nobody to ask about.
    """
    if dlqs := looks_at_moves.dlqs_to_ask_about(runs):
        _look_at(dlqs)


def _look_at(dlqs: Collection[int]) -> None:
    """Side by side, each answer written down as it comes: one region out of reach keeps no other dlq from its look."""
    some = list(DeadLetterQueue.objects.filter(pk__in=dlqs).order_by("?"))  # where there is no time for all
    owned = {one.dlq_id: one for one in aws_redrives.under_way()}  # the threads have no connection of their own
    at = lanes.clock()
    for dlq, listed in as_they_end(_listed, some, _THREADS, within=_LOOKS_FOR):
        _note(owned.get(dlq.pk), at, dlq, listed)


def _note(own: Native | None, at: datetime, dlq: DeadLetterQueue, listed: list[Move] | QueueIsOutOfReach) -> None:
    """Write down what AWS answered to a question of `at`, or that it did not; last that it is known."""
    match listed:
        case QueueRefuses():
            looks_at_moves.answered(dlq.pk, at=at)  # whoever may not ask could let nothing go on otherwise
        case QueueIsOutOfReach():
            looks_at_moves.unanswered(dlq.pk, str(listed))
        case _:
            _resolve(dlq, own, listed)
            looks_at_moves.answered(dlq.pk, at=at)


def _listed(dlq: DeadLetterQueue) -> tuple[DeadLetterQueue, list[Move] | QueueIsOutOfReach]:
    try:
        return dlq, move_tasks(dlq.arn, dlq.role_arn)
    except QueueIsOutOfReach as error:
        logger.info("Whether AWS's own redrive is at work on %s is not known: %s", dlq.name, error)
        return dlq, error


def sweep() -> None:
    """Look what became of what AWS was asked; for whoever asked may be gone.

    And, once in a while, whether somebody else has it move what waits to be sent: of a dlq that nobody captures, no
    capture asks.
    """
    for one in aws_redrives.under_way():
        dlq = DeadLetterQueue.objects.get(pk=one.dlq_id)
        try:
            look(dlq)
            aws_redrives.stands(one, "")
        except QueueIsOutOfReach as error:
            aws_redrives.stands(one, str(error))
            logger.warning("What became of AWS's own redrive of %s is not known: %s", dlq.name, error)
    _look_at([one for one in moved_by_aws.exposed() if aws_redrives.is_time_to_ask(one, every=EVERY)])


@dataclass(frozen=True, slots=True)
class Cancelling:
    """AWS stops; what it has moved by then stays moved."""

    moved: int


@dataclass(frozen=True, slots=True)
class Over:
    """There was nothing left to cancel: what became of the newest task; empty: AWS lists none."""

    became: str


def cancel(dlq: DeadLetterQueue, *, by: str, reason: str) -> Cancelling | Over | Refusal | Open:
    """Have AWS move no more of a dlq's messages, whoever had it begin.

    Raises:
        QueueIsOutOfReach: AWS does not list its tasks.
    """
    listed = look(dlq)
    active = next((one for one in listed if one.is_active), None)
    if active is None:
        return Over(_became(listed[0]) if listed else "")
    if not active.handle:
        return Cancelling(active.moved)  # AWS shows no handle of what is being cancelled already
    aws_redrives.note_cancel(dlq.pk, by=by, reason=reason)
    match cancel_move(dlq.arn, active.handle, dlq.role_arn):
        case int(moved):
            look(dlq)
            return Cancelling(moved)
        case Refused(code, message):
            newest = look(dlq)[0]  # it may have ended meanwhile
            return Refusal(f"{code}: {message}") if newest.is_active else Over(_became(newest))
        case NotSent(why):
            return Refusal(why)
        case Unknown(why):
            return Open(why)
        case _ as never:
            assert_never(never)
