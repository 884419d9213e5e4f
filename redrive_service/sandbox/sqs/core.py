"""The core of the local SQS: a deterministic state machine without clock, random generator or network."""

from random import Random

from redrive_service.sandbox.sqs.actions.registry import ACTIONS
from redrive_service.sandbox.sqs.api.call_record import Record
from redrive_service.sandbox.sqs.api.errors import SqsError
from redrive_service.sandbox.sqs.api.parameters import Answer, Request
from redrive_service.sandbox.sqs.queues.account import Account

DEFAULT_REGION = "us-east-1"


class LocalSqs:
    """SQS as a state machine. Equal calls at equal times with equal random numbers give equal answers.

    Timed events, such as the end of a visibility timeout, are executed when the next call arrives, each as of its due
    time. So it makes no difference how many calls come in between.
    """

    def __init__(self, dice: Random, *, region: str = DEFAULT_REGION, in_flight_limit: int = 120_000) -> None:
        self._account = Account(dice, region, in_flight_limit)

    @property
    def now(self) -> float:
        """Return the latest time that a caller has passed, in seconds since 1970."""
        return self._account.now

    @property
    def record(self) -> Record:
        """Return the effects of the last call. Every call has a new record."""
        return self._account.record

    def handle(self, action: str, request: Request, *, now: float, address: str = "http://sqs.local") -> Answer:
        """Return the answer to one call, or raise SqsError.

        `now`: the time in seconds since 1970; a time before that of the last call is ignored. `address`: the beginning
        of queue URLs in answers. The content of `request` is stored without a copy, so do not change it later.
        ReceiveMessage does not wait: without messages, `record.wait` says how long the caller may repeat the call.
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
        """Execute the timed events that are due by `now`."""
        account = self._account
        timers = account.timers
        while (due := timers.due_by(now)) is not None:
            account.now = max(account.now, due)
            timers.fire_next()
        account.now = max(account.now, now)

    def next_due(self) -> float | None:
        """Return when the next timed event is due, in seconds since 1970; None: no event is planned."""
        return self._account.timers.next_due()

    def take_woken(self) -> list[str]:
        """Return the names of queues that got a visible message, or were deleted, since this method was last called."""
        woken = self._account.woken
        if not woken:
            return []
        names = sorted(woken) if len(woken) > 1 else [*woken]
        woken.clear()
        return names

    def blank(self) -> "LocalSqs":
        """Return a new, empty SQS with the same random generator, region and limit of messages in flight."""
        account = self._account
        return LocalSqs(account.dice, region=account.region, in_flight_limit=account.in_flight_limit)

    def could_hand_out(self, queue: str, *, now: float) -> bool:
        """Return whether a receive from the queue of this name would return a message."""
        self.advance(now)
        found = self._account.queues.get(queue)
        return found is not None and found.has_something()
