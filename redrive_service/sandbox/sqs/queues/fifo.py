"""A FIFO queue: the messages of each message group are received strictly in order.

A receive returns messages of a group only up to the first message that is in flight or delayed. So no message is
received while an earlier message of its group is in flight. A message that became visible again is received before all
later messages. Recorded answers of AWS show this, although AWS's API page seems to say that a group is blocked until
all its messages are visible again.
"""

from collections import deque
from collections.abc import Iterator

from redrive_service.sandbox.sqs.queues.attributes import Settings
from redrive_service.sandbox.sqs.queues.deduplication import Deduplication, Key
from redrive_service.sandbox.sqs.queues.message import DELAYED, GONE, READY, Message
from redrive_service.sandbox.sqs.queues.queue import Identity, Queue
from redrive_service.sandbox.sqs.queues.receive_attempts import ReceiveAttempts
from redrive_service.sandbox.sqs.queues.timers import Timers


class Group:
    """The messages of one message group, in order. Deleted and moved messages stay in the list for a while.

    `gone` is the number of these messages. Their state is GONE.
    """

    __slots__ = ("gone", "messages", "name", "waiting")

    def __init__(self, name: str) -> None:
        self.name = name
        self.messages: deque[Message] = deque()
        self.gone = 0
        self.waiting = False  # whether the group is in the queue's list of groups with visible messages

    def head(self) -> Message | None:
        """Return the first message that is still in the queue, or None if the group has no message."""
        messages = self.messages
        while messages and messages[0].state == GONE:
            messages.popleft()
            self.gone -= 1
        return messages[0] if messages else None

    def visible_beginning(self) -> Iterator[Message]:
        """Yield the messages before the first message that is in flight or delayed."""
        for message in self.messages:
            if message.state == READY:
                yield message
            elif message.state != GONE:
                break

    def note_removal(self) -> None:
        """Count a message that is now GONE. If most messages in the list are GONE, drop them, to keep reads fast."""
        self.gone += 1
        if 2 * self.gone > len(self.messages):
            self.messages = deque(message for message in self.messages if message.state != GONE)
            self.gone = 0


class FifoQueue(Queue):
    """A FIFO queue. It has a list of the message groups with visible messages. A receive takes the first group."""

    fifo = True

    def __init__(self, identity: Identity, settings: Settings, timers: Timers, woken: set[str]) -> None:
        super().__init__(identity, settings, timers, woken)
        self._groups: dict[str, Group] = {}
        self._line: deque[Group] = deque()
        self.deduplication = Deduplication()
        self.attempts = ReceiveAttempts()

    def deduplication_key(self, deduplication_id: str, group: str) -> Key:
        """Return the key that duplicates have in common.

        This is the deduplication id. If DeduplicationScope is messageGroup, it is message group and deduplication id.
        """
        return (group, deduplication_id) if self.settings.scoped_by_group else deduplication_id

    def put(self, message: Message, visible_at: float, now: float) -> None:  # noqa: D102 - see Queue
        self._group_of(message).messages.append(message)
        super().put(message, visible_at, now)

    def remove(self, message: Message) -> None:  # noqa: D102 - see Queue
        super().remove(message)
        group = self._groups.get(message.group or "")
        if group is not None:
            group.note_removal()
            self._offer(group)

    def take(self, most: int, receives: float) -> tuple[list[Message], list[Message]]:  # noqa: D102 - see Queue
        taken: list[Message] = []
        spent: list[Message] = []
        while self._line and len(taken) < most:
            group = self._line.popleft()
            group.waiting = False
            for message in group.visible_beginning():
                if message.receive_count >= receives:
                    spent.append(message)
                elif len(taken) < most:
                    taken.append(message)
                else:
                    break
        return taken, spent

    def movable(self) -> Message | None:  # noqa: D102 - see Queue
        while self._line:
            head = self._line[0].head()
            if head is not None and head.state == READY:
                return head
            self._line.popleft().waiting = False
        return None

    def has_something(self) -> bool:  # noqa: D102 - see Queue
        heads = (group.head() for group in self._line)
        return any(head is not None and head.state == READY for head in heads)

    def delay_anew(self, now: float) -> None:
        """Apply a changed delay to the messages in the queue. SQS does this for FIFO queues only."""
        delay = self.settings.delay
        for message in [*self.messages.values()]:
            if message.receive_count or message.state not in (READY, DELAYED):
                continue
            until = message.sent_at + delay
            if message.state == DELAYED and until <= now:
                self.timers.cancel(message)
                self.wake(message)
            elif until > now:
                self.counts[message.state] -= 1
                self.counts[DELAYED] += 1
                message.state = DELAYED
                self.timers.set(message, until)

    def _line_up(self, message: Message) -> None:
        self._offer(self._group_of(message))

    def _group_of(self, message: Message) -> Group:
        name = message.group or ""
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = Group(name)
        return group

    def _offer(self, group: Group) -> None:
        """If the first message of the group is visible, add the group to the list of groups, else remove the group.

        Receives do not do this. A receive without messages is not in the journal, so it must not change the order of
        the groups.
        """
        head = group.head()
        if head is None:
            self._groups.pop(group.name, None)
        elif head.state == READY and not group.waiting:
            group.waiting = True
            self._line.append(group)
            self.woken.add(self.name)
        elif head.state != READY and group.waiting:
            group.waiting = False
            self._line.remove(group)

    def _forget(self) -> None:
        self._groups = {}
        self._line.clear()
        self.deduplication = Deduplication()
        self.attempts = ReceiveAttempts()
