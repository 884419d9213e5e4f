"""AWS's own redrive of a dead-letter queue (StartMessageMoveTask): a task that moves messages at a rate."""

from base64 import urlsafe_b64encode
from typing import Final, Literal

import orjson

from redrive_service.sandbox.sqs.api.errors import QUERY_CODES
from redrive_service.sandbox.sqs.api.parameters import Answer
from redrive_service.sandbox.sqs.queues.directory import Directory
from redrive_service.sandbox.sqs.queues.message import READY, Message
from redrive_service.sandbox.sqs.queues.queue import Queue

FASTEST: Final = 500  # messages/s (AWS, StartMessageMoveTask)
# Seconds between two portions of messages. A task with less than 20 messages/s moves one message at a time.
_PORTION: Final = 0.1

Status = Literal["RUNNING", "COMPLETED", "CANCELLING", "CANCELLED", "FAILED"]


class MoveTask:
    """A task that moves the messages that were visible in `source` at its start, never faster than its rate.

    Without a destination, each message returns to the queue from which it moved to the dead-letter queue. A moved
    message keeps its content, and gets a new id, a new send time and receive count 0. Messages in flight stay.
    """

    def __init__(self, queues: Directory, source: Queue, destination_arn: str | None, rate: int | None) -> None:
        self._queues = queues
        self._source = source
        self.task_id = queues.new_id()
        self.source_arn = source.arn
        self.destination_arn = destination_arn
        self.rate = rate
        self.status: Status = "RUNNING"
        self.failure: str | None = None
        self.moved = 0
        self.to_move = source.counts[READY]
        self.started_at = queues.now
        self.timer = 0
        self._set_next()

    @property
    def active(self) -> bool:
        """Return whether the task still runs. Until it ends, no other task can be started for its queue."""
        return self.status in {"RUNNING", "CANCELLING"}

    @property
    def handle(self) -> str:
        """Return the task's handle for CancelMessageMoveTask."""
        return urlsafe_b64encode(orjson.dumps({"taskId": self.task_id, "sourceArn": self.source_arn})).decode()

    def fire(self, due: float) -> None:
        """Move as many messages as the rate allows until `due`. A timer calls this; `due` is the timer's time."""
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
        """Let the task move no more messages. Messages that it has moved stay where they are."""
        self.status = "CANCELLING"

    def shown(self) -> Answer:
        """Return the task as an entry of ListMessageMoveTasks. The entry has the handle only while the task runs."""
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
        self._queues.timers.set(self, self.started_at + (self.moved + portion) / rate)

    def _move(self, message: Message, now: float) -> None:
        arn = self.destination_arn or message.source_arn
        target = self._queues.queue_by_arn(arn) if arn else None
        if target is None:
            self.status = "FAILED"
            self.failure = QUERY_CODES["QueueDoesNotExist"] if arn else "CouldNotDetermineMessageSource"
            return
        moved = self._queues.copy_to(target, message, self._queues.new_id(), now)
        self._source.remove(message)
        target.put(moved, now + target.settings.delay, now)
        self.moved += 1
