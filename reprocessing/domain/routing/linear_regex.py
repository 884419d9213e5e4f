"""Run the regular expressions of rules with RE2, in linear time and with a limit on the total cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import re2

from reprocessing.domain.message.json_view import Unreadable

LENGTH = 512  #: max characters of a regular expression
#: Every accepted pattern can search texts of this many bytes. Simple patterns can search longer texts.
LEAST_TEXT_BYTES = 1024
#: Max cost of a search: the pattern's instructions times the text's bytes. RE2 needs up to 10 ns for a cost of 1.
MOST_COST = 2_000_000

_MEMORY = 1 << 20  # max bytes of one compiled pattern; RE2 refuses larger patterns


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression that rules may use. It may search texts of at most `longest` bytes."""

    text: str
    longest: int
    # Each pattern has its compiled form, because the cache of the function `_compiled` may be too small for all rules.
    _compiled: Any = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str) -> Pattern | Unreadable:
        """Return the pattern of a regular expression's text, or (as `Unreadable`) why it is not accepted."""
        if len(text) > LENGTH:
            return Unreadable(f"a regex has {LENGTH} characters at most, this one {len(text)}. Write a shorter one.")
        try:
            compiled = _compiled(text)
        except re2.error as error:
            reason = error.args[0] if error.args else b""
            why = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
            return Unreadable(
                f"RE2 refuses the regex: {why}. RE2 supports neither look-around nor back-references; see "
                "github.com/google/re2/wiki/Syntax."
            )
        size = compiled.programsize
        if size * LEAST_TEXT_BYTES > MOST_COST:
            return Unreadable("the regex repeats too much. Write a simpler one, with smaller numbers in {}.")
        return cls(text, MOST_COST // size, compiled)

    def finds(self, text: str) -> bool | Unreadable:
        """Return whether the pattern matches anywhere in a text; `Unreadable` if the text is longer than `longest`."""
        read = text.encode(errors="surrogatepass")
        if len(read) > self.longest:
            return Unreadable(f"it has {len(read)} bytes, and the regex may read at most {self.longest}")
        return self._compiled.search(read) is not None


@lru_cache(maxsize=1024)
def _compiled(text: str) -> Any:  # noqa: ANN401 - the library has no types
    options = re2.Options()
    options.max_mem = _MEMORY
    options.never_capture = True  # capture groups are not used, and cost the most time
    options.log_errors = False  # errors are returned to the caller
    return re2.compile(text, options)
