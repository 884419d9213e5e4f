"""Make invisible characters, and characters that change the direction of text, visible."""

from __future__ import annotations

import unicodedata
from typing import Final

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def visible(text: str) -> str:
    """Return the text with invisible and direction-changing characters written as <U+XXXX>; line ends and tabs stay."""
    if text.isprintable():
        return text
    return "".join(
        char if char in "\n\t" or unicodedata.category(char) not in _HIDDEN else f"<U+{ord(char):04X}>" for char in text
    )
