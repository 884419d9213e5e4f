"""What the texts of others have in common from letter to letter: the names of types, and sentences without values."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

#: Characters of a text that are read.
LONGEST: Final = 1_000
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.$:/\\+-]{0,119}")
STATUS: Final = re.compile(r"[0-9]{1,6}")
ID_IN_IT: Final = re.compile(r"[0-9]{6}|(?=[a-f]*+[0-9])[0-9a-f]{12}")

# What differs from letter to letter. In this order: a time holds digits, an id holds times.
_QUOTED: Final = re.compile(r"\"[^\"]*+\"|'[^']*+'|`[^`]*+`")
_VARIABLE: Final = re.compile(
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|(?<![^\s@])[^\s@]++@\S++"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.,]+(?:Z|[+-][0-9:]{2,6})?)?"
    r"|\b0x[0-9a-fA-F]+\b|\b(?=[a-zA-Z]*[0-9])[0-9a-zA-Z]{16,}\b|\b(?=[a-fA-F]*[0-9])[0-9a-fA-F]{8,}\b"
    r"|[0-9]+(?:[.,:][0-9]+)*"
)
_SPACE: Final = re.compile(r"\s+")
_ID: Final = re.compile(r"[\d/\\@]|\w-\w")  # in a word: it may well be one
_SHORTEST: Final = 3  # characters of a value that is looked for
_LETTER: Final = re.compile(r"[^\W\d_]")


def normal(text: str) -> str:
    """A sentence without what differs from letter to letter: quotations, addresses, times, ids, numbers."""
    plain = _QUOTED.sub("…", text[:LONGEST])
    return _SPACE.sub(" ", _VARIABLE.sub("#", plain)).strip()


def first_line(text: str, values: Iterable[str]) -> str:
    """The first line, likewise, and without these values and all that may be an id; empty: that says nothing."""
    line = text.strip().partition("\n")[0][:LONGEST]
    for one in sorted({one for one in values if len(one) >= _SHORTEST and one in line}, key=len, reverse=True):
        line = re.sub(rf"(?<!\w){re.escape(one)}(?!\w)", "…", line)
    told = normal(" ".join("#" if _ID.search(word) else word for word in line.split()))
    return told if _LETTER.search(told) else ""


def name(text: str) -> str:
    """The text, if it is the name of a type; empty: it is none, or an id is in it."""
    return text if NAME.fullmatch(text) and not ID_IN_IT.search(text) else ""
