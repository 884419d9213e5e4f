"""Hand a DLQ over to AWS's own redrive, and cancel the redrive.

A hand-over is a record in the DLQ's row. Until it ends, this service does not use the DLQ. It is committed before AWS
is called, and ends at once if AWS refuses or was not called. If the process dies or AWS's answer is lost, the redrive
may have begun: then only AWS's list of redrives ends the hand-over (`follow_redrives`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, assert_never

from reprocessing.domain.replay.verdicts import NotSent, Refused, Unknown
from reprocessing.gateways.sqs import Begun, begin_move, cancel_move
from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.aws.follow_redrives import read_redrives, result
from reprocessing.store.approvals import guard
from reprocessing.store.aws import aws_redrive_handover, aws_redrives
from reprocessing.store.aws.aws_redrive_handover import HandoverBlockers, RedriveRequest
from reprocessing.store.ordering import lanes

#: AWS may be called for this many seconds after the hand-over. The call takes at most 13 s.
ASK_WITHIN: Final = 20.0


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
        ApprovalRefused: runs of this DLQ need a second person. A hand-over cannot be approved, since an approver could
            not see which messages AWS would move.
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
        return NothingToCancel(result(listed[0]) if listed else "")
    if not active.handle:
        return Cancelling(active.moved)  # AWS shows no handle of a redrive that is being cancelled
    aws_redrives.record_cancel(dlq.pk, by=by, reason=reason)
    match cancel_move(dlq.arn, active.handle, dlq.role_arn):
        case int(moved):
            read_redrives(dlq)
            return Cancelling(moved)
        case Refused(code, message):
            newest = read_redrives(dlq)[0]  # the redrive may have ended meanwhile
            return Refusal(f"{code}: {message}") if newest.is_active else NothingToCancel(result(newest))
        case NotSent(why):
            return Refusal(why)
        case Unknown(why):
            return RedriveUnknown(why)
        case _ as never:
            assert_never(never)
