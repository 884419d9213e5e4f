"""An outline has the keys and types of a body, and none of its values."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reprocessing.domain.message import body_outline, json_view
from reprocessing.domain.message.body_outline import DEPTH, KEYS, PATHS, Outline
from reprocessing.domain.message.json_view import JsonValue


def of(body: bytes) -> Outline:
    return body_outline.of_bytes(body, json_view.read(body))


@pytest.mark.parametrize(
    ("body", "outline"),
    [
        (
            b'{"b": [{"x": null}, 1], "a": true, "d": {}, "n": 1.5, "t": "s", "e": [], "2026-11": 1}',
            Outline("JSON with #, a, b, d, e, n, …", (
                "json", ".#:number", ".a:yes-or-no", ".b:list", ".b[].x:null", ".b[]:object", ".d:object", ".e:list",
                ".n:number", ".t:text", ":object",
            ), ("#", "a", "b", "d", "e", "n", "t")),
        ),
        (b"{}", Outline("an empty JSON object", ("json", ":object"))),
        (b'["a"]', Outline("a JSON list of texts", ("json", ":list", "[]:text"))),
        (b"null", Outline("JSON: a null", ("json", ":null"))), (b" ", Outline("an empty body", ("empty",))),
        (b"<a:b/>", Outline("XML: a:b", ("xml", "a:b"))),
        (b"x=1&a=2&", Outline("a form with a, x", ("form", "a", "x"), ("a", "x"))),
        (b"x=&a=", Outline("plain text body", ("text",))), (b"\xff", Outline("bytes that are no text", ("binary",))),
        (b'{"a": NaN}', Outline("plain text body", ("json-like",))),
    ],
)  # fmt: skip
def test_a_body_is_outlined_without_its_values(body: bytes, outline: Outline) -> None:
    assert of(body) == outline


@pytest.mark.soak
def test_an_outline_has_limits() -> None:
    deep: Any = 1
    for _ in range(DEPTH + 1):
        deep = {"a": deep}
    assert of(json.dumps({"deep": deep, "z": 1}).encode()).parts == (
        "json", *sorted([":object", ".z:number", *(f".deep{'.a' * n}:object" for n in range(DEPTH))])
    )  # fmt: skip
    letters = "abcdefghijklmnopqrstuvwxyz"
    keys = [f"{one}{two}" for one in letters for two in letters]
    wide = dict.fromkeys(keys, dict.fromkeys(keys, 1))
    parts = of(json.dumps(wide).encode()).parts
    assert len(parts) == PATHS + 1
    assert of(json.dumps(dict.fromkeys(keys, 1)).encode()).parts[1:] == (
        *sorted(f".{key}:number" for key in keys[:KEYS]), ":object"
    )  # fmt: skip
    assert of(json.dumps({"k" * 40: 1, "l" * 41: 1}).encode()).title == f"JSON with #, {'k' * 40}"


def test_the_texts_of_the_first_values_are_found() -> None:
    document: JsonValue = {"a": "x", "b": ["y", {"c": "z"}], "n": 1}
    assert sorted(body_outline.texts_of_json(document)) == ["x", "y", "z"]
    assert list(body_outline.texts_of_json(json_view.Unreadable("why"))) == []
    assert len(list(body_outline.texts_of_json(["x"] * 300))) == PATHS - 1
