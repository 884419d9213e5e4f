"""Make the shop's events. Some are poison (no consumer can process them), and some are duplicates.

Each event belongs to an account. All events of one account, called spoilt, are poison: their amounts are not numbers.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from random import Random

MOST_OF_AN_ACCOUNT = 4  # max messages of an account
_USUAL_OF_AN_ACCOUNT = 3
_TYPES = ("order.paid", "order.packed", "order.shipped", "order.delivered", "order.refunded", "invoice.sent")
_ONE_IN = 200  # one event in 200 is poison, and one a duplicate
_LETTERS_FOR_POISON = 10  # from this many events on, at least one is poison

SPOILT = "account-spoilt"
OF_SPOILT = 12  # messages of the spoilt account
LETTERS_FOR_SPOILT = 300  # from this many events on, one account is spoilt


@dataclass(frozen=True, slots=True, kw_only=True)
class ShopEvent:
    """A message of the shop. Two messages with the same `event_id` are one event that was published twice by mistake.

    Attributes:
        sequence: the event's number among the account's events, from 1 on.
        poison: whether the event's amount is not a number, so that no consumer can ever process the event.
    """

    event_id: str
    account: str
    sequence: int
    event_type: str
    poison: bool
    amount: str

    def body(self) -> str:
        """Return the event as JSON, which is the body of its message."""
        fields = {"id": self.event_id, "type": self.event_type, "account": self.account, "sequence": self.sequence}
        return json.dumps({**fields, "data": {"amount": self.amount, "currency": "EUR"}})

    def attributes(self) -> dict[str, str]:
        """Return the message attributes, all of type String."""
        return {
            "account": self.account,
            "sequence": str(self.sequence),
            "event_id": self.event_id,
            "event_type": self.event_type,
        }


def make_events(letters: int, dice: Random) -> list[ShopEvent]:
    """Return exactly this many messages, in the order in which they are published.

    An account has at most four messages (2,000 messages have about 660 accounts), in the order of their sequence. The
    messages of different accounts are mixed. One message in 200 is poison, and one in 200 is a duplicate. From 10
    messages on, there is at least one of each. A poison message is always the first of its account, and other messages
    of the account follow. So the last of all messages is never poison. After a poison message, a later success must
    show that the consumer works, or the circuit breaker would stay open. From 300 messages on, 12 belong to the spoilt
    account.
    """
    night = f"{dice.getrandbits(32):08x}"
    spoilt = [SPOILT] * OF_SPOILT if letters >= LETTERS_FOR_SPOILT else []
    usual = letters - len(spoilt)
    accounts = [f"account-{number:04}" for number in range(ceil(usual / _USUAL_OF_AN_ACCOUNT))]
    slots = (accounts * _USUAL_OF_AN_ACCOUNT)[:usual] + spoilt
    dice.shuffle(slots)
    few = max(1, letters // _ONE_IN) if letters >= _LETTERS_FOR_POISON else 0
    poison = set(dice.sample(_followed(slots), few))
    poison |= {place for place, account in enumerate(slots) if account == SPOILT}
    repeats = set(dice.sample(_repeatable(slots, poison), few))
    return list(_events(slots, night, poison, repeats, dice))


def _events(slots: list[str], night: str, poison: set[int], repeats: set[int], dice: Random) -> Iterator[ShopEvent]:
    latest: dict[str, ShopEvent] = {}
    for position, account in enumerate(slots):
        before = latest.get(account)
        if position in repeats and before is not None:
            yield before
            continue
        number = before.sequence + 1 if before else 1
        latest[account] = ShopEvent(
            event_id=f"evt-{night}-{account.removeprefix('account-')}-{number}",
            account=account,
            sequence=number,
            event_type=dice.choice(_TYPES),
            poison=position in poison,
            amount="n/a" if position in poison else f"{dice.randrange(100, 99_999) / 100:.2f}",
        )
        yield latest[account]


def _followed(slots: list[str]) -> list[int]:
    """Return the positions of the first message of each account that has more messages, except the spoilt account."""
    numbers = Counter(slots)
    first = {account: place for place, account in reversed(list(enumerate(slots)))}
    return sorted(place for account, place in first.items() if numbers[account] > 1 and account != SPOILT)


def _repeatable(slots: list[str], poison: set[int]) -> list[int]:
    """Return the positions at which the account's previous event may be published again, because it is not poison."""
    latest: dict[str, int] = {}
    found = []
    for position, account in enumerate(slots):
        if account in latest and not poison & {position, latest[account]}:
            found.append(position)
        latest[account] = position
    return found
