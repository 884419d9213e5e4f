"""Follow AWS's own redrives: ask AWS which redrives it runs, and update or end the hand-overs of DLQs to AWS.

A hand-over is a record in a DLQ's row: it says that AWS's redrive may move the DLQ's messages. Until it ends, this
service does not use the DLQ. The record is read before AWS's list of redrives. A hand-over that begins after AWS was
asked is missing in the list, and would otherwise be taken for ended.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

from reprocessing.domain.errors import QueueRequestRefused, QueueUnreachable
from reprocessing.gateways.aws.request_threads import run_as_completed
from reprocessing.gateways.sqs import Move, move_tasks
from reprocessing.models import DeadLetterQueue
from reprocessing.store.aws import aws_redrive_checks, aws_redrives
from reprocessing.store.aws.aws_redrives import AwsRedrive
from reprocessing.store.capture import moved_by_aws
from reprocessing.store.ordering import lanes

logger = logging.getLogger(__name__)

#: If AWS does not list a redrive this many seconds after its hand-over, AWS never began the redrive.
LISTED_WITHIN: Final = 60.0
#: Seconds between two checks for redrives that somebody began outside of this service.
CHECK_EVERY: Final = 60.0
_THREADS: Final = 16
_LOOKS_FOR: Final = 5.0  #: in one check of many DLQs, AWS is asked about no further DLQ after this many seconds


def read_redrives(dlq: DeadLetterQueue) -> list[Move]:
    """Return AWS's ten newest redrives of a DLQ, the newest first. Update the DLQ's hand-over, or end it, by this list.

    Raises:
        QueueUnreachable: SQS refused or did not answer.
    """
    own, at = aws_redrives.current(dlq.pk), lanes.database_now()
    listed = move_tasks(dlq.arn, dlq.role_arn)
    _note(own, at, dlq, listed)
    return listed


def _resolve(dlq: DeadLetterQueue, own: AwsRedrive | None, listed: list[Move]) -> None:
    """Update or end a DLQ's hand-over to AWS, as AWS's list of redrives shows. Also record redrives that others began.

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
        _end(dlq, own, result(since[0]), since)
    elif own.handle:
        _end(dlq, own, "AWS no longer lists it.", moved=True)
    elif own.age > LISTED_WITHIN:
        _end(dlq, own, "AWS never began it.")


def _note_missed(dlq: DeadLetterQueue, ended: Sequence[Move]) -> None:
    """Mark letters that AWS may have moved in redrives that began and ended between two checks.

    `ended`: redrives that have ended, the newest first.
    """
    moved = next((move.started_at for move in ended if move.moved), None)
    if ended and (n := aws_redrives.record_missed(dlq.pk, through=ended[0].started_at, moved=moved)):
        logger.warning(
            "%s: a redrive by AWS, begun outside of this service, ended unnoticed: %d letters may be moved.",
            dlq.name, n, extra={"dlq": dlq.name},
        )  # fmt: skip


def _notice(dlq: DeadLetterQueue, active: Move, listed: list[Move]) -> None:
    """Record a redrive that somebody began outside of this service, and that still runs."""
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
    """End a DLQ's hand-over to AWS (`own`).

    `said`: how the redrive ended, as text for people. `since`: AWS's redrives after the hand-over, newest first.
    `moved`: whether AWS may have moved messages.
    """
    through = since[0].started_at if since else None
    moved, failed = moved or any(move.moved for move in since), bool(since) and since[0].status == "FAILED"
    if aws_redrives.record_end(own, said, through=through, moved=moved, failed=failed):
        logger.info("%s: AWS's own redrive has ended: %s", dlq.name, said, extra={"dlq": dlq.name})


def result(move: Move) -> str:
    """Return a sentence for people: how a redrive by AWS ended, or that it is still running."""
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
    """Before stopped sends resume, ask AWS whether it moved messages of a DLQ (None: of any DLQ).

    Letters whose messages AWS moved are then not sent again. If AWS does not answer within 5 s, the letters are sent.
    """
    _look_at(moved_by_aws.exposed_dlqs(dlq))


def check_before_leasing(runs: Sequence[int] | None) -> None:
    """Before lanes are leased for sending, ask AWS whether its own redrive moves messages of the lanes' DLQs.

    The reason is in docs/adr/0032. `runs`: only lanes of these runs; None: of all runs. Call this function outside
    transactions. If AWS answered about all these DLQs in the last 45 s, it costs one SQL statement.
    """
    if dlqs := aws_redrive_checks.dlqs_to_ask_about(runs):
        _look_at(dlqs)


def _look_at(dlqs: Collection[int]) -> None:
    """Ask AWS about many DLQs in threads. Record each answer when it arrives.

    The threads use no database connection.
    """
    some = list(DeadLetterQueue.objects.filter(pk__in=dlqs).order_by("?"))  # 5 s may be too short for all
    owned = {redrive.dlq_id: redrive for redrive in aws_redrives.all_current()}
    at = lanes.database_now()
    for dlq, listed in run_as_completed(_listed, some, _THREADS, within=_LOOKS_FOR):
        _note(owned.get(dlq.pk), at, dlq, listed)


def _note(own: AwsRedrive | None, at: datetime, dlq: DeadLetterQueue, listed: list[Move] | QueueUnreachable) -> None:
    """Record what AWS answered about a DLQ: its list of redrives, or an error.

    `own`: the DLQ's hand-over before AWS was asked; None: there was none. `at`: when AWS was asked.
    """
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
    """Update all hand-overs from AWS's lists, and look for redrives that somebody began outside of this service.

    AWS is asked for such redrives only about DLQs that have letters to send and whose messages AWS could move.
    """
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
