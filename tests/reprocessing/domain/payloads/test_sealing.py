from __future__ import annotations

import pytest

from reprocessing.domain.errors import PayloadUnreadable
from reprocessing.domain.payloads import sealing
from reprocessing.domain.payloads.sealing import DataKey, Part

KEY = DataKey(7, bytes(range(32)))
CANARY = b"canary of a body"


def _sealed(content: bytes = CANARY) -> bytes:
    return sealing.seal(KEY, content, part=Part.BODY, of="m-1")


@pytest.mark.parametrize("content", [b"", CANARY, b"\x00" * 1_000], ids=["empty", "text", "zeros"])
def test_sealed_bytes_are_opened_as_they_were(content: bytes) -> None:
    sealed = _sealed(content)
    assert sealing.open_sealed(KEY, sealed, part=Part.BODY, of="m-1") == content
    assert (sealing.key_id(sealed), len(sealed) - len(content)) == (7, sealing.OVERHEAD)
    assert CANARY not in sealed


def test_equal_content_is_never_sealed_alike() -> None:
    assert len({_sealed() for _ in range(100)}) == 100


@pytest.mark.parametrize(
    ("sealed", "part", "of"),
    [
        (_sealed()[:-1], Part.BODY, "m-1"),
        (_sealed()[:-1] + b"\x00\x00", Part.BODY, "m-1"),
        (_sealed()[:20], Part.BODY, "m-1"),
        (_sealed(), Part.ATTRIBUTES, "m-1"),
        (_sealed(), Part.BODY, "m-2"),
    ],
    ids=["cut", "changed", "only its head", "another part", "another message"],
)
def test_changed_or_moved_bytes_are_not_opened(sealed: bytes, part: Part, of: str) -> None:
    with pytest.raises(PayloadUnreadable, match="was changed in the database, or belongs to another message"):
        sealing.open_sealed(KEY, sealed, part=part, of=of)


def test_readable_bytes_are_not_taken_for_sealed_ones() -> None:
    assert [sealing.key_id(content) for content in (b"", b"{}", "\xff\x01".encode(), b"\x01")] == [None] * 4


def test_a_sealed_text_is_told_from_a_readable_one() -> None:
    sealed = _sealed()
    assert sealing.from_text(sealing.to_text(sealed)) == sealed
    assert [sealing.from_text(text) for text in ("", "text", "\x1atext", "\x1aaGVsbG8=")] == [None] * 4


def test_a_digest_needs_the_key() -> None:
    other = DataKey(8, bytes(32))
    assert KEY.digest(CANARY) == KEY.digest(CANARY)
    assert len({KEY.digest(CANARY), other.digest(CANARY), KEY.digest(b"canary")}) == 3


def test_no_key_is_shown() -> None:
    assert repr(DataKey(7, b"s" * 32)) == "DataKey(id=7)"
