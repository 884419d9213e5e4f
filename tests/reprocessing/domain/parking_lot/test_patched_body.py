"""A patch changes what it names, and not one other byte; what it cannot do, it says."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.parking_lot import patched_body
from reprocessing.domain.parking_lot.json_patch import JsonPatch
from reprocessing.domain.parking_lot.patched_body import Unfit


def _patched(body: str | bytes, *operations: object) -> str:
    raw = body if isinstance(body, bytes) else body.encode()
    found = patched_body.apply(JsonPatch.parse(json.dumps(operations)), raw)
    return found.why if isinstance(found, Unfit) else found.decode()


def _op(op: str, path: str, value: object = None, **more: object) -> dict[str, object]:
    return {"op": op, "path": path, **({} if op in {"remove", "move", "copy"} else {"value": value}), **more}


PRETTY = '{\n  "id": 12345678901234567890123, "price": 1.50,\n  "name": "caf\\u00e9 \\/",\n  "rows": [1, 2 , 3]\n}\n'


@pytest.mark.parametrize(
    ("operation", "after"),
    [
        (_op("replace", "/name", "tea"), PRETTY.replace('"caf\\u00e9 \\/"', '"tea"')),
        (_op("replace", "/rows/1", {"n": 2}), PRETTY.replace("2 ,", '{"n": 2} ,')),
        (_op("remove", "/price"), PRETTY.replace(' "price": 1.50,', "")),
        (_op("remove", "/rows/0"), PRETTY.replace("[1, 2 ,", "[2 ,")),
        (_op("remove", "/rows/2"), PRETTY.replace("2 , 3]", "2]")),
        (_op("remove", "/id"), PRETTY.replace('"id": 12345678901234567890123, "price"', '"price"')),
        (_op("add", "/rows/-", 4), PRETTY.replace("3]", "3, 4]")),
        (_op("add", "/rows/0", 0), PRETTY.replace("[1,", "[0, 1,")),
        (_op("add", "/rows/3", 4), PRETTY.replace("3]", "3, 4]")),
        (_op("add", "/new", "yes"), PRETTY.replace("3]\n}", '3],\n  "new": "yes"\n}')),
        (_op("add", "/price", None), PRETTY.replace("1.50", "null")),
        (_op("copy", "/old", **{"from": "/id"}), PRETTY.replace("3]\n}", '3],\n  "old": 12345678901234567890123\n}')),
    ],
    ids=["replace", "replace-in-list", "remove", "remove-first-item", "remove-last-item", "remove-first-name", "append",
         "prepend", "insert-at-end", "add-member", "add-replaces", "copy"],
)  # fmt: skip
def test_only_what_is_named_changes_and_what_is_new_is_written_as_its_neighbours(
    operation: dict[str, object], after: str
) -> None:
    assert _patched(PRETTY, operation) == after


def test_a_value_is_written_as_the_patch_writes_it_so_that_numbers_keep_all_digits() -> None:
    patch = JsonPatch.parse('[{"op": "replace", "path": "/n", "value": 100000000000000000000.10}]')
    assert patched_body.apply(patch, b'{"n":1}') == b'{"n":100000000000000000000.10}'


def test_a_moved_value_keeps_its_text() -> None:
    body = '{"a": {"n": 1E400, "t": "\\u0041"}, "b": []}'
    assert _patched(body, _op("move", "/b/-", **{"from": "/a"})) == '{"b": [{"n": 1E400, "t": "\\u0041"}]}'


def test_operations_follow_each_other_and_one_that_is_not_possible_undoes_all() -> None:
    both = (_op("add", "/a", {}), _op("add", "/a/b", 1), _op("replace", "/a/b", 2))
    assert _patched("{}", *both) == '{"a":{"b":2}}'
    assert _patched("{}", *both, _op("remove", "/c")) == "it has nothing at /c"


@pytest.mark.parametrize(
    ("body", "operation", "why"),
    [
        ('{"a": 1}', _op("replace", "/b", 1), "it has nothing at /b"),
        ('{"a": 1}', _op("replace", "/a/b", 1), "it has nothing at /a/b"),
        ("[1]", _op("add", "/2", 1), "it has nothing at /2"),
        ("[1]", _op("remove", "/-"), "it has nothing at /-"),
        ("[1, 2]", _op("remove", "/01"), "it has nothing at /01"),
        ('{"a": 1}', _op("replace", "/a", 1), "the patch changes nothing in it"),
        ("not json", _op("add", "/a", 1), "it is not JSON"),
        (b"\xff\xfe", _op("add", "/a", 1), "it is not UTF-8"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', _op("add", "/a", 2), "an object in it has the same name twice"),
        ('{"a": NaN}', _op("add", "/a", 2), "NaN is not a JSON number"),
        ('{"a": "\\ud800"}', _op("add", "/b", 2), "its text holds half a surrogate pair, which is no character"),
        ("[" * 65 + "]" * 65, _op("add", "/-", 2), "its JSON is nested more than 64 deep"),
        ("\ufeff{}", _op("add", "/a", 2), "it is not JSON"),
        ('{"a": "x"}', _op("add", "/a/-", 2), "it has nothing at /a/-"),
    ],
    ids=str,
)
def test_a_body_that_the_patch_does_not_fit_is_refused_with_the_reason(
    body: str | bytes, operation: dict[str, object], why: str
) -> None:
    told = _patched(body, operation)
    assert told == why or (body == "\ufeff{}" and "BOM" in told)


@pytest.mark.parametrize(
    ("body", "value", "holds"),
    [
        ("1", 1.0, True), ("1", True, False), ("0", False, False), ("1.50", 1.5, True), ('"1"', 1, False),
        ('{"a": 1, "b": 2}', {"b": 2, "a": 1}, True), ("[1, 2]", [2, 1], False), ("null", None, True),
        ("[]", {}, False),
        ('"\\u0041"', "A", True), ("[1]", [1, 1], False),
    ],
    ids=str,
)  # fmt: skip
def test_a_test_compares_as_json_and_not_as_python(body: str, value: object, *, holds: bool) -> None:
    told = _patched(f'{{"x": {body}}}', _op("test", "/x", value), _op("add", "/y", 0))
    assert told == (f'{{"x": {body}, "y": 0}}'.replace(", ", ", ") if holds else "the test of /x failed") or (
        holds and json.loads(told)["y"] == 0
    )


def test_a_test_of_a_large_number_sees_all_its_digits() -> None:
    patch = '[{"op": "test", "path": "/n", "value": 12345678901234567891}, {"op": "remove", "path": "/n"}]'
    assert patched_body.apply(JsonPatch.parse(patch), b'{"n": 12345678901234567890}') == Unfit("the test of /n failed")


def test_names_with_slash_tilde_and_nothing_are_found() -> None:
    body = '{"a/b": 1, "m~n": 2, "": 3, "~1": 4}'
    operations = [_op("replace", path, 0) for path in ("/a~1b", "/m~0n", "/", "/~01")]
    assert _patched(body, *operations) == '{"a/b": 0, "m~n": 0, "": 0, "~1": 0}'


def test_copies_that_double_the_body_end_at_the_size_that_sqs_allows() -> None:
    bomb = [_op("add", "/a", ["x" * 100]), *[_op("copy", "/a/-", **{"from": "/a"}) for _ in range(60)]]
    begun = time.monotonic()
    assert _patched("{}", *bomb) == "it would be larger than 1,048,576 bytes"
    assert time.monotonic() - begun < 2


def test_many_operations_on_a_huge_list_end_at_the_work_that_is_allowed() -> None:
    body = json.dumps({"a": list(range(50_000)), "b": 1})
    begun = time.monotonic()
    assert _patched(body, _op("test", "/a", 1), _op("remove", "/b")) == "the test of /a failed"
    same = [_op("copy", "/c", **{"from": "/a"}), _op("remove", "/c")] * 49
    assert _patched(body, *same, _op("remove", "/b")) == "the edit would read more than 16,777,216 characters"
    assert time.monotonic() - begun < 5


@pytest.mark.soak
def test_a_list_with_more_members_than_are_split_is_refused() -> None:
    body = json.dumps([0] * 100_001)
    assert _patched(body, _op("add", "/-", 1)) == "an object or list on the path has more than 100,000 members"


def test_what_was_taken_out_makes_room_for_what_is_put_in() -> None:
    body = json.dumps({"a": "x" * 900_000})
    kept = [_op("remove", "/a"), *[_op("add", "/a", "y" * 600) for _ in range(99)]]
    assert _patched(body, *kept) == json.dumps({"a": "y" * 600}).replace(": ", ":")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4), max_leaves=12,
)  # fmt: skip


@pytest.mark.soak
@given(
    st.dictionaries(st.text(max_size=4), JSON, min_size=1, max_size=4), JSON, st.sampled_from([None, 1, 2]), st.data()
)
def test_a_change_of_any_member_of_any_object_is_what_json_says(
    document: dict[str, object], value: object, indent: int | None, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted(document)))
    body, path = json.dumps(document, indent=indent), "/" + name.replace("~", "~0").replace("/", "~1")
    for operation, meant in (
        (_op("remove", path), {key: kept for key, kept in document.items() if key != name}),
        (_op("add", path, value), document | {name: value}),
        (_op("add", path + "+", value), document | {name + "+": value}),
    ):  # fmt: skip
        told = patched_body.apply(JsonPatch.parse(json.dumps([operation])), body.encode())
        if not isinstance(told, Unfit):
            assert json.loads(told) == meant
        else:
            assert told.why in {
                "the patch changes nothing in it", "its text holds half a surrogate pair, which is no character",
            }  # fmt: skip
