"""An edit of many messages is stored as JSON values, and read again."""

from __future__ import annotations

import itertools

from reprocessing.domain.parking_lot.bulk_edit import BulkEdit, operations_of
from reprocessing.domain.parking_lot.json_patch import JsonPatch

PATCH = '[{"op": "replace", "path": "/country", "value": "secret"}, {"op": "move", "from": "/a", "path": "/b"}]'
OPERATIONS = ["replace /country", "move /a to /b"]


def test_an_edit_is_read_from_the_arguments_that_are_stored() -> None:
    for release, new_keys, changes_keys in itertools.product((False, True), repeat=3):
        edit = BulkEdit(JsonPatch.parse(PATCH), release=release, new_keys=new_keys, changes_keys=changes_keys)
        assert BulkEdit.read(edit.arguments()) == edit
        assert edit.arguments() == {
            "patch": PATCH, "operations": OPERATIONS, "release": release, "new_keys": new_keys,
            "changes_keys": changes_keys,
        }  # fmt: skip


def test_what_the_arguments_leave_out_is_not_done() -> None:
    assert BulkEdit.read({"patch": PATCH}) == BulkEdit(JsonPatch.parse(PATCH))


def test_operations_are_shown_without_their_values() -> None:
    assert operations_of(JsonPatch.parse(PATCH)) == OPERATIONS
