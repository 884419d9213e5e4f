"""What an endpoint's status codes mean for a letter: delivered, tried again, or never by itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from functools import lru_cache
from typing import Final

from reprocessing.domain.errors import AnswersAreUnclear
from reprocessing.domain.replay.verdicts import NotSent, Outcome, Refused, Taken

#: How long a letter rests whose endpoint wants it later and does not say when.
REST: Final = timedelta(seconds=1)
#: No endpoint can put a letter off for longer, by one answer.
LONGEST: Final = timedelta(days=1)
LONGEST_TEXT: Final = 500

_LEAST, _MOST = 200, 599  # what is below is no final answer (RFC 9110, 15.2), what is above no status
_ENTRY = re.compile(r"(?a)([2-5][0-9]{2}|[2-5]xx)=([a-z]+)")
_LONGEST_DATE = 64
_SECONDS = re.compile(r"[0-9]{1,400}")
_SEPARATORS = re.compile(r"[\s,]+")


class Meaning(StrEnum):
    """What follows from an answer."""

    SUCCESS = "success"  #: the target has it
    RETRY = "retry"  #: a failed attempt, and not the letter's fault; the next is due after its backoff
    WAIT = "wait"  #: later; the attempt does not count
    POISON = "poison"  #: no other attempt could end otherwise


#: Where nothing else is said. Poison is what speaks of the letter itself (RFC 9110, 15.5; RFC 6585): its syntax, its
#: size, its type, a place that is gone for good. All else, a wrong URL or a missing right too, speaks of the target.
USUAL: Final[Mapping[str, Meaning]] = {
    "2xx": Meaning.SUCCESS,
    "3xx": Meaning.RETRY,
    "4xx": Meaning.RETRY,
    "5xx": Meaning.RETRY,
    "429": Meaning.WAIT,
    **dict.fromkeys(("400", "410", "411", "413", "414", "415", "422", "431"), Meaning.POISON),
}


@dataclass(frozen=True, slots=True)
class Answers:
    """What was said of codes ("409") and classes ("4xx") in place of what is usual.

    A code wins over a class, and what was said over what is usual: "4xx=retry" holds for 422 as well. Only 429, which
    says nothing of any letter, means `wait` until it is named itself.
    """

    said: tuple[tuple[str, Meaning], ...] = ()

    def __str__(self) -> str:
        return " ".join(f"{what}={meaning}" for what, meaning in self.said)

    def meaning(self, status: int) -> Meaning:
        """What a final status means; one that HTTP does not know is a failure."""
        said, code, family = dict(self.said), str(status), f"{status // 100}xx"
        if code in said:
            return said[code]
        usual = USUAL.get(code)
        if usual is Meaning.WAIT:
            return usual
        return said.get(family) or usual or USUAL.get(family, Meaning.RETRY)

    def outcome(self, status: int, *, after: timedelta | None = None) -> Outcome:
        """What became of a letter that was answered so; nothing of what was answered but its status is in it.

        Args:
            status: the final one.
            after: what the endpoint asked for (Retry-After).
        """
        match self.meaning(status):
            case Meaning.SUCCESS:
                return Taken()
            case Meaning.WAIT:
                return NotSent(f"it answered {status}: later", after=after or REST)
            case Meaning.RETRY:
                return Refused(str(status), _in_words(status), after=after)
            case Meaning.POISON:
                return Refused(str(status), _in_words(status), poison=True)


@lru_cache(maxsize=256)
def parse(text: str) -> Answers:
    """What a text such as "409=success 4xx=retry" says; an empty one says nothing.

    Raises:
        AnswersAreUnclear: it cannot be read, or says two things of one code.
    """
    if len(text) > LONGEST_TEXT:
        raise AnswersAreUnclear(f"What answers mean is longer than {LONGEST_TEXT} characters. Name classes: 4xx=retry.")
    said: dict[str, Meaning] = {}
    for entry in filter(None, _SEPARATORS.split(text)):
        what, meaning = _entry(entry)
        if said.setdefault(what, meaning) is not meaning:
            raise AnswersAreUnclear(f"{what} means both {said[what]} and {meaning}. Write it once.")
    return Answers(tuple(sorted(said.items())))


def retry_after(text: str, *, now: datetime) -> timedelta | None:
    """What a Retry-After header asks for, in seconds or as a date (RFC 9110, 10.2.3); `LONGEST` at most.

    Returns:
        None where it cannot be read; nothing to wait for, where its date is past.
    """
    text = text.strip()
    if _SECONDS.fullmatch(text):
        return timedelta(seconds=min(int(text), LONGEST.total_seconds()))
    at = date(text)
    return None if at is None else min(max(at - now, timedelta()), LONGEST)


def date(text: str) -> datetime | None:
    """The moment that a date of HTTP names, in any of its three forms (RFC 9110, 5.6.7)."""
    try:
        at = parsedate_to_datetime(text.strip()[:_LONGEST_DATE])
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _entry(entry: str) -> tuple[str, Meaning]:
    found = _ENTRY.fullmatch(entry)
    if found is None or found[2] not in set(Meaning):
        raise AnswersAreUnclear(
            f"{entry[:40]!r} does not say what an answer means. Write a code from {_LEAST} to {_MOST} or a class such "
            f"as 4xx, an equals sign and one of {', '.join(Meaning)}: 409=success"
        )
    return found[1], Meaning(found[2])


def _in_words(status: int) -> str:
    if status // 100 == 3:  # noqa: PLR2004 - the class of redirects
        return f"it answered {status}, a redirect, and none is followed; make the address it leads to the target"
    return f"it answered {status}"
