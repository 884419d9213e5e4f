"""AWS's own redrive: tasks that move what is visible in a dead-letter queue, begun, listed and cancelled."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from reprocessing.domain.replay.verdicts import NotSent, Refused, Unknown
from reprocessing.gateways.aws.clients import client
from reprocessing.gateways.aws.errors import outcome_of, reaching
from reprocessing.gateways.aws.queue_address import arn_of_queue

if TYPE_CHECKING:
    from mypy_boto3_sqs.type_defs import ListMessageMoveTasksResultEntryTypeDef

#: Messages a second that a task may be told to move, at the most; without a word AWS finds a rate by itself.
FASTEST: Final = 500
_MOST_LISTED: Final = 10
_ACTIVE: Final = frozenset({"RUNNING", "CANCELLING"})


@dataclass(frozen=True, slots=True)
class Move:
    """One task.

    Attributes:
        status: RUNNING, CANCELLING, COMPLETED, CANCELLED or FAILED.
        destination_arn: None where each message goes back to the queue it died in.
        to_move: messages to move; None where AWS does not say.
        started_at: by AWS's clock.
        handle: what cancels it; AWS tells it only while it runs.
        failure: why it failed; empty where it did not.
    """

    status: str
    destination_arn: str | None
    moved: int
    to_move: int | None
    started_at: datetime
    handle: str = ""
    failure: str = ""

    @property
    def is_active(self) -> bool:
        """Whether it may move messages yet."""
        return self.status in _ACTIVE


@dataclass(frozen=True, slots=True)
class Begun:
    """AWS has begun a task, and this is its handle."""

    handle: str


def move_tasks(arn: str, role: str = "") -> list[Move]:
    """AWS's own redrives out of the queue with this ARN, the newest ten, newest first, asked under `role`.

    Raises:
        QueueUnreachable: SQS refused or did not answer.
    """
    with reaching(arn, "ListMessageMoveTasks"):
        sqs = client(arn_of_queue(arn).region, role=role)
        answer = sqs.list_message_move_tasks(SourceArn=arn, MaxResults=_MOST_LISTED)
    return sorted(map(_move, answer.get("Results", [])), key=lambda task: task.started_at, reverse=True)


def active_moves(arn: str, role: str = "") -> list[Move]:
    """Those of them that are under way. Raises what `move_tasks` does."""
    return [task for task in move_tasks(arn, role) if task.is_active]


def begin_move(arn: str, *, to: str, per_second: int | None, role: str = "") -> Begun | Refused | NotSent | Unknown:
    """Have AWS move what is visible in a dead-letter queue. It tries nothing twice.

    Args:
        arn: the dlq's.
        to: the destination's; empty: each message goes back to the queue it died in.
        per_second: messages a second, from 1 to FASTEST; None: AWS's own rate.
        role: the ARN of the role that asks.
    """
    asked: dict[str, Any] = {"SourceArn": arn}
    asked |= {"DestinationArn": to} if to else {}
    asked |= {"MaxNumberOfMessagesPerSecond": per_second} if per_second else {}
    try:
        return Begun(client(arn_of_queue(arn).region, role=role).start_message_move_task(**asked)["TaskHandle"])
    except (BotoCoreError, ClientError) as error:
        return _failed(error)


def cancel_move(arn: str, handle: str, role: str = "") -> int | Refused | NotSent | Unknown:
    """Have AWS move no more; how many it has moved by then. What was moved stays moved."""
    try:
        answer = client(arn_of_queue(arn).region, role=role).cancel_message_move_task(TaskHandle=handle)
        return int(answer.get("ApproximateNumberOfMessagesMoved", 0))
    except (BotoCoreError, ClientError) as error:
        return _failed(error)


def _failed(error: Exception) -> Refused | NotSent | Unknown:
    outcome = outcome_of(error)
    return outcome if isinstance(outcome, Refused | NotSent) else Unknown(getattr(outcome, "why", ""))


def _move(task: ListMessageMoveTasksResultEntryTypeDef) -> Move:
    return Move(
        status=task["Status"],
        destination_arn=task.get("DestinationArn"),
        moved=task.get("ApproximateNumberOfMessagesMoved", 0),
        to_move=task.get("ApproximateNumberOfMessagesToMove"),
        started_at=datetime.fromtimestamp(task["StartedTimestamp"] / 1000, UTC),
        handle=task.get("TaskHandle", ""),
        failure=task.get("FailureReason", ""),
    )
