from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.admin.messages.readable_bytes import LONGEST, duration, readable, visible
from tests.reprocessing.domain.corpora.hostile import PAGES

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.soak
@given(JSON)
def test_indented_json_says_the_same(value: object) -> None:
    shown = readable(json.dumps(value).encode())
    assert [shown.form, json.loads(shown.text)] == ["JSON", value]


def test_json_is_indented_and_otherwise_left_as_it_was_written() -> None:
    body = b'{"a":1.10,"a":[1E5,{},[ ],{"x":"\\u202e, [b]"}],"n":123456789012345678901234567890}'
    assert readable(body).text.split("\n") == [
        "{",
        '  "a": 1.10,',
        '  "a": [',
        "    1E5,",
        "    {},",
        "    [],",
        "    {",
        '      "x": "\\u202e, [b]"',
        "    }",
        "  ],",
        '  "n": 123456789012345678901234567890',
        "}",
    ]


def test_other_bodies_are_text_or_hex() -> None:
    assert [readable(b"hello, [you").form, readable(b"").text] == ["text", ""]
    assert readable(b"\xff\x00AB").text == "000000  ff 00 41 42                                      ..AB"


@pytest.mark.parametrize("body", PAGES, ids=range(len(PAGES)))
def test_large_body_is_truncated(body: bytes) -> None:
    shown = readable(body)
    assert [shown.size, shown.cut == (shown.size > LONGEST), len(shown.text) <= LONGEST * 1.3] == [
        len(body),
        True,
        True,
    ]


def test_hidden_characters_are_shown_as_numbers() -> None:
    assert visible("a\u202eb\x00c\ud800\n\té😀") == "a<U+202E>b<U+0000>c<U+D800>\n\té😀"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "over"), (-1, "over"), (59, "59 s"), (60, "1 min 0 s"), (90_000, "1 d 1 h"), (345_600, "4 d 0 h")],
)
def test_duration_has_two_units(seconds: int, text: str) -> None:
    assert duration(timedelta(seconds=seconds)) == text


def test_no_duration_is_a_dash() -> None:
    assert duration(None) == "-"
