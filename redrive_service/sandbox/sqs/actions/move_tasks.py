"""Message move tasks: AWS's own redrive out of a dead-letter queue, at a rate, over the injected clock."""

from base64 import b64decode, urlsafe_b64encode
from typing import Final, Literal

import orjson

from redrive_service.sandbox.sqs.api.errors import QUERY_CODES, SqsError, invalid_parameter, invalid_value
from redrive_service.sandbox.sqs.api.parameters import Answer, Request, required_text, text, whole, whole_between
from redrive_service.sandbox.sqs.queues.account import Account
from redrive_service.sandbox.sqs.queues.message import READY, Message
from redrive_service.sandbox.sqs.queues.queue import Queue

FASTEST: Final = 500
MOST_LISTED: Final = 10
# A task does its work in portions, this many seconds apart; slower tasks move one message at a time.
_PORTION: Final = 0.1

Status = Literal["RUNNING", "COMPLETED", "CANCELLING", "CANCELLED", "FAILED"]


class MoveTask:
    """One task: moves what was visible in its source at the start, never faster than its rate.

    Without a destination each message goes to the queue it died in. A message keeps its content; it gets a new id and
    enqueue time, and its receive count starts again. What is in flight is not moved.
    """

    def __init__(self, account: Account, source: Queue, destination_arn: str | None, rate: int | None) -> None:
        self._account = account
        self._source = source
        self.task_id = account.new_id()
        self.source_arn = source.arn
        self.destination_arn = destination_arn
        self.rate = rate
        self.status: Status = "RUNNING"
        self.failure: str | None = None
        self.moved = 0
        self.to_move = source.counts[READY]
        self.started_at = account.now
        self.timer = 0
        self._set_next()

    @property
    def active(self) -> bool:
        """Whether it occupies its source queue."""
        return self.status in {"RUNNING", "CANCELLING"}

    @property
    def handle(self) -> str:
        """What CancelMessageMoveTask knows it by."""
        return urlsafe_b64encode(orjson.dumps({"taskId": self.task_id, "sourceArn": self.source_arn})).decode()

    def fire(self, due: float) -> None:
        """Moves what the rate allows by `due`."""
        if self.status == "CANCELLING":
            self.status = "CANCELLED"
            return
        allowed = int((due - self.started_at) * (self.rate or FASTEST) + 0.5)
        while self.status == "RUNNING" and self.moved < min(allowed, self.to_move):
            message = self._source.movable()
            if message is None:
                self.to_move = self.moved
            else:
                self._move(message, due)
        if self.status == "RUNNING" and self.moved >= self.to_move:
            self.status = "COMPLETED"
        if self.active:
            self._set_next()

    def cancel(self) -> None:
        """Stops before the next portion; what was moved stays moved."""
        self.status = "CANCELLING"

    def shown(self) -> Answer:
        """One entry of ListMessageMoveTasks; the handle is only shown while the task runs."""
        entry: Answer = {
            "TaskHandle": self.handle if self.status == "RUNNING" else None,
            "Status": self.status,
            "SourceArn": self.source_arn,
            "DestinationArn": self.destination_arn,
            "MaxNumberOfMessagesPerSecond": self.rate,
            "ApproximateNumberOfMessagesMoved": self.moved,
            "ApproximateNumberOfMessagesToMove": self.to_move,
            "FailureReason": self.failure,
            "StartedTimestamp": int(self.started_at * 1000),
        }
        return {name: value for name, value in entry.items() if value is not None}

    def _set_next(self) -> None:
        rate = self.rate or FASTEST
        portion = max(1, int(rate * _PORTION))
        self._account.timers.set(self, self.started_at + (self.moved + portion) / rate)

    def _move(self, message: Message, now: float) -> None:
        arn = self.destination_arn or message.source_arn
        target = self._account.queue_by_arn(arn) if arn else None
        if target is None:
            self.status = "FAILED"
            self.failure = QUERY_CODES["QueueDoesNotExist"] if arn else "CouldNotDetermineMessageSource"
            return
        moved = self._account.copy_to(target, message, self._account.new_id(), now)
        message.queue.remove(message)
        target.put(moved, now + target.settings.delay, now)
        self.moved += 1


def start_move_task(account: Account, request: Request) -> Answer:
    """Starts moving messages out of a queue that is some queue's dead-letter queue."""
    source = _source(account, required_text(request, "SourceArn"))
    destination_arn = text(request, "DestinationArn")
    rate = whole(request, "MaxNumberOfMessagesPerSecond")
    if rate is not None and not 1 <= rate <= FASTEST:
        reason = f"You must enter a number that's between 1 and {FASTEST}."
        raise invalid_value(rate, "MaxNumberOfMessagesPerSecond", reason)
    if destination_arn:
        _check_destination(account, source, destination_arn)
    if not any(_names(queue, source) for queue in account.queues.values()):
        raise invalid_parameter("Source queue must be configured as a Dead Letter Queue.")
    tasks = account.moves.setdefault(source.arn, [])
    if any(task.active for task in tasks):
        raise invalid_parameter(
            "There is already a task running. Only one active task is allowed for a source queue arn at a given time.",
        )
    task = MoveTask(account, source, destination_arn or None, rate)
    tasks.insert(0, task)
    del tasks[MOST_LISTED:]
    account.record.changed = True
    return {"TaskHandle": task.handle}


def list_move_tasks(account: Account, request: Request) -> Answer:
    """The newest tasks of a source queue, newest first."""
    source = _source(account, required_text(request, "SourceArn"))
    most = whole_between(request, "MaxResults", 1, MOST_LISTED) or 1
    return {"Results": [task.shown() for task in account.moves.get(source.arn, [])[:most]]}


def cancel_move_task(account: Account, request: Request) -> Answer:
    """Cancels a running task."""
    task_id, source_arn = _read_handle(required_text(request, "TaskHandle"))
    source = _source(account, source_arn)
    for task in account.moves.get(source.arn, []):
        if task.task_id == task_id:
            if task.status != "RUNNING":
                raise invalid_parameter("Only active tasks can be cancelled.")
            task.cancel()
            account.record.changed = True
            return {"ApproximateNumberOfMessagesMoved": task.moved}
    raise SqsError("ResourceNotFoundException", "Task does not exist.")


def _names(queue: Queue, source: Queue) -> bool:
    policy = queue.settings.redrive
    return policy is not None and policy.target_arn == source.arn


def _source(account: Account, arn: str) -> Queue:
    account.record.queue = arn.rpartition(":")[2]
    return _existing(account, arn, "SourceArn")


def _check_destination(account: Account, source: Queue, arn: str) -> None:
    destination = _existing(account, arn, "DestinationArn")
    if destination is source:
        raise invalid_parameter("Source queue arn and destination queue arn cannot be the same.")
    if destination.fifo != source.fifo:
        raise invalid_parameter("Source queue and destination queue must be of the same type.")


def _existing(account: Account, arn: str, parameter: str) -> Queue:
    queue = account.queue_by_arn(arn)
    if queue is None:
        sentence = f"The resource that you specified for the {parameter} parameter doesn't exist."
        raise SqsError("ResourceNotFoundException", sentence)
    return queue


def _read_handle(handle: str) -> tuple[str, str]:
    try:
        content = orjson.loads(b64decode(handle, altchars=b"-_", validate=True))
    except ValueError:
        content = None
    if isinstance(content, dict):
        task_id, source_arn = content.get("taskId"), content.get("sourceArn")
        if isinstance(task_id, str) and isinstance(source_arn, str):
            return task_id, source_arn
    raise invalid_parameter("Value for parameter TaskHandle is invalid.")
