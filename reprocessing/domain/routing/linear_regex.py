"""A regular expression that takes time linear in what it reads, and not much of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import re2

from reprocessing.domain.message.json_view import Unreadable

LENGTH = 512
#: Every pattern reads texts of so many bytes; plain ones read far longer ones.
SHORTEST = 1024
#: Instructions times bytes of one search. RE2 needs up to ten nanoseconds for one, where its tables do not suffice.
WORK = 2_000_000

_MEMORY = 1 << 20  # bytes of one pattern; RE2 refuses what needs more


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern that may be used.

    Attributes:
        longest: bytes of the longest text that it reads.
    """

    text: str
    longest: int
    _compiled: Any = field(repr=False, compare=False)  # with a thousand others, a cache would not keep it

    @classmethod
    def parse(cls, text: str) -> Pattern | Unreadable:
        """The pattern of a text, or why it is none and what to write."""
        if len(text) > LENGTH:
            return Unreadable(f"a regex has {LENGTH} characters at most, this one {len(text)}. Write a shorter one.")
        try:
            compiled = _compiled(text)
        except re2.error as error:
            return Unreadable(
                f"RE2 refuses its regex: {_said(error)}. It knows neither look-around nor back-references; see "
                "github.com/google/re2/wiki/Syntax."
            )
        size = compiled.programsize
        if size * SHORTEST > WORK:
            return Unreadable("its regex repeats too much. Write a plainer one, with smaller numbers in {}.")
        return cls(text, WORK // size, compiled)

    def finds(self, text: str) -> bool | Unreadable:
        """Whether it is anywhere in a text; `^` and `$` tie it to the ends."""
        read = text.encode(errors="surrogatepass")
        if len(read) > self.longest:
            return Unreadable(f"{len(read)} bytes are more than the {self.longest} that its regex may read")
        return self._compiled.search(read) is not None


def _said(error: Exception) -> str:
    said = error.args[0] if error.args else b""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)


@lru_cache(maxsize=1024)
def _compiled(text: str) -> Any:  # noqa: ANN401 - the library has no types
    options = re2.Options()
    options.max_mem = _MEMORY
    options.never_capture = True  # groups are asked for by nobody, and cost most
    options.log_errors = False  # they are told, not printed
    return re2.compile(text, options)
