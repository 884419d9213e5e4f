from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.message import json_tree
from reprocessing.domain.message.json_tree import ITEMS, MEMBERS, Closed, Label, Leaf, Opened, Stopped, walk

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def told(text: str) -> list[str]:
    """The tree in short lines: name or index, and value."""
    found = []
    for step in walk(text):
        match step:
            case Leaf(label, kind, value):
                found.append(f"{_place(label)}={value} ({kind})")
            case Opened(label, is_list):
                found.append(f"{_place(label)}{'[' if is_list else '{'}")
            case Closed(count, unread):
                found.append(f"end {count}-{unread}")
            case Stopped():
                found.append("stopped")
    return found


def _place(label: Label) -> str:
    place = label.name if label.name is not None else "" if label.index is None else str(label.index)
    return f"{place}{' again' if label.is_repeated else ''}"


def test_names_and_numbers_are_as_they_are_written() -> None:
    text = '{"n": 12345678901234567890123, "price": 1.10, "e": 1E400, "n": -0, "deep": [{}, [ ], null, "a\\u00e9"]}'
    assert told(text) == [
        "{", "n=12345678901234567890123 (number)", "price=1.10 (number)", "e=1E400 (number)", "n again=-0 (number)",
        "deep[", "0={} (empty)", "1=[] (empty)", "2=null (word)", "3=aé (text)", "end 4-0", "end 5-0",
    ]  # fmt: skip


def test_of_long_lists_and_objects_the_rest_is_counted() -> None:
    many = {"list": list(range(1_000)), "object": {f"k{n}": n for n in range(500)}, "last": True}
    found = told(json.dumps(many))
    ends = [line for line in found if line.startswith("end")]
    assert ends == [f"end 1000-{1_000 - ITEMS}", f"end 500-{500 - MEMBERS}", "end 3-0"]
    assert found[-2] == "last=True (word)".replace("True", "true")


def test_the_rest_of_an_object_counts_repeated_names() -> None:
    text = "{" + ", ".join('"a": 1' for _ in range(MEMBERS + 3)) + "}"
    assert told(text)[-1] == f"end {MEMBERS + 3}-3"


@pytest.mark.soak
@given(JSON)
def test_every_value_of_a_small_document_is_in_the_tree(value: object) -> None:
    steps = list(walk(json.dumps(value)))
    assert _built(steps) == json.loads(json.dumps(value), parse_int=str, parse_float=str)


def _built(steps: list[json_tree.Step]) -> object:
    """The document that a tree shows, with numbers as texts."""
    words: dict[str, object] = {"true": True, "false": False, "null": None, "{}": {}, "[]": []}
    around: list[tuple[Label, list[tuple[Label, object]] | None, bool]] = [(Label(), [], True)]
    for step in steps:
        match step:
            case Leaf(label, kind, text):
                value = words[text] if kind in {"word", "empty"} else text
                assert around[-1][1] is not None
                around[-1][1].append((label, value))
            case Opened(label, is_list):
                around.append((label, [], is_list))
            case Closed():
                label, values, is_list = around.pop()
                assert values is not None
                made: object = [each for _, each in values] if is_list else {at.name: each for at, each in values}
                assert around[-1][1] is not None
                around[-1][1].append((label, made))
            case Stopped():
                raise AssertionError("it stopped")
    assert around[0][1] is not None
    return around[0][1][0][1]


@pytest.mark.parametrize("text", ["", "nothing", "{", '{"a"', '{"a": 1', '{"a" 1}', "[1 2]", "{1: 2}", '["a', "[,]"])
def test_a_text_that_is_no_json_ends_the_tree(text: str) -> None:
    assert told(text)[-1] == "stopped"


@given(st.text(alphabet='{}[],:"\\ 1ate', max_size=60))
def test_no_text_fails(text: str) -> None:
    list(walk(text))


@pytest.mark.parametrize("text", ["[" * 5_000 + "]" * 5_000, '{"a": ' * 5_000 + "1" + "}" * 5_000, "[" * 1_000_000])
def test_a_tree_of_more_than_64_levels_stops(text: str) -> None:
    found = list(walk(text))
    assert (len(found), found[-1]) == (65, Stopped())


def test_a_deep_value_among_many_stops_the_tree_and_fails_nothing() -> None:
    items = ["1"] * ITEMS + ["[" * 100_000 + "]" * 100_000]
    assert told(f"[{', '.join(items)}]")[-1] == "stopped"
