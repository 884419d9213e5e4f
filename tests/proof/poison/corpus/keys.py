"""Keys and sequences that lie, are missing, or are far too long; as attributes and under the same names in a body."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from tests.proof.poison.corpus.payload import Payload, Typed, text


def some() -> Iterator[Payload]:
    """Every one: what is called key, n and idem is asked for by dlqs that name these."""
    for name, attributes in _ATTRIBUTES.items():
        told = {key: one for key, (_, one) in attributes.items() if isinstance(one, str)}
        body = json.dumps({"called": name.upper(), **told}, ensure_ascii=False)
        yield Payload(f"keys: {name}", body, {"idem": text(f"idem of {name.upper()}"), **attributes})
    for name, body in _BODIES.items():
        yield Payload(f"keys: {name}", body, {"key": text("by attribute"), "idem": text(f"idem of {name.upper()}")})
    yield Payload("keys: twins, one", '{"key": "twin-1", "n": 1}', {"key": text("twin-1"), "idem": text("same-idem")})
    yield Payload("keys: twins, two", '{"key": "twin-2", "n": 1}', {"key": text("twin-2"), "idem": text("same-idem")})
    yield Payload("keys: twins, three", '{"key": "twin-1", "n": 1}', {"key": text("twin-3"), "idem": text("same-idem")})


def _numbered(n: str, kind: str = "String") -> Typed:
    return {"key": text(f"sequence {n[:40]}"), "n": (kind, n)}


_ATTRIBUTES: Final[dict[str, Typed]] = {
    "of 1024 characters": {"key": text("k" * 1_024), "n": text("1")},
    "of 1025 characters": {"key": text("k" * 1_025), "n": text("1")},
    "of 9000 characters": {"key": text("".join(f"{number:08x}" for number in range(7, 9_000, 8))), "n": text("1")},
    "of 1024 emoji": {"key": text("😀" * 1_024), "n": text("1")},
    "of 100000 characters": {"key": text("K" * 100_000), "n": text("1")},
    "missing": {"n": text("1")},
    "blank": {"key": text("   "), "n": text("1")},
    "of zero width": {"key": text("\u200b"), "n": text("1")},
    "of line ends": {"key": text("\r\n"), "n": text("1")},
    "in bytes": {"key": ("Binary", b"\x00\xff"), "n": text("1")},
    "a number": {"key": ("Number", "1.0"), "n": text("1")},
    "composed": {"key": text("Am\u00e9lie"), "n": text("1")},
    "decomposed": {"key": text("Ame\u0301lie"), "n": text("1")},
    "with a NUL spelled out": {"key": text("a\\u0000b"), "n": text("1")},
    "of SQL": {"key": text("k'); DELETE FROM redrive_lane; --"), "n": text("1")},
    "of HTML": {"key": text("<b onclick=alert(1)>key</b>"), "n": text("1")},
    "of bidi": {"key": text("\u202eyek\u202c"), "n": text("1")},
    "of noncharacters": {"key": text("\ufdd0\U0010ffff"), "n": text("1")},
    "sequence missing": {"key": text("without a sequence")},
    "sequence in bytes": {"key": text("bytes sequence"), "n": ("Binary", b"1")},
    "sequence of a word": _numbered("seventh"),
    "sequence 1e999": _numbered("1e999"),
    "sequence -1e999": _numbered("-1e999"),
    "sequence of a huge exponent": _numbered("1e99999999999999"),
    "sequence of a far too huge exponent": _numbered("1e" + "9" * 30),
    "sequence negative": _numbered("-7"),
    "sequence minus nought": _numbered("-0"),
    "sequence a fraction": _numbered("0.000001"),
    "sequence of 4000 digits": _numbered("4" * 4_000),
    "sequence of 4000 noughts": _numbered("1" + "0" * 4_000),
    "sequence of 4000 leading noughts": _numbered("0" * 4_000 + "1"),
    "sequence of 300 characters": _numbered("s" * 299),
    "sequence of 301 characters": _numbered("s" * 301),
    "sequence NaN": _numbered("NaN"),
    "sequence of a time": _numbered("2026-02-30T25:61:61Z"),
    "sequence of other digits": _numbered("٣٤"),
    "sequence of emoji": _numbered("😀" * 299),
    "sequence of 38 digits": _numbered("9" * 38, "Number"),
    "idempotency key of 1025": {"key": text("long idem"), "n": text("1"), "idem": text("i" * 1_025)},
    "idempotency key in bytes": {"key": text("bytes idem"), "n": text("1"), "idem": ("Binary", b"\x01")},
    "idempotency key blank": {"key": text("blank idem"), "n": text("1"), "idem": text(" ")},
    "idempotency key of no Latin-1": {"key": text("wide idem"), "n": text("1"), "idem": text("ключ \U0001f511")},
    "idempotency key of a header": {"key": text("header idem"), "n": text("1"), "idem": text("a\r\nX-Injected: key")},
}
_BODIES: Final = {
    "null in the body": '{"key":null,"n":null}',
    "an object in the body": '{"key": {"key": "inner"}, "n": [1]}',
    "an array in the body": '{"key": ["k"], "n": {}}',
    "true in the body": '{"key": true, "n": false}',
    "an empty text in the body": '{"key": "", "n": ""}',
    "a number in the body": '{"key": 1.0, "n": 10e-1}',
    "a huge number in the body": '{"key": ' + "9" * 5_000 + ', "n": 1e999}',
    "a huge exponent in the body": '{"key": 1e999999, "n": 1e-999999}',
    "a NUL in the body": r'{"key": "a\u0000b", "n": 1}',
    "a pair in the body": r'{"key": "\ud83d\ude00", "n": "\ud83d\ude00"}',
    "twice in the body": '{"key": "first", "key": "second key", "n": 1, "n": 2}',
    "half a megabyte in the body": '{"key": "' + "M" * 200_000 + '", "n": 1}',
    "no object in the body": '["key", "n"]',
}
