"""The core of the local SQS: a deterministic state machine. Callers pass the time, random numbers and requests."""

from random import Random

from redrive_service.sandbox.sqs.actions.registry import ACTIONS
from redrive_service.sandbox.sqs.api.call_record import Record
from redrive_service.sandbox.sqs.api.errors import SqsError
from redrive_service.sandbox.sqs.api.parameters import Answer, Request
from redrive_service.sandbox.sqs.queues.account import Account

DEFAULT_REGION = "us-east-1"


class LocalSqs:
    """SQS as a state machine. Equal calls at equal times with equal random numbers give equal answers.

    Timed events, such as the end of a visibility timeout, are executed when the next call arrives, but as if at their
    own times. So it makes no difference when, and how often, other calls arrive.
    """

    def __init__(self, dice: Random, *, region: str = DEFAULT_REGION, in_flight_limit: int = 120_000) -> None:
        self._account = Account(dice, region, in_flight_limit)

    @property
    def now(self) -> float:
        """Return the latest time that a caller has passed, in seconds since 1970."""
        return self._account.now

    @property
    def record(self) -> Record:
        """Return the record of the last call: what it did with messages. Every call has a new record."""
        return self._account.record

    def handle(self, action: str, request: Request, *, now: float, address: str = "http://sqs.local") -> Answer:
        """Return the answer to one call, or raise SqsError.

        ReceiveMessage does not wait. If it finds no message, `record.wait` says for how many seconds the caller may
        repeat the call.

        Args:
            action: name of the action, such as "SendMessage".
            request: its parameters. They are stored without a copy, so do not change them later.
            now: the time in seconds since 1970. If it is before the time of the last call, the last time is used.
            address: the beginning of queue URLs in answers.
        """
        account = self._account
        account.record = Record()
        act = ACTIONS.get(action)
        if act is None:
            raise SqsError("UnknownOperationException", f"SQS has no action {action!r}.")
        self.advance(now)
        account.address = address
        return act(account, request)

    def advance(self, now: float) -> None:
        """Execute the timed events, such as ends of visibility timeouts, whose times are not after `now`."""
        account = self._account
        timers = account.timers
        while (due := timers.due_by(now)) is not None:
            account.now = max(account.now, due)
            timers.fire_next()
        account.now = max(account.now, now)

    def next_due(self) -> float | None:
        """Return the time of the next timed event in seconds since 1970, or None if no event is planned."""
        return self._account.timers.next_due()

    def take_woken(self) -> list[str]:
        """Return the names of queues that got a visible message, or were deleted, since the last call of this method.

        The server then answers receives that wait for messages of these queues.
        """
        woken = self._account.woken
        if not woken:
            return []
        names = sorted(woken) if len(woken) > 1 else [*woken]
        woken.clear()
        return names

    def blank(self) -> "LocalSqs":
        """Return a new, empty `LocalSqs` with the same random generator, region and limit of messages in flight."""
        account = self._account
        return LocalSqs(account.dice, region=account.region, in_flight_limit=account.in_flight_limit)

    def could_hand_out(self, queue: str, *, now: float) -> bool:
        """Return whether a receive from the queue of this name would return a message."""
        self.advance(now)
        found = self._account.queues.get(queue)
        return found is not None and found.has_something()
