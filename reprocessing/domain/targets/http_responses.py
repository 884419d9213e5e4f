"""Decide what an endpoint's HTTP status code means for the letter that was sent, such as a failed attempt."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from functools import lru_cache
from typing import Final

from reprocessing.domain.errors import InvalidAnswers
from reprocessing.domain.replay.verdicts import NotSent, Outcome, Refused, Taken

#: Delay before the next attempt if an endpoint asks to wait, and does not say how long.
DEFAULT_DELAY: Final = timedelta(seconds=1)
#: The longest delay that an endpoint can ask for.
LONGEST_DELAY: Final = timedelta(days=1)
LONGEST_TEXT: Final = 500  #: max characters of a target's setting of meanings

_LEAST, _MOST = 200, 599  # RFC 9110, 15.2: codes below 200 are not final
_ENTRY = re.compile(r"(?a)([2-5][0-9]{2}|[2-5]xx)=([a-z]+)")
_LONGEST_DATE = 64
_SECONDS = re.compile(r"[0-9]{1,400}")
_SEPARATORS = re.compile(r"[\s,]+")


class Meaning(StrEnum):
    """What an HTTP endpoint's answer means for the letter that was sent."""

    SUCCESS = "success"  #: the endpoint accepted the letter
    RETRY = "retry"  #: the attempt failed; the next attempt is due after the backoff
    WAIT = "wait"  #: the attempt does not count; the letter is sent again later
    POISON = "poison"  #: the attempt failed, and another would fail the same way, so the letter is parked


#: Default meanings. A code is poison if it is about the message (RFC 9110, 15.5; RFC 6585): the syntax, size or type,
#: or a resource that is gone. Other codes are about the target, such as a wrong URL or a missing permission.
DEFAULT_MEANINGS: Final[Mapping[str, Meaning]] = {
    "2xx": Meaning.SUCCESS,
    "3xx": Meaning.RETRY,
    "4xx": Meaning.RETRY,
    "5xx": Meaning.RETRY,
    "429": Meaning.WAIT,
    **dict.fromkeys(("400", "410", "411", "413", "414", "415", "422", "431"), Meaning.POISON),
}


@dataclass(frozen=True, slots=True)
class StatusMeanings:
    """Meanings of HTTP status codes ("409") and classes ("4xx") that a target sets in place of the defaults.

    A code overrides a class, and both override the defaults. But "4xx" does not change 429, whose default is `wait`
    (send the letter again later; the attempt does not count).
    """

    meanings: tuple[tuple[str, Meaning], ...] = ()

    def __str__(self) -> str:
        return " ".join(f"{what}={meaning}" for what, meaning in self.meanings)

    def meaning(self, status: int) -> Meaning:
        """Return what the status code of an answer means. An unknown code is a failed attempt (`RETRY`)."""
        configured, code, family = dict(self.meanings), str(status), f"{status // 100}xx"
        if code in configured:
            return configured[code]
        usual = DEFAULT_MEANINGS.get(code)
        if usual is Meaning.WAIT:
            return usual
        return configured.get(family) or usual or DEFAULT_MEANINGS.get(family, Meaning.RETRY)

    def outcome(self, status: int, *, after: timedelta | None = None) -> Outcome:
        """Return the outcome of an answer with this status. `after`: the delay of the Retry-After header, if any."""
        match self.meaning(status):
            case Meaning.SUCCESS:
                return Taken()
            case Meaning.WAIT:
                return NotSent(f"it answered {status}: try again later", after=after or DEFAULT_DELAY)
            case Meaning.RETRY:
                return Refused(str(status), _in_words(status), after=after)
            case Meaning.POISON:
                return Refused(str(status), _in_words(status), poison=True)


@lru_cache(maxsize=256)
def parse_answers(text: str) -> StatusMeanings:
    """Return the meanings in a text such as "409=success 4xx=retry".

    Raises:
        InvalidAnswers: the text cannot be parsed, or gives a code two meanings.
    """
    if len(text) > LONGEST_TEXT:
        raise InvalidAnswers(f"The text is longer than {LONGEST_TEXT} characters. Name classes of codes: 4xx=retry.")
    meanings: dict[str, Meaning] = {}
    for entry in filter(None, _SEPARATORS.split(text)):
        what, meaning = _entry(entry)
        if meanings.setdefault(what, meaning) is not meaning:
            raise InvalidAnswers(f"{what} means both {meanings[what]} and {meaning}. Write it once.")
    return StatusMeanings(tuple(sorted(meanings.items())))


def retry_after(text: str, *, now: datetime) -> timedelta | None:
    """Return the delay of a Retry-After header (RFC 9110, 10.2.3), at most a day; None if the header is not valid."""
    text = text.strip()
    if _SECONDS.fullmatch(text):
        return timedelta(seconds=min(int(text), LONGEST_DELAY.total_seconds()))
    at = http_date(text)
    return None if at is None else min(max(at - now, timedelta()), LONGEST_DELAY)


def http_date(text: str) -> datetime | None:
    """Return the time of an HTTP date in any of its three forms (RFC 9110, 5.6.7); None: it is not valid."""
    try:
        at = parsedate_to_datetime(text.strip()[:_LONGEST_DATE])
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _entry(entry: str) -> tuple[str, Meaning]:
    found = _ENTRY.fullmatch(entry)
    if found is None or found[2] not in set(Meaning):
        raise InvalidAnswers(
            f"{entry[:40]!r} is not a meaning of an answer. Write a code from {_LEAST} to {_MOST} or a class such "
            f"as 4xx, an equals sign and one of {', '.join(Meaning)}: 409=success"
        )
    return found[1], Meaning(found[2])


def _in_words(status: int) -> str:
    if status // 100 == 3:  # noqa: PLR2004 - the class of redirects
        return f"it answered {status}, a redirect, which is not followed; use the redirect's address as target"
    return f"it answered {status}"
