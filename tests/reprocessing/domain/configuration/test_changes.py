"""The plan of `apply_config` lists each setting that changes, with its old and new value, and no other."""

from __future__ import annotations

from typing import Any

import pytest

from reprocessing.domain.configuration.changes import Action, FieldChange, ObjectChange, compare
from reprocessing.domain.configuration.keys import Kind

DLQ: dict[str, Any] = {
    "url": "https://q", "fifo": False, "policy": "slow", "mode": "ordered", "interval": 60, "own_settings": ["mode"],
}  # fmt: skip


def test_a_new_object_is_added_with_its_settings_and_those_of_its_policy_are_inherited() -> None:
    assert compare(Kind.DLQ, "orders", None, DLQ) == ObjectChange(
        Kind.DLQ, "orders", Action.ADD,
        (
            FieldChange("url", None, "https://q"), FieldChange("policy", None, "slow"),
            FieldChange("mode", None, "ordered"), FieldChange("every", None, 60, inherited=True),
        ),
    )  # fmt: skip


def test_without_a_policy_no_setting_is_inherited() -> None:
    found = compare(Kind.DLQ, "orders", DLQ, DLQ | {"policy": "", "interval": 30})
    assert found == ObjectChange(
        Kind.DLQ, "orders", Action.CHANGE, (FieldChange("policy", "slow", ""), FieldChange("every", 60, 30))
    )


def test_only_settings_that_differ_are_changed_and_one_that_is_gone_has_no_new_value() -> None:
    before, after = {"rate": 1, "burst": 2, "window": 3}, {"burst": 2, "rate": 5, "own_settings": []}
    assert compare(Kind.TARGET, "shop", before | {"own_settings": []}, after) == ObjectChange(
        Kind.TARGET, "shop", Action.CHANGE, (FieldChange("rate", 1, 5), FieldChange("window", 3, None))
    )


def test_an_object_that_only_owns_more_of_its_settings_is_changed_without_a_field() -> None:
    after = DLQ | {"own_settings": ["mode", "interval"]}
    assert compare(Kind.DLQ, "orders", DLQ, after) == ObjectChange(Kind.DLQ, "orders", Action.CHANGE)


def test_an_object_without_settings_is_removed() -> None:
    assert compare(Kind.RULE, "late", {"position": 1}, None) == ObjectChange(Kind.RULE, "late", Action.REMOVE)


@pytest.mark.parametrize("same", [None, DLQ, {}], ids=["not there", "there", "without settings"])
def test_what_stays_as_it_is_is_no_change(same: dict[str, Any] | None) -> None:
    assert compare(Kind.DLQ, "orders", same, same) is None


def test_a_queue_s_own_order_is_no_setting() -> None:
    assert compare(Kind.DLQ, "orders", DLQ, DLQ | {"fifo": True}) is None
