"""The AWS account of the local SQS: its queues, its move tasks (AWS's own redrives), and the current call's record."""

from math import inf
from random import Random

from redrive_service.sandbox.sqs.api.call_record import Record
from redrive_service.sandbox.sqs.api.errors import no_such_queue
from redrive_service.sandbox.sqs.queues.directory import ACCOUNT_ID, Directory
from redrive_service.sandbox.sqs.queues.message import Message
from redrive_service.sandbox.sqs.queues.move_task import MoveTask
from redrive_service.sandbox.sqs.queues.queue import Queue


class Account(Directory):
    """The whole state of the local SQS: queues, messages, move tasks (AWS's own redrives), timers and time."""

    def __init__(self, dice: Random, region: str, in_flight_limit: int) -> None:
        super().__init__(dice, region, in_flight_limit)
        self.moves: dict[str, list[MoveTask]] = {}
        self.record = Record()

    def queue_at(self, url: str) -> Queue:
        """Return the queue with this URL or, as on AWS, with this name. Raises SqsError if it does not exist."""
        head, _, name = url.rpartition("/")
        queue = self.queues.get(name)
        self.record.queue = name
        if queue is None or (head and not head.endswith("/" + ACCOUNT_ID)):
            raise no_such_queue()
        return queue

    def max_receive_count(self, queue: Queue) -> float:
        """Return the `maxReceiveCount` of the queue, or infinity if it has no dead-letter queue."""
        policy = queue.settings.redrive
        return inf if policy is None or self.queue_by_arn(policy.target_arn) is None else policy.most_receives

    def dead_letter(self, source: Queue, message: Message) -> None:
        """Move a message that was received too often from the queue `source` to its dead-letter queue, if it has one.

        The message keeps its id, content and receive count. In a standard queue, it also keeps its SentTimestamp. In a
        FIFO queue, it gets a new SentTimestamp, and its message id becomes its deduplication id.
        """
        policy = source.settings.redrive
        target = self.queue_by_arn(policy.target_arn) if policy else None
        if target is None:
            return
        dead = self.copy_to(target, message, message.message_id, self.now)
        dead.receive_count = message.receive_count
        dead.first_received_at = message.first_received_at
        dead.source_arn = source.arn
        if target.fifo:
            dead.deduplication_id = message.message_id
        else:
            dead.sent_at = message.sent_at
        source.remove(message)
        target.put(dead, self.now, self.now)
        self.record.dead_lettered.append((message.message_id, source.name, target.name))
