"""Write and read the detail of an attempt: the service's own words, or an error code and the target's own text.

A target's text may quote the payload. A mark stands before it: readers leave the text out, or open and mask it.
"""

from __future__ import annotations

from typing import Final

from reprocessing.domain.replay.verdicts import Refused, Unknown

#: Between the code and a target's own text. The text is sealed if payloads are encrypted.
QUOTES: Final = ": \x1a"
_LONGEST: Final = 500
_LONGEST_CODE: Final = 100


def detail_of(failure: Refused | Unknown) -> str:
    """Return the detail of a failed attempt. The text of a failure that quotes is sealed before."""
    if isinstance(failure, Unknown):
        return failure.why
    if failure.quotes:
        return f"{failure.code[:_LONGEST_CODE]}{QUOTES}{failure.message}"
    return f"{failure.code}: {failure.message}"[:_LONGEST]


def split(detail: str) -> tuple[str, str]:
    """Return what everybody may read of a detail, and the target's own text as it is stored; empty: there is none."""
    said, _, text = detail.partition(QUOTES)
    return said, text


def without_quotes(detail: str) -> str:
    """Return what everybody may read of a detail."""
    return split(detail)[0]
