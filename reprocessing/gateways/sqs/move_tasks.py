"""Start, list and cancel message move tasks, which are AWS's native redrives of a DLQ."""

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

#: Highest rate (messages a second) that AWS accepts for a task.
FASTEST: Final = 500
_MOST_LISTED: Final = 10
_ACTIVE: Final = frozenset({"RUNNING", "CANCELLING"})


@dataclass(frozen=True, slots=True)
class Move:
    """One message move task.

    Attributes:
        status: RUNNING, CANCELLING, COMPLETED, CANCELLED or FAILED.
        destination_arn: the destination; None: each message returns to its source queue.
        moved: number of messages that were moved, approximately.
        to_move: number of messages to move; None: AWS does not say.
        started_at: start time by AWS's clock.
        handle: the task handle, which is needed to cancel the task; empty if the task is not running.
        failure: why the task failed; empty if it did not fail.
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
        """Return whether the task may still move messages (it is RUNNING or CANCELLING)."""
        return self.status in _ACTIVE


@dataclass(frozen=True, slots=True)
class Begun:
    """AWS has started a move task. `handle`: the task handle, with which it can be cancelled."""

    handle: str


def move_tasks(arn: str, role: str = "") -> list[Move]:
    """Return the ten newest move tasks out of the queue with this ARN, newest first.

    `role`: the ARN of the role to assume. If empty, the process's own role is used.

    Raises:
        QueueUnreachable: SQS refused or did not answer.
    """
    with reaching(arn, "ListMessageMoveTasks"):
        sqs = client(arn_of_queue(arn).region, role=role)
        answer = sqs.list_message_move_tasks(SourceArn=arn, MaxResults=_MOST_LISTED)
    return sorted(map(_move, answer.get("Results", [])), key=lambda task: task.started_at, reverse=True)


def active_moves(arn: str, role: str = "") -> list[Move]:
    """Return the move tasks that may still move messages, newest first, from the queue's ten newest tasks.

    `role`: the ARN of the role to assume. If empty, the process's own role is used.

    Raises:
        QueueUnreachable: SQS refused or did not answer.
    """
    return [task for task in move_tasks(arn, role) if task.is_active]


def begin_move(arn: str, *, to: str, per_second: int | None, role: str = "") -> Begun | Refused | NotSent | Unknown:
    """Start a move task for the visible messages of a dead-letter queue. The request is not retried.

    Args:
        arn: the ARN of the DLQ.
        to: the ARN of the destination; empty: each message returns to its source queue.
        per_second: messages a second, 1 to 500 (`FASTEST`); None: AWS chooses the rate.
        role: the ARN of the role to assume. If empty, the process's own role is used.

    Returns:
        Refused or NotSent: no task was started. Unknown: SQS did not answer, so a task may have been started.
    """
    asked: dict[str, Any] = {"SourceArn": arn}
    asked |= {"DestinationArn": to} if to else {}
    asked |= {"MaxNumberOfMessagesPerSecond": per_second} if per_second else {}
    try:
        return Begun(client(arn_of_queue(arn).region, role=role).start_message_move_task(**asked)["TaskHandle"])
    except (BotoCoreError, ClientError) as error:
        return _failed(error)


def cancel_move(arn: str, handle: str, role: str = "") -> int | Refused | NotSent | Unknown:
    """Cancel a move task. Return how many messages it has moved; these are not moved back.

    Refused or NotSent: the task was not cancelled. Unknown: SQS did not answer, so the task may have been cancelled.
    """
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
