"""The queues of one account, by name and ARN. They share a clock and a generator of ids."""

from random import Random
from typing import Final

from redrive_service.sandbox.sqs.api.errors import SqsError
from redrive_service.sandbox.sqs.queues.attributes import Settings
from redrive_service.sandbox.sqs.queues.fifo import FifoQueue
from redrive_service.sandbox.sqs.queues.message import Message
from redrive_service.sandbox.sqs.queues.queue import Identity, Queue
from redrive_service.sandbox.sqs.queues.standard import StandardQueue
from redrive_service.sandbox.sqs.queues.timers import Timers

ACCOUNT_ID: Final = "000000000000"
# Seconds after which the name of a deleted queue can be used again (AWS, DeleteQueue).
_NAME_BLOCKED: Final = 60.0
# The first sequence number: 20 digits, as on AWS. All queues share the numbers, which only rise.
_FIRST_SEQUENCE_NUMBER: Final = 18_870_000_000_000_000_000
_SEQUENCE_STEP: Final = 256
# RFC 9562: version 4 in bits 76 to 79, variant 0b10 in bits 62 and 63; the other bits are random.
_UUID_4: Final = 4 << 76 | 2 << 62
_FREE_BITS: Final = ~(15 << 76 | 3 << 62)


class Directory:
    """All queues of an account. `now` is the time of the current call. It never goes back."""

    def __init__(self, dice: Random, region: str, in_flight_limit: int) -> None:
        self.dice = dice
        self.region = region
        self.in_flight_limit = in_flight_limit
        self.now = 0.0
        self.address = ""
        self.queues: dict[str, Queue] = {}
        self.deleted_at: dict[str, float] = {}
        self.timers = Timers()
        self.woken: set[str] = set()
        self._sequence_number = _FIRST_SEQUENCE_NUMBER

    def new_id(self) -> str:
        """Return a UUID (version 4) made with the random generator that the caller of the constructor passed."""
        text = (self.dice.getrandbits(128) & _FREE_BITS | _UUID_4).to_bytes(16, "big").hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def next_sequence_number(self) -> str:
        """Return a number that is larger than every number before."""
        self._sequence_number += _SEQUENCE_STEP
        return str(self._sequence_number)

    def queue_by_arn(self, arn: str) -> Queue | None:
        """Return the queue with this ARN, or None if it does not exist."""
        queue = self.queues.get(arn.rpartition(":")[2])
        return queue if queue is not None and queue.arn == arn else None

    def arn_of(self, name: str) -> str:
        """Return the ARN of a queue with this name."""
        return f"arn:aws:sqs:{self.region}:{ACCOUNT_ID}:{name}"

    def url_of(self, queue: Queue) -> str:
        """Return the queue's URL. It begins with the address that the client used."""
        return f"{self.address}/{ACCOUNT_ID}/{queue.name}"

    def open_queue(self, name: str, settings: Settings) -> Queue:
        """Create and return a queue. Raises SqsError if a queue of this name was deleted less than 60 s ago."""
        deleted_at = self.deleted_at.pop(name, None)
        if deleted_at is not None and self.now < deleted_at + _NAME_BLOCKED:
            self.deleted_at[name] = deleted_at
            sentence = (
                "You must wait 60 seconds after deleting a queue before you can create another with the same name."
            )
            raise SqsError("QueueDeletedRecently", sentence)
        identity = Identity(name=name, arn=self.arn_of(name), tag=f"{self.dice.getrandbits(32):08x}")
        kind = FifoQueue if settings.fifo else StandardQueue
        queue = kind(identity, settings, self.timers, self.woken)
        queue.created_at = queue.modified_at = self.now
        queue.in_flight_limit = self.in_flight_limit
        self.queues[name] = queue
        return queue

    def close_queue(self, queue: Queue) -> None:
        """Delete the queue and its messages."""
        queue.purge()
        del self.queues[queue.name]
        self.deleted_at[queue.name] = self.now
        self.woken.add(queue.name)

    def copy_to(self, queue: Queue, message: Message, message_id: str, now: float) -> Message:
        """Return a new message for `queue` with the same content, sent `now`. It is not in the queue yet."""
        return Message(
            queue=queue,
            key=queue.next_key(),
            message_id=message_id,
            content=message.content,
            sent_at=now,
            group=message.group,
            deduplication_id=message.deduplication_id if queue.fifo else None,
            sequence_number=self.next_sequence_number() if queue.fifo else None,
        )
