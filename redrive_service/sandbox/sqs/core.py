"""The local SQS as a pure, deterministic state machine."""

from random import Random

from redrive_service.sandbox.sqs.actions.registry import ACTIONS
from redrive_service.sandbox.sqs.api.call_record import Record
from redrive_service.sandbox.sqs.api.errors import SqsError
from redrive_service.sandbox.sqs.api.parameters import Answer, Request
from redrive_service.sandbox.sqs.queues.account import Account

DEFAULT_REGION = "us-east-1"


class LocalSqs:
    """SQS without a clock, dice or a network of its own.

    The same calls at the same times with the same dice give the same answers. Whatever happens by itself - visibility,
    delay and retention running out, move tasks - happens at its own due time when a later call arrives, as if somebody
    had been there; whether anybody looked in between makes no difference.
    """

    def __init__(self, dice: Random, *, region: str = DEFAULT_REGION, in_flight_limit: int = 120_000) -> None:
        self._account = Account(dice, region, in_flight_limit)

    @property
    def now(self) -> float:
        """The latest time this SQS has seen, in seconds."""
        return self._account.now

    @property
    def record(self) -> Record:
        """What the last call did; a new record for every call."""
        return self._account.record

    def handle(self, action: str, request: Request, *, now: float, address: str = "http://sqs.local") -> Answer:
        """Return the answer to one call, or SqsError. `now` in seconds; going back is taken as standing still.

        ReceiveMessage does not wait: where it finds nothing, `record.wait` says how long the caller may ask again.
        `address` is what queue URLs in answers begin with. What the request holds is kept, not copied; leave it as it
        is.
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
        """Let happen what is due by `now`."""
        account = self._account
        timers = account.timers
        while (due := timers.due_by(now)) is not None:
            account.now = max(account.now, due)
            timers.fire_next()
        account.now = max(account.now, now)

    def next_due(self) -> float | None:
        """When something happens by itself next, in seconds of the clock, or None."""
        return self._account.timers.next_due()

    def take_woken(self) -> list[str]:
        """The names of queues that got something to hand out (or were deleted) since this was last asked."""
        woken = self._account.woken
        if not woken:
            return []
        names = sorted(woken) if len(woken) > 1 else [*woken]
        woken.clear()
        return names

    def blank(self) -> "LocalSqs":
        """An SQS in which nothing has happened, that goes on throwing the same dice."""
        account = self._account
        return LocalSqs(account.dice, region=account.region, in_flight_limit=account.in_flight_limit)

    def could_hand_out(self, queue: str, *, now: float) -> bool:
        """Return whether a receive from the queue of this name would be given something."""
        self.advance(now)
        found = self._account.queues.get(queue)
        return found is not None and found.has_something()
