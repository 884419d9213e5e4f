"""Write and read the detail of an attempt: the service's own words, or an error code and the target's error text.

A target's error text may quote the payload. It stands after the separator `QUOTES`, so that it can be left out for
people who may not see payloads.
"""

from __future__ import annotations

from typing import Final

from reprocessing.domain.replay.verdicts import Refused, Unknown

#: Separates the error code from the target's error text. The text is sealed if payloads are encrypted.
QUOTES: Final = ": \x1a"
_LONGEST: Final = 500
_LONGEST_CODE: Final = 100


def detail_of(failure: Refused | Unknown) -> str:
    """Return the text (detail) to store about a failed attempt.

    If `failure.message` is the target's own text (`failure.quotes`), the caller must have encrypted (sealed) it.
    """
    if isinstance(failure, Unknown):
        return failure.why
    if failure.quotes:
        return f"{failure.code[:_LONGEST_CODE]}{QUOTES}{failure.message}"
    return f"{failure.code}: {failure.message}"[:_LONGEST]


def split(detail: str) -> tuple[str, str]:
    """Return two parts of a detail: the part that everybody may read, and the target's error text ("": none)."""
    public, _, text = detail.partition(QUOTES)
    return public, text


def without_quotes(detail: str) -> str:
    """Return a detail without the target's error text, which may quote the payload."""
    return split(detail)[0]
