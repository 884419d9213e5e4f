"""Find a letter's place: its ordering key, its sequence and its idempotency key.

The letters of one ordering key form a lane, and are sent in the order of their sequences.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum

from reprocessing.domain.errors import InvalidSelector
from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.message.identity import (
    LetterFacts,
    Missing,
    Selected,
    Selector,
    SelectorSource,
    TooLong,
    key_hash,
    select_key,
)
from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.replay.verdicts import Park

#: Max characters of a sort key, so that two sort keys of 4-byte characters fit into one index entry of PostgreSQL.
SORT_KEY_LENGTH = 300

_NUMBER = re.compile(r"([+-]?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]{1,14}))?")
_NEGATIVE, _ZERO, _POSITIVE, _TEXT = "0123"  # the first character of a sort key
_MAGNITUDES = 16  # digits of a magnitude (power of ten), which is stored plus _MIDDLE, so that it is never negative
_WRITTEN_OUT = 40  # a number of more digits is written with an exponent
_MIDDLE = 5 * 10 ** (_MAGNITUDES - 1)
_NUMBER_KEY = re.compile(rf"([{_NEGATIVE}{_POSITIVE}])([0-9]{{{_MAGNITUDES}}})([0-9]+)(~?)")
_NINES_COMPLEMENT = str.maketrans("0123456789", "9876543210")


class MissingKey(StrEnum):
    """What happens to a letter without an ordering key, if the DLQ has a selector for ordering keys."""

    PARK = "park"
    LANE = "lane"  #: the letter gets its own lane


@dataclass(frozen=True, slots=True)
class KeyPolicy:
    """The selectors (such as attribute:OrderId) that read the ordering key, sequence and idempotency key of a message.

    Attributes:
        missing_key: what happens to a letter without an ordering key.

    Raises:
        InvalidSelector: the selector of the sequence or of the idempotency key is `none`.
    """

    ordering: Selector
    sequence: Selector
    idempotency: Selector
    missing_key: MissingKey = MissingKey.PARK

    def __post_init__(self) -> None:
        for what, selector in (("sequence", self.sequence), ("idempotency key", self.idempotency)):
            if selector.source is SelectorSource.NONE:
                raise InvalidSelector(f"A {what} is always needed. Name a selector, or omit it for the default.")

    @classmethod
    def of(
        cls,
        *,
        fifo: bool,
        ordering: str = "",
        sequence: str = "",
        idempotency: str = "",
        missing_key: str = MissingKey.PARK,
    ) -> KeyPolicy:
        """Return the policy from a DLQ's settings. An empty text means the default for FIFO or standard queues."""
        return cls(
            Selector.parse(ordering or ("system:MessageGroupId" if fifo else "none")),
            Selector.parse(sequence or ("system:SequenceNumber" if fifo else "system:SentTimestamp")),
            Selector.parse(idempotency or "message-id"),
            MissingKey(missing_key),
        )


@dataclass(frozen=True, slots=True)
class LetterPlace:
    """The place of a letter in its lane, and its idempotency key.

    Attributes:
        key: the ordering key; None: the lane holds only this letter.
        single: whether the lane holds only this letter, because the letter has no ordering key.
        key_hash: 32 bytes that identify the lane. A lane for a single letter has a hash that no key has.
        sequence: the sort key (`sort_key`) of the letter in its lane; may be empty if the lane holds only this letter.
    """

    key: str | None
    key_hash: bytes
    single: bool
    sequence: str
    idempotency_key: str


@dataclass(frozen=True, slots=True)
class StoredPlace:
    """A letter's place in a lane, as the database stores it. A letter that cannot be sent may have no place.

    `blocked_reason` and `detail` say why the letter cannot be sent; empty: it can be sent. `LetterPlace` explains the
    other fields, which are None if the letter has no place.
    """

    blocked_reason: str = ""
    detail: str = ""
    ordering_key: str | None = None
    key_hash: bytes | None = None
    single: bool = True
    sequence: str | None = None
    idempotency_key: str | None = None


def choose_place(policy: KeyPolicy, letter: LetterFacts) -> LetterPlace | Park:
    """Return the place of a letter in its lane, or why the letter must be parked."""
    idempotency = select_key(policy.idempotency, letter)
    if not isinstance(idempotency, str):
        return _park(ParkedReason.NO_IDEMPOTENCY_KEY, policy.idempotency, idempotency)
    key = select_key(policy.ordering, letter)
    lane_of_its_own = policy.ordering.source is SelectorSource.NONE or policy.missing_key is MissingKey.LANE
    if isinstance(key, Missing) and lane_of_its_own:
        sequence = _sequence(policy, letter)
        known = sequence if isinstance(sequence, str) else ""  # the only letter of its lane needs no sequence
        # No key contains NUL (see identity.select_key), so no key has this digest.
        digest = hashlib.sha256(b"\x00single\x00" + letter.message_id.encode()).digest()
        return LetterPlace(None, digest, single=True, sequence=known, idempotency_key=idempotency)
    if not isinstance(key, str):
        return _park(ParkedReason.NO_ORDERING_KEY, policy.ordering, key)
    sequence = _sequence(policy, letter)
    if not isinstance(sequence, str):
        return _park(ParkedReason.NO_SEQUENCE, policy.sequence, sequence)
    return LetterPlace(key, key_hash(key), single=False, sequence=sequence, idempotency_key=idempotency)


def sort_key(text: str) -> str | TooLong:
    """Return a text for sorting: bytewise, sort keys of numbers sort by value, before those of other texts.

    -2 < -1.5 < 0 < 9 < 10 < 1e3 < "2026-01-01" < "a". Equal numbers have equal keys ("1", "1.0"), with any number of
    digits and exponents of up to 14 digits. Over 300 characters, return `TooLong`, because a cut key would sort wrong.
    """
    number = _NUMBER.fullmatch(text)
    key = _number_key(number) if number else _TEXT + text
    return key if len(key) <= SORT_KEY_LENGTH else TooLong(len(text), SORT_KEY_LENGTH)


def read_sort_key(key: str) -> str:
    """Return the number or the text from which `sort_key` made this key. Return other texts unchanged."""
    if key.startswith(_TEXT):
        return key[1:]
    if key == _ZERO:
        return "0"
    found = _NUMBER_KEY.fullmatch(key)
    if found is None or (found[1] == _NEGATIVE) != bool(found[4]):
        return key
    turned = found[2] + found[3] if found[1] == _POSITIVE else (found[2] + found[3]).translate(_NINES_COMPLEMENT)
    digits, magnitude = turned[_MAGNITUDES:], int(turned[:_MAGNITUDES]) - _MIDDLE
    return ("-" if found[4] else "") + _decimal(digits, magnitude)


def _decimal(digits: str, magnitude: int) -> str:
    """Return the number 0.`digits` times ten to the `magnitude`."""
    if len(digits) <= magnitude <= _WRITTEN_OUT:
        return digits.ljust(magnitude, "0")
    if 0 < magnitude < len(digits):
        return f"{digits[:magnitude]}.{digits[magnitude:]}"
    if -_WRITTEN_OUT < magnitude <= 0:
        return f"0.{'0' * -magnitude}{digits}"
    return f"{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e{magnitude - 1}"


def _number_key(number: re.Match[str]) -> str:
    """Return the sort key of a number: its sign, magnitude and digits.

    A negative number has complemented digits and ends in "~", which sorts after all digits.
    """
    sign, whole, fraction, exponent = number[1], number[2], number[3] or "", number[4] or "0"
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return _ZERO
    magnitude = int(exponent) + len(digits) - len(fraction)
    key = f"{_MIDDLE + magnitude:0{_MAGNITUDES}}{digits.rstrip('0')}"
    return f"{_NEGATIVE}{key.translate(_NINES_COMPLEMENT)}~" if sign == "-" else _POSITIVE + key


def _sequence(policy: KeyPolicy, letter: LetterFacts) -> Selected:
    text = select_key(policy.sequence, letter)
    return sort_key(text) if isinstance(text, str) else text


def _park(reason: ParkedReason, selector: Selector, found: Missing | Unreadable | TooLong) -> Park:
    match found:
        case Missing():
            return Park(reason, f"{selector} finds no key.")
        case TooLong(length, limit):
            return Park(reason, f"The value of {selector} is {length} characters long; the limit is {limit}.")
        case Unreadable(why):
            unreadable = ParkedReason.UNREADABLE_BODY if selector.source is SelectorSource.BODY else reason
            return Park(unreadable, f"{selector} cannot be read: {why}.")
