"""Any bytes are read as JSON, or there is a reason."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reprocessing.domain.message import json_view
from reprocessing.domain.message.json_view import DEPTH, Unreadable, number_text, read


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@given(st.binary())
@example(b'"' + b'\\"' * 10_000)
@example(b"{" * 100_000)
@example(b'{"a":' * 10_000 + b"1" + b"}" * 10_000)
def test_no_bytes_make_reading_raise(body: bytes) -> None:
    read(body)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.soak
@given(values, st.booleans())
def test_json_is_read_as_it_was_written(value: object, ascii_only: bool) -> None:
    assert read(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "it is not JSON: Expecting value at character 0"), (b"\xff", "it is not UTF-8"),
        (b"\xef\xbb\xbf{}", "it is not JSON: Unexpected UTF-8 BOM (decode using utf-8-sig) at character 0"),
        ("\ud800".encode(errors="surrogatepass"), "it is not UTF-8"),
        (b'["\\ud800"]', "its text holds half a surrogate pair, which is no character"),
        (b'{"\\udfff": 1}', "its text holds half a surrogate pair, which is no character"),
        (b"[NaN]", "NaN is not a JSON number"), (b"-Infinity", "-Infinity is not a JSON number"),
        (b"1e99999999999999999999", "it has a number that is out of range"),
        (nested(DEPTH + 1), "its JSON is nested more than 64 deep"),
        (nested(10_000), "its JSON is nested more than 64 deep"),
    ],
)  # fmt: skip
def test_unreadable_bytes_have_a_reason(body: bytes, why: str) -> None:
    assert read(body) == Unreadable(why)


def test_only_nested_brackets_outside_of_texts_are_depth() -> None:
    assert not isinstance(read(nested(DEPTH)), Unreadable)
    assert read(b"[" + b"[]," * 200 + b"[]]") == [[]] * 201
    assert read(b'"' + b'[\\"' * 200 + b'"') == '["' * 200
    assert read(b'"\\ud83d\\ude00"') == "\U0001f600"


def test_a_text_without_an_end_is_searched_once() -> None:
    brackets, text = b"[]" * (DEPTH + 1), b'"' + b'\\"' * 20_000
    assert isinstance(read(brackets + text), Unreadable)
    # One match, to the end: no search begins at each quote.
    assert [found.group() for found in json_view._STRING.finditer(brackets + text)] == [text]


def test_numbers_are_exact_however_large() -> None:
    digits = "9" * 100_000
    found = read(f"[0.1, {digits}, 340282366920938463463374607431768211457]".encode())
    assert found == [Decimal("0.1"), Decimal(digits), 2**128 + 1]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1, "1"), (Decimal("1.0"), "1"), (Decimal("10e-1"), "1"), (Decimal("1.50"), "1.5"), (Decimal("-0.0"), "0"),
        (Decimal("-1e3"), "-1000"), (Decimal("1e-7"), "0.0000001"), (Decimal("12e999999999"), "12E999999999"),
        (2**128 + 1, "340282366920938463463374607431768211457"),
    ],
)  # fmt: skip
def test_a_number_has_one_canonical_text(number: int | Decimal, text: str) -> None:
    assert number_text(number) == text


@pytest.mark.soak
@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_a_numbers_text_is_never_rounded(number: Decimal) -> None:
    assert Decimal(number_text(number)) == number


def test_nan_has_no_text() -> None:
    with pytest.raises(ValueError, match="is not a number"):
        json_view.number_text(Decimal("NaN"))
