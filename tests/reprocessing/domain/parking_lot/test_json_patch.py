"""A text that is no JSON Patch is refused with what to write instead."""

from __future__ import annotations

import json

import pytest

from reprocessing.domain.errors import InvalidPatch
from reprocessing.domain.parking_lot import json_patch
from reprocessing.domain.parking_lot.json_patch import JsonPatch


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "The patch cannot be read"), ("{}", "not a list of operations"), ("[]", "not a list of operations"),
        ("[1]", "Operation 1 is not an object"), ('[{"op": "set", "path": "/a"}]', 'Operation 1 needs "op"'),
        ('[{"op": "remove"}]', 'Operation 1 needs "path"'), ('[{"op": "add", "path": "/a"}]', 'needs "value"'),
        ('[{"op": "copy", "path": "/a"}]', 'needs "from"'), ('[{"op": "remove", "path": "a"}]', "does not begin"),
        ('[{"op": "remove", "path": "/a~2"}]', "neither ~0"), ('[{"op": "remove", "path": ""}]', "the whole body"),
        ('[{"op": "test", "path": "/a", "value": 1}]', "only has tests"),
        ('[{"op": "move", "from": "/a", "path": "/a/b"}]', "moves /a into itself"),
        ('[{"op": "remove", "op": "test", "path": "/a"}]', "the same name twice"),
        ('[{"op": "remove", "path": 1}]', 'needs "path"'), ("[NaN]", "NaN is not a JSON number"),
        ('[{"op": "remove", "path": "' + "/a" * 65 + '"}]', "more than 64 parts"), ("[" * 99_999, "99,999 characters"),
    ],
    ids=range(18),
)  # fmt: skip
def test_a_text_that_is_no_patch_is_refused_with_what_to_write(text: str, why: str) -> None:
    with pytest.raises(InvalidPatch) as refused:
        JsonPatch.parse(text)
    assert why in str(refused.value)


def test_a_patch_of_many_operations_is_refused() -> None:
    with pytest.raises(InvalidPatch, match="The patch has 101 operations; at most 100 are allowed"):
        JsonPatch.parse(json.dumps([{"op": "add", "path": "/a", "value": 1}] * 101))


@pytest.mark.parametrize(
    ("op", "value", "text"),
    [
        ("replace", "12.50", '"value": 12.50'), ("add", '"x"', '"value": "x"'), ("add", "DE", '"value": "DE"'),
        ("add", '{"a": [1]}', '"value": {"a": [1]}'), ("add", "", '"value": ""'), ("add", "NaN", '"value": "NaN"'),
    ],
    ids=["number", "string", "word", "object", "nothing", "nan"],
)  # fmt: skip
def test_the_simple_form_writes_one_operation(op: str, value: str, text: str) -> None:
    assert json_patch.single_operation(op, "/a", value) == f'[{{"op": "{op}", "path": "/a", {text}}}]'
    assert len(JsonPatch.parse(json_patch.single_operation(op, "/a", value)).operations) == 1


def test_the_simple_form_removes_without_a_value() -> None:
    assert json_patch.single_operation("remove", "/a", "ignored") == '[{"op": "remove", "path": "/a"}]'
