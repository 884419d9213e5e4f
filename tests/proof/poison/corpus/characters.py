"""Characters of every class that SQS lets through."""

# ruff: noqa: RUF001  letters that look like others are what this is about
from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.proof.poison.corpus.payload import Payload, text


def some() -> Iterator[Payload]:
    """Every one, in a body; each of a few in an attribute, too."""
    for name, body in _BODIES.items():
        yield Payload(f"characters: {name}", body)
    for name in _IN_ATTRIBUTES:
        yield Payload(f"characters: {name}, in an attribute", f"attributes with {name}", {"odd": text(_BODIES[name])})


_BODIES: Final = {
    "one byte": "x",
    "the number nought": "0",
    "a quote": '"',
    "a backslash": "\\",
    "a brace": "{",
    "two bytes": "é",
    "four bytes": "\U0001f600",
    "a space": " ",
    "a tab": "\t",
    "a line feed": "\n",
    "a carriage return": "\r",
    "10000 line ends": "\r\n" * 10_000,
    "blanks of every width": "\u00a0\u1680\u2000\u2001\u2002\u2003\u2009\u200a\u202f\u205f\u3000",
    "blanks at both ends": "  \t padded body \t  ",
    "all of ASCII": "".join(map(chr, range(0x20, 0x7F))),
    "delete and C1 controls": "".join(map(chr, range(0x7F, 0xA0))),
    "Latin-1": "".join(map(chr, range(0xA0, 0x100))),
    "right to left": "שלום עולם مرحبا بالعالم",
    "bidi overrides": "user\u202egnp.exe\u202c and \u2066isolated\u2069",
    "bidi marks": "left\u200eright\u200farabic\u061cmarks",
    "zero width": "ze\u200bro\u200cwi\u200ddth\u2060and\ufeffmore",
    "soft hyphens": "soft\u00adhy\u00adphens",
    "line and paragraph separators": "one\u2028two\u2029three",
    "combining": "Z" + "\u0300\u0301\u0302\u0303" * 500,
    "composed": "Am\u00e9lie composed",
    "decomposed": "Ame\u0301lie composed",
    "compatibility forms": "ﬁ ① Ⅳ ｆｕｌｌ ㎏ ſ",
    "Hangul composed": "\ud55c\uae00 hangul",
    "Hangul decomposed": "\u1112\u1161\u11ab\u1100\u1173\u11af hangul",
    "letters alike": "раураl and paypal",
    "Turkish": "İıIi Iİ dotted",
    "sharp s": "ß ẞ SS straße",
    "emoji in sequences": "👨‍👩‍👧‍👦🏳️‍🌈👍🏿🇺🇳",
    "tags": "flag\U000e0067\U000e0062\U000e007f hidden tags",
    "variation selectors": "A\ufe0f\ufe0e\U000e0100 variations",
    "replacement character": "replaced \ufffd here",
    "noncharacters": "\ufdd0\ufdef\U0001fffe\U0001ffff\U0010fffe\U0010ffff",
    "private use": "\ue000\uf8ff\U000f0000\U0010fffd",
    "unassigned": "\u0378\u0530\U0003fffd",
    "ends of what SQS takes": "\t\n\r\x20\ud7ff\ue000\ufffd\U00010000\U0010ffff",
    "interlinear": "\ufff9base\ufffaover\ufffb",
    "byte order mark alone": "\ufeff",
    "swapped byte order mark in Latin-1": 'ÿþ{"a": 1}',
    "mojibake": "Ã©tÃ© â€œquotedâ€\x9d",
    "a long grapheme": "👩" + "\u200d👩" * 2_000,
    "100000 emoji": "😀" * 100_000,
}
_IN_ATTRIBUTES: Final = (
    "right to left", "a space", "a tab", "a line feed", "a carriage return", "10000 line ends",
    "delete and C1 controls",
    "bidi overrides", "zero width", "line and paragraph separators", "combining", "decomposed", "emoji in sequences",
    "replacement character", "noncharacters", "private use", "ends of what SQS takes", "byte order mark alone",
)  # fmt: skip
