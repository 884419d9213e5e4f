"""Hand a DLQ over to AWS's own redrive, follow the redrive, and take the DLQ back.

A hand-over is stored in the DLQ's row: while it is there, this service does not use the DLQ. The hand-over is committed
before AWS is called, and ends at once if AWS refuses or was not called. Otherwise, also if the process dies or AWS's
answer is lost, only AWS's list of redrives ends the hand-over. A sweep, or `native_redrive list`, reads this list. The
hand-over is read before the list, because the list shows nothing of a later hand-over.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, assert_never

from reprocessing.domain.errors import QueueRequestRefused, QueueUnreachable
from reprocessing.domain.replay.verdicts import NotSent, Refused, Unknown
from reprocessing.gateways.aws.request_threads import run_as_completed
from reprocessing.gateways.sqs import Begun, Move, begin_move, cancel_move, move_tasks
from reprocessing.models import DeadLetterQueue
from reprocessing.store.approvals import guard
from reprocessing.store.aws import aws_redrive_checks, aws_redrive_handover, aws_redrives
from reprocessing.store.aws.aws_redrive_handover import HandoverBlockers, RedriveRequest
from reprocessing.store.aws.aws_redrives import AwsRedrive
from reprocessing.store.capture import moved_by_aws
from reprocessing.store.ordering import lanes

logger = logging.getLogger(__name__)

#: AWS may be called for this many seconds after the hand-over. The call takes at most 13 s. If AWS does not list the
#: redrive LISTED_WITHIN seconds after the hand-over, AWS never began the redrive.
ASK_WITHIN: Final = 20.0
LISTED_WITHIN: Final = 60.0
#: Seconds between two checks for redrives that somebody began outside of this service.
CHECK_EVERY: Final = 60.0
_THREADS: Final = 16
_LOOKS_FOR: Final = 5.0  #: in one check of many DLQs, AWS is asked about no further DLQ after this many seconds


@dataclass(frozen=True, slots=True)
class Refusal:
    """AWS refused the redrive, or was not called, so the DLQ is not handed over any more.

    `why`: the reason, for people.
    """

    why: str


@dataclass(frozen=True, slots=True)
class RedriveUnknown:
    """AWS's answer was lost, so the redrive may have begun.

    The DLQ stays handed over until AWS's list of redrives shows the result. `why`: the error, for people.
    """

    why: str


def start(
    dlq: DeadLetterQueue, *, to: str, per_second: int | None, by: str, reason: str
) -> Begun | Refusal | RedriveUnknown | HandoverBlockers:
    """Have AWS move the DLQ's visible messages; return AWS's task (`Begun`), or why AWS has not begun a redrive.

    `to`: ARN of the destination; empty: the source queues. `per_second`: messages a second; None: AWS chooses.

    Raises:
        QueueUnreachable: AWS does not list its redrives, so a new redrive could not be followed.
        ApprovalRefused: runs of this DLQ need a second person, and nobody can see first what AWS would move.
    """
    guard.refuse_unseen(dlq.pk, f"{dlq.name}: AWS's own redrive")
    listed = read_redrives(dlq)
    after = max((move.started_at for move in listed), default=None)
    began = lanes.database_now()  # PostgreSQL's clock goes on while this machine is suspended
    claimed = aws_redrive_handover.hand_to_aws(dlq.pk, RedriveRequest(to, per_second, after), by=by, reason=reason)
    if isinstance(claimed, HandoverBlockers):
        return claimed
    if (lanes.database_now() - began).total_seconds() > ASK_WITHIN:
        aws_redrives.record_end(claimed, "AWS was not asked: the hand-over took too long.")
        return Refusal("AWS was not asked, because the hand-over took too long; run the command again")
    answer = begin_move(dlq.arn, to=to, per_second=per_second, role=dlq.role_arn)
    match answer:
        case Begun(handle):
            aws_redrives.record_task(claimed, handle)
            return answer
        case Refused() | NotSent():
            why = f"{answer.code}: {answer.message}" if isinstance(answer, Refused) else answer.why
            aws_redrives.record_end(claimed, f"AWS did not begin: {why}")
            return Refusal(why)
        case Unknown(why):
            return RedriveUnknown(why)
        case _ as never:
            assert_never(never)


def read_redrives(dlq: DeadLetterQueue) -> list[Move]:
    """Return AWS's ten newest redrives of a DLQ, the newest first. By this list, end or update the DLQ's hand-over.

    Raises:
        QueueUnreachable: SQS refused or did not answer.
    """
    own, at = aws_redrives.current(dlq.pk), lanes.database_now()
    listed = move_tasks(dlq.arn, dlq.role_arn)
    _note(own, at, dlq, listed)
    return listed


def _resolve(dlq: DeadLetterQueue, own: AwsRedrive | None, listed: list[Move]) -> None:
    """Update or end a DLQ's hand-over to AWS by AWS's list of redrives.

    `own`: the hand-over, which was read before AWS was asked; None: the DLQ was not handed over.
    """
    active = next((move for move in listed if move.is_active), None)
    if own is None:
        _note_missed(dlq, [move for move in listed if not move.is_active])
        if active is not None:
            _notice(dlq, active, listed)
        return
    if active is not None:
        if not own.handle and active.handle:
            aws_redrives.record_task(own, active.handle)
        return
    since = [move for move in listed if own.after is None or move.started_at > own.after]
    if since:
        _end(dlq, own, _became(since[0]), since)
    elif own.handle:
        _end(dlq, own, "AWS no longer lists it.", moved=True)
    elif own.age > LISTED_WITHIN:
        _end(dlq, own, "AWS never began it.")


def _note_missed(dlq: DeadLetterQueue, ended: Sequence[Move]) -> None:
    """Mark letters that AWS may have moved in redrives that began and ended between two checks."""
    moved = next((move.started_at for move in ended if move.moved), None)
    if ended and (n := aws_redrives.record_missed(dlq.pk, through=ended[0].started_at, moved=moved)):
        logger.warning(
            "%s: a redrive by AWS, begun outside of this service, ended unnoticed: %d letters may be moved.",
            dlq.name, n, extra={"dlq": dlq.name},
        )  # fmt: skip


def _notice(dlq: DeadLetterQueue, active: Move, listed: list[Move]) -> None:
    """Record a redrive that runs now, and that somebody began outside of this service."""
    before = max((move.started_at for move in listed if move.started_at < active.started_at), default=None)
    if aws_redrives.record_unrequested(dlq.pk, to=active.destination_arn or "", handle=active.handle, after=before):
        logger.warning(
            "%s: a redrive by AWS runs, begun outside of this service. Nothing is captured or sent now.",
            dlq.name, extra={"dlq": dlq.name},
        )  # fmt: skip
    elif aws_redrives.current(dlq.pk) is None:
        # Not recorded, because a capture is running. The next capture shows which messages are left.
        moved_by_aws.mark_moved(dlq.pk)


def _end(dlq: DeadLetterQueue, own: AwsRedrive, said: str, since: Sequence[Move] = (), *, moved: bool = False) -> None:
    """End a DLQ's hand-over to AWS (`own`). `said`: how the redrive ended, for people.

    `since`: AWS's redrives after the hand-over, newest first. `moved`: messages may have been moved.
    """
    through = since[0].started_at if since else None
    moved, failed = moved or any(move.moved for move in since), bool(since) and since[0].status == "FAILED"
    if aws_redrives.record_end(own, said, through=through, moved=moved, failed=failed):
        logger.info("%s: AWS's own redrive has ended: %s", dlq.name, said, extra={"dlq": dlq.name})


def _became(move: Move) -> str:
    why = f" ({move.failure})" if move.failure else ""
    return f"AWS says {move.status}{why}: {move.moved:,} messages moved."


def is_moved_by_aws(dlq: DeadLetterQueue) -> bool:
    """Return whether AWS's own redrive is moving the DLQ's messages.

    AWS is asked at most once in 60 s; between two questions, the last answer is returned.
    """
    if aws_redrives.is_time_to_ask(dlq.pk, every=CHECK_EVERY):
        own, at = aws_redrives.current(dlq.pk), lanes.database_now()
        _note(own, at, *_listed(dlq))
    return aws_redrives.current(dlq.pk) is not None


def check_before_resuming(dlq: int | None) -> None:
    """Ask AWS whether it moved messages of a DLQ (None: of all DLQs), before sends that were stopped begin again.

    Letters whose messages AWS moved are then not sent again. If AWS does not answer within 5 s, the letters are sent.
    """
    _look_at(moved_by_aws.exposed_dlqs(dlq))


def check_before_leasing(runs: Sequence[int] | None) -> None:
    """Ask AWS, for each DLQ with due lanes, whether its own redrive moves the DLQ's messages (docs/adr/0032).

    `runs`: only lanes of these runs; None: of all runs. Call it outside transactions. If AWS was asked about all these
    DLQs in the last seconds, this costs one SQL statement.
    """
    if dlqs := aws_redrive_checks.dlqs_to_ask_about(runs):
        _look_at(dlqs)


def _look_at(dlqs: Collection[int]) -> None:
    """Ask AWS about many DLQs in threads, and record each answer when it arrives.

    The threads use no database connection.
    """
    some = list(DeadLetterQueue.objects.filter(pk__in=dlqs).order_by("?"))  # 5 s may be too short for all
    owned = {redrive.dlq_id: redrive for redrive in aws_redrives.all_current()}
    at = lanes.database_now()
    for dlq, listed in run_as_completed(_listed, some, _THREADS, within=_LOOKS_FOR):
        _note(owned.get(dlq.pk), at, dlq, listed)


def _note(own: AwsRedrive | None, at: datetime, dlq: DeadLetterQueue, listed: list[Move] | QueueUnreachable) -> None:
    """Record AWS's answer about a DLQ: its redrives, or an error. `at`: when AWS was asked."""
    match listed:
        case QueueRequestRefused():
            aws_redrive_checks.record_answer(dlq.pk, at=at)  # without the permission, the service still sends
        case QueueUnreachable():
            aws_redrive_checks.record_no_answer(dlq.pk, str(listed))
        case _:
            _resolve(dlq, own, listed)
            aws_redrive_checks.record_answer(dlq.pk, at=at)


def _listed(dlq: DeadLetterQueue) -> tuple[DeadLetterQueue, list[Move] | QueueUnreachable]:
    try:
        return dlq, move_tasks(dlq.arn, dlq.role_arn)
    except QueueUnreachable as error:
        logger.info(
            "Whether AWS's own redrive is at work on %s is not known: %s", dlq.name, error, extra={"dlq": dlq.name}
        )
        return dlq, error


def sweep() -> None:
    """Update all recorded redrives by AWS's lists, and find redrives of DLQs that are not captured regularly."""
    for redrive in aws_redrives.all_current():
        dlq = DeadLetterQueue.objects.get(pk=redrive.dlq_id)
        try:
            read_redrives(dlq)
            aws_redrives.record_status_error(redrive, "")
        except QueueUnreachable as error:
            aws_redrives.record_status_error(redrive, str(error))
            logger.warning(
                "What became of AWS's own redrive of %s is not known: %s", dlq.name, error, extra={"dlq": dlq.name}
            )
    _look_at(
        [dlq_id for dlq_id in moved_by_aws.exposed_dlqs() if aws_redrives.is_time_to_ask(dlq_id, every=CHECK_EVERY)]
    )


@dataclass(frozen=True, slots=True)
class Cancelling:
    """AWS is stopping the redrive. `moved`: number of messages that it has moved; they stay moved."""

    moved: int


@dataclass(frozen=True, slots=True)
class NothingToCancel:
    """AWS's redrive is not active, so it cannot be cancelled.

    `became`: how the newest redrive ended, for people; empty: AWS lists no redrive.
    """

    became: str


def cancel(dlq: DeadLetterQueue, *, by: str, reason: str) -> Cancelling | NothingToCancel | Refusal | RedriveUnknown:
    """Have AWS stop the DLQ's redrive, no matter who began the redrive; return what AWS answered.

    Raises:
        QueueUnreachable: AWS does not list its redrives.
    """
    listed = read_redrives(dlq)
    active = next((move for move in listed if move.is_active), None)
    if active is None:
        return NothingToCancel(_became(listed[0]) if listed else "")
    if not active.handle:
        return Cancelling(active.moved)  # AWS shows no handle of a redrive that is being cancelled
    aws_redrives.record_cancel(dlq.pk, by=by, reason=reason)
    match cancel_move(dlq.arn, active.handle, dlq.role_arn):
        case int(moved):
            read_redrives(dlq)
            return Cancelling(moved)
        case Refused(code, message):
            newest = read_redrives(dlq)[0]  # the redrive may have ended meanwhile
            return Refusal(f"{code}: {message}") if newest.is_active else NothingToCancel(_became(newest))
        case NotSent(why):
            return Refusal(why)
        case Unknown(why):
            return RedriveUnknown(why)
        case _ as never:
            assert_never(never)
