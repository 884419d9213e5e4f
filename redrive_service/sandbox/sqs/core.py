"""The local SQS as a pure, deterministic state machine."""

from random import Random

from redrive_service.sandbox.sqs.actions.registry import ACTIONS
from redrive_service.sandbox.sqs.api.call_record import Record
from redrive_service.sandbox.sqs.api.errors import SqsError
from redrive_service.sandbox.sqs.api.parameters import Answer, Request
from redrive_service.sandbox.sqs.queues.account import Account

DEFAULT_REGION = "us-east-1"


class LocalSqs:
    """SQS without its own clock, random generator or network.

    The same calls at the same times with the same random generator give the same answers. Timed events - the end of a
    visibility timeout, delay or retention, move tasks - happen at their due times when a later call arrives.
    How many calls come in between makes no difference.
    """

    def __init__(self, dice: Random, *, region: str = DEFAULT_REGION, in_flight_limit: int = 120_000) -> None:
        self._account = Account(dice, region, in_flight_limit)

    @property
    def now(self) -> float:
        """The latest time that a caller has passed, in seconds."""
        return self._account.now

    @property
    def record(self) -> Record:
        """What the last call did; every call has a new record."""
        return self._account.record

    def handle(self, action: str, request: Request, *, now: float, address: str = "http://sqs.local") -> Answer:
        """Return the answer to one call, or raise SqsError. `now`: seconds; a time before the last call's is ignored.

        ReceiveMessage does not wait: without messages, `record.wait` says how long the caller may repeat the call.
        `address` is the beginning of queue URLs in answers. The request's content is stored, not copied: do not change
        it.
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
        """Return when the next timed event is due, in seconds of the clock; None: no event is planned."""
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
