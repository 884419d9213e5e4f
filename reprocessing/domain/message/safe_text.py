"""Text of other people in a form that cannot deceive who reads it."""

from __future__ import annotations

import unicodedata
from typing import Final

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def visible(text: str) -> str:
    """The text with each character that is not seen, or that turns others around, written as its number."""
    if text.isprintable():
        return text
    return "".join(one if one in "\n\t" or unicodedata.category(one) not in _HIDDEN else _number(one) for one in text)


def _number(character: str) -> str:
    return f"<U+{ord(character):04X}>"
