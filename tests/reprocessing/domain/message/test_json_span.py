"""Members of a JSON object are taken out byte for byte, or there is a reason."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reprocessing.domain.message.json_span import json_string_text, member_bytes
from reprocessing.domain.message.json_view import DEPTH, Unreadable

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=4
)  # fmt: skip
blanks = st.text(" \t\n\r", max_size=3)


@given(st.binary())
@example(b'{"a":' + b"[" * 100_000)
@example(b'{"a":' * 10_000 + b"1" + b"}" * 10_000)
@example(b'{"a":"' + b'\\"' * 100_000)
@example(b'{"a":' + b"9" * 100_000 + b"}")
def test_no_bytes_make_reading_raise(body: bytes) -> None:
    member_bytes(body)
    json_string_text(body)


@pytest.mark.soak
@settings(max_examples=50)
@given(st.dictionaries(st.text(), values, max_size=3), st.booleans(), blanks, blanks)
def test_each_member_is_unchanged_whatever_is_around_it(
    members: dict[str, object], ascii_only: bool, before: str, after: str
) -> None:
    written = {
        json.dumps(name, ensure_ascii=ascii_only): json.dumps(value, ensure_ascii=ascii_only, indent=1)
        for name, value in members.items()
    }
    inside = ",".join(f"{before}{name}{after}:{before}{value}{after}" for name, value in written.items())
    expected = {json.loads(name): value.encode() for name, value in written.items()}
    assert member_bytes(f"{after}{{{inside}{before}}}{after}".encode()) == expected


@pytest.mark.parametrize(
    "value",
    [
        b"1.00", b"1E+3", b"-0", b"123456789012345678901234567890", b'"\\u00e9\\/"', b'"\\ud800"',
        b'{"b":1, "a" : 2}', b"[ ]",
    ],
)  # fmt: skip
def test_numbers_escapes_and_the_order_of_names_are_kept(value: bytes) -> None:
    assert member_bytes(b'{"x":1,"payload": ' + value + b' ,"y":2}') == {"x": b"1", "payload": value, "y": b"2"}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "it is not JSON: { is missing at character 0"), (b"[1]", "it is not JSON: { is missing at character 0"),
        (b'{"a":1', "it is not JSON: , is missing at character 6"),
        (b'{"a":1,}', "it is not JSON: a name is missing at character 7"),
        (b'{1:"a"}', "it is not JSON: a name is missing at character 1"),
        (b'{"a" 1}', "it is not JSON: : is missing at character 5"),
        (b'{"a":}', "it is not JSON: Expecting value at character 5"),
        (b'{"a":1} {}', "it is not JSON: text follows the object at character 7"), (b'{"a":\xff}', "it is not UTF-8"),
        (b'{"a":NaN}', "NaN is not a JSON number"), (b'{"a":1,"\\u0061":2}', "it has the same name twice"),
        (b'{"a":' + b"[" * DEPTH + b"]" * DEPTH + b"}", "its JSON is nested more than 64 deep"),
    ],
)  # fmt: skip
def test_other_bodies_are_unreadable_with_a_reason(body: bytes, why: str) -> None:
    assert member_bytes(body) == Unreadable(why)


@pytest.mark.parametrize(
    ("raw", "text"),
    [(b'"\\u00e9"', "é"), (b'""', ""), (b"1", None), (b"null", None), (b'"\\ud800"', None), (b'"', None), (None, None)],
)
def test_the_text_of_a_json_string_is_returned(raw: bytes | None, text: str | None) -> None:
    assert json_string_text(raw) == text
