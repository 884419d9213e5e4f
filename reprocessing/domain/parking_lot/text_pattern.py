"""Reduce error texts to what equal failures have in common: names of types, and sentences without values."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

#: Max characters of an error text that are read.
LONGEST: Final = 1_000
#: The form of a type's name, of a status or error code, and of an id inside a text.
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.$:/\\+-]{0,119}")
STATUS: Final = re.compile(r"[0-9]{1,6}")
ID_IN_IT: Final = re.compile(r"[0-9]{6}|(?=[a-f]*+[0-9])[0-9a-f]{12}")

# Parts of a text that differ between letters: quotations, then ids, addresses, times and numbers, in this order,
# because ids and times contain digits.
_QUOTED: Final = re.compile(r"\"[^\"]*+\"|'[^']*+'|`[^`]*+`")
_VARIABLE: Final = re.compile(
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|(?<![^\s@])[^\s@]++@\S++"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.,]+(?:Z|[+-][0-9:]{2,6})?)?"
    r"|\b0x[0-9a-fA-F]+\b|\b(?=[a-zA-Z]*[0-9])[0-9a-zA-Z]{16,}\b|\b(?=[a-fA-F]*[0-9])[0-9a-fA-F]{8,}\b"
    r"|[0-9]+(?:[.,:][0-9]+)*"
)
_SPACE: Final = re.compile(r"\s+")
_ID: Final = re.compile(r"[\d/\\@]|\w-\w")  # a word that may be an id
_SHORTEST: Final = 3  # min characters of a value that is replaced
_LETTER: Final = re.compile(r"[^\W\d_]")


def without_values(text: str) -> str:
    """Return a text in which "…" replaces quotations, and "#" replaces addresses, times, ids and numbers."""
    plain = _QUOTED.sub("…", text[:LONGEST])
    return _SPACE.sub(" ", _VARIABLE.sub("#", plain)).strip()


def first_line(text: str, values: Iterable[str]) -> str:
    """Return the first line of a text without quotations, numbers, ids and these `values` of a message.

    If no alphabetic character remains, return "".
    """
    line = text.strip().partition("\n")[0][:LONGEST]
    quoted = {value for value in values if len(value) >= _SHORTEST and value in line}
    for value in sorted(quoted, key=len, reverse=True):
        line = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", "…", line)
    pattern = without_values(" ".join("#" if _ID.search(word) else word for word in line.split()))
    return pattern if _LETTER.search(pattern) else ""


def type_name(text: str) -> str:
    """Return `text` if it looks like the name of a type, such as ValueError, and contains no id; else ""."""
    return text if NAME.fullmatch(text) and not ID_IN_IT.search(text) else ""
