"""Bodies and attributes at the limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.proof.poison.corpus.payload import READ, Payload, Typed, text

MIB: Final = 1_048_576


def some() -> Iterator[Payload]:
    for size in (READ - 1, READ, READ + 1):
        yield Payload(f"size: {size} bytes", "r" * size)
    yield _filled("size: a MiB", {})
    yield _filled("size: a MiB with an attribute", {"name": text("v" * 98)})
    yield _filled("size: a MiB with a binary", {"raw": ("Binary", bytes(range(256)) * 10)})
    yield _filled("size: a MiB with ten attributes", {f"a{number}": text("ten") for number in range(10)})
    yield _filled("size: a MiB with a garbled mark", {"RedriveId": text("no mark of ours")})
    for left in (1, 47, 60, 120, 200):
        yield _filled(f"size: a MiB less {left}", {}, less=left)
    wide = "é" * ((MIB - 10) // 2)
    yield Payload("size: a MiB of two bytes each", wide)
    yield Payload("size: a MiB of emoji", "😀" * (MIB // 4))
    yield Payload("size: a MiB of quotes", '"' * (MIB - 100))
    yield Payload("size: a MiB of backslashes", '"' + "\\" * (MIB - 100))
    yield Payload("size: a MiB of ampersands", "&" * (MIB - 100))
    yield Payload("size: a MiB of spaces", " " * MIB)
    yield Payload("size: a MiB of JSON", '{"key": "' + "k" * (MIB - 111) + '"}')
    yield Payload("size: a quarter MiB of members", "[" + "1," * ((READ - 4) // 2) + "1]")
    yield Payload("size: a quarter MiB of JSON text", '{"key": "' + "k" * (READ - 11) + '"}')
    yield Payload("size: 200 KiB", "b" * 200 * 1_024)
    yield Payload("size: an attribute of 900 kB", "small body, large attribute", {"large": text("L" * 900_000)})
    yield Payload(
        "size: binary of 900 kB", "small body, large binary", {"large": ("Binary", bytes(range(256)) * 3_500)}
    )


def _filled(name: str, attributes: Typed, *, less: int = 0) -> Payload:
    room = MIB - Payload(name, "", attributes).size - less
    return Payload(name, "x" * room, attributes)
