"""Everything one account has: its queues, its clock and its dice."""

import re
from math import inf
from random import Random
from typing import TYPE_CHECKING, Final

from redrive_service.sandbox.sqs.api.call_record import Record
from redrive_service.sandbox.sqs.api.errors import SqsError, invalid_parameter, no_such_queue
from redrive_service.sandbox.sqs.queues.attributes import Settings
from redrive_service.sandbox.sqs.queues.fifo import FifoQueue
from redrive_service.sandbox.sqs.queues.message import Message
from redrive_service.sandbox.sqs.queues.queue import Identity, Queue
from redrive_service.sandbox.sqs.queues.standard import StandardQueue
from redrive_service.sandbox.sqs.queues.timers import Timers

if TYPE_CHECKING:
    from redrive_service.sandbox.sqs.actions.move_tasks import MoveTask

ACCOUNT_ID: Final = "000000000000"
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,80}", re.ASCII)
_LONGEST_NAME: Final = 80
_FIFO_SUFFIX: Final = ".fifo"
# A deleted queue's name is free again after this many seconds ([API] DeleteQueue).
_NAME_REST: Final = 60.0
# Twenty digits, as AWS's are; strictly rising over all queues.
_FIRST_SEQUENCE_NUMBER: Final = 18_870_000_000_000_000_000
_SEQUENCE_STEP: Final = 256
# RFC 9562: version 4 in bits 76 to 79, variant 0b10 in bits 62 and 63; the others are free.
_UUID_4: Final = 4 << 76 | 2 << 62
_FREE_BITS: Final = ~(15 << 76 | 3 << 62)


class Account:
    """The state of the local SQS. `now` is the time of the call being handled and never goes back."""

    def __init__(self, dice: Random, region: str, in_flight_limit: int) -> None:
        self.dice = dice
        self.region = region
        self.in_flight_limit = in_flight_limit
        self.now = 0.0
        self.address = ""
        self.queues: dict[str, Queue] = {}
        self.deleted_at: dict[str, float] = {}
        self.moves: dict[str, list[MoveTask]] = {}
        self.timers = Timers()
        self.woken: set[str] = set()
        self.record = Record()
        self._sequence_number = _FIRST_SEQUENCE_NUMBER

    # -- ids

    def new_id(self) -> str:
        """A random UUID (version 4) from the dice."""
        text = (self.dice.getrandbits(128) & _FREE_BITS | _UUID_4).to_bytes(16, "big").hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def next_sequence_number(self) -> str:
        """Larger than every one before."""
        self._sequence_number += _SEQUENCE_STEP
        return str(self._sequence_number)

    # -- queues

    def queue_at(self, url: str) -> Queue:
        """The queue with this URL; a bare name is taken too, as AWS does."""
        head, _, name = url.rpartition("/")
        queue = self.queues.get(name)
        self.record.queue = name
        if queue is None or (head and not head.endswith("/" + ACCOUNT_ID)):
            raise no_such_queue()
        return queue

    def queue_by_arn(self, arn: str) -> Queue | None:
        """The queue with this ARN, if there is one here."""
        queue = self.queues.get(arn.rpartition(":")[2])
        return queue if queue is not None and queue.arn == arn else None

    def arn_of(self, name: str) -> str:
        """The ARN that a queue of this name has."""
        return f"arn:aws:sqs:{self.region}:{ACCOUNT_ID}:{name}"

    def url_of(self, queue: Queue) -> str:
        """The queue's URL, under the address the caller used."""
        return f"{self.address}/{ACCOUNT_ID}/{queue.name}"

    def open_queue(self, name: str, settings: Settings) -> Queue:
        """A new queue. The name must be free."""
        deleted_at = self.deleted_at.pop(name, None)
        if deleted_at is not None and self.now < deleted_at + _NAME_REST:
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
        """The queue and all it holds are gone."""
        queue.purge()
        del self.queues[queue.name]
        self.deleted_at[queue.name] = self.now
        self.woken.add(queue.name)

    # -- messages that change their queue

    def copy_to(self, queue: Queue, message: Message, message_id: str, now: float) -> Message:
        """A message of the same content in `queue`: not yet put there, never received, sent `now`."""
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

    def receives_before_burial(self, queue: Queue) -> float:
        """How often a message of `queue` is handed out before it is buried: for ever without a dead-letter queue."""
        policy = queue.settings.redrive
        return inf if policy is None or self.queue_by_arn(policy.target_arn) is None else policy.most_receives

    def bury(self, message: Message) -> None:
        """Moves a message that was received too often to the dead-letter queue of its queue, if there is one.

        It keeps id, content and receive count. A standard queue keeps its SentTimestamp; a FIFO one enqueues it anew,
        with the original message id as its deduplication id.
        """
        source = message.queue
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


def check_queue_name(name: str, *, fifo: bool) -> None:
    """Refuses names that SQS does not take: 1 to 80 letters, digits, - and _; FIFO names end in .fifo."""
    stem = name.removesuffix(_FIFO_SUFFIX)
    if fifo and stem == name:
        raise invalid_parameter("The name of a FIFO queue can only include alphanumeric characters, hyphens, or "
                                "underscores, must end with .fifo suffix and be 1 to 80 in length.")  # fmt: skip
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(stem) or (stem != name and not fifo):
        raise invalid_parameter("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
