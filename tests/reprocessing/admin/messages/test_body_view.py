from __future__ import annotations

import json

import pytest
from django.utils.html import escape
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.admin.messages import body_view
from reprocessing.admin.messages.body_view import BODY_BYTES, MOST_VALUES, TREE_BYTES, Tree, raw, tree
from reprocessing.admin.messages.readable_bytes import readable
from reprocessing.domain.message import body_format
from tests.reprocessing.domain.corpora.hostile import PAGES


def shown(body: bytes) -> Tree:
    found = tree(body)
    assert found
    return found


def lines(found: Tree) -> list[str]:
    return [f"{row['name']}:{row.get('text', row.get('size'))}" for row in found.rows if row["kind"] != "close"]


def test_numbers_repeated_names_and_hidden_characters_are_shown_as_they_are() -> None:
    found = shown('{"n": 9007199254740993.0, "n": 1e400, "\u202ename": "a\\u0000\\ud800b", "l": [1, {}]}'.encode())
    assert lines(found) == [
        ":4", "n:9007199254740993.0", "n:1e400", "<U+202E>name:a<U+0000><U+D800>b", "l:2", "0:1", "1:{}",
    ]  # fmt: skip
    assert [row["is_repeated"] for row in found.rows if row["kind"] == "number"] == [False, True, False]
    assert [json.loads(row["exact"]) for row in found.rows if row.get("exact")] == ["\u202ename"]


@pytest.mark.parametrize(
    "body", [b"", b"text", b"12", b'"a"', b"\xff\xfe", b"{broken", b"\xef\xbb\xbf{}", b"[1,]", b"{\x00}"], ids=range(9)
)
def test_what_is_no_object_or_list_has_no_tree(body: bytes) -> None:
    assert tree(body) is None


@pytest.mark.parametrize(("body", "stopped"), [(b"[" * 5_000 + b"]" * 5_000, True), (b'{"a": NaN}', False)])
def test_a_body_that_strict_parsers_refuse_has_a_tree_all_the_same(body: bytes, stopped: bool) -> None:
    found = shown(body)
    opened = [row["kind"] for row in found.rows]
    assert (found.is_stopped, opened.count("open"), opened.count("close")) == (
        (True, 64, 64) if stopped else (False, 1, 1)
    )  # fmt: skip


@pytest.mark.parametrize(
    "member", ['"{n}": "<<<<\'\\u0001&&"', '"{n}": "x"', '"k{n}": [1, 2, {{"a": "b"}}]'], ids=range(3)
)
def test_a_large_body_is_cut_and_its_tree_is_closed(member: str) -> None:
    groups = ("{" + ", ".join(member.format(n=n) for n in range(90)) + "}" for _ in range(90))
    found = shown(f"[{', '.join(groups)}]".encode())
    kinds = [row["kind"] for row in found.rows]
    assert (found.is_cut, kinds.count("open") == kinds.count("close")) == (True, True)
    assert 100 < found.values <= MOST_VALUES


def test_the_html_of_a_tree_and_of_a_text_has_a_limit() -> None:
    worst = json.dumps(["\u0001" * 300] * 25 + [{"\u0001" * 300 + str(n): 1 for n in range(90)}]).encode()
    found = shown(worst)
    texts = sum(len(escape(row.get("text", "") + row["name"]).encode()) for row in found.rows if row["kind"] != "close")
    assert texts < TREE_BYTES + 2 * 300 * 14
    for body in (b'"' * 262_144, b"\x01" * 262_144, "é".encode() * 131_072, b"\xff" * 262_144):
        text = raw(body, body_format.recognise(body).body_format).shown
        assert (BODY_BYTES * 0.8 < len(escape(text.text).encode()) <= BODY_BYTES, text.cut) == (True, True)


@pytest.mark.parametrize("body", PAGES, ids=range(len(PAGES)))
def test_large_bodies_of_every_form_are_shown(body: bytes) -> None:
    tree(body)
    assert len(escape(raw(body, body_format.recognise(body).body_format).shown.text).encode()) <= BODY_BYTES


@given(st.text(), st.integers(1, 400))
def test_a_cut_text_begins_as_the_text_does(text: str, most: int) -> None:
    shown = body_view.cut_to(readable(text.encode(errors="surrogatepass")), most)
    assert readable(text.encode(errors="surrogatepass")).text.startswith(shown.text)
    assert len(escape(shown.text).encode()) <= most


@pytest.mark.parametrize(
    ("body", "exact"),
    [
        (b'{"a":1.0}', True), (b"plain\ttext\n", True), (b"a\x00", False), ("\u202e".encode(), False), (b"\xff", False),
        (b"<a><b>1</b></a>", False), (b"x" * 40_000, False), (b"", True),
    ],
    ids=range(8),
)  # fmt: skip
def test_only_a_text_that_is_the_body_can_be_copied(body: bytes, exact: bool) -> None:
    found = raw(body, body_format.recognise(body).body_format)
    assert (found.is_exact, not exact or found.shown.text == body.decode()) == (exact, True)
