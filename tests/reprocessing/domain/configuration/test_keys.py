"""The settings in force for a DLQ are its own, else its policy's, else the defaults."""

from __future__ import annotations

from typing import Any

import pytest

from reprocessing.domain.configuration.keys import Kind, effective, key_of

DEFAULTS: dict[str, Any] = {"mode": "single", "waves": False, "interval": 300, "crontab": None}


def test_an_own_setting_is_stronger_than_the_policy_s_and_that_than_the_default() -> None:
    found = effective({"mode": "ordered"}, {"mode": "single", "waves": True}, DEFAULTS)
    assert found == DEFAULTS | {"mode": "ordered", "waves": True}


@pytest.mark.parametrize(
    ("own", "inherited", "schedule"),
    [
        ({"crontab": "0 4 * * *"}, {"interval": 60}, (None, "0 4 * * *")),
        ({"interval": 60}, {"crontab": "0 4 * * *"}, (60, None)),
        ({}, {"crontab": "0 4 * * *"}, (None, "0 4 * * *")),
        ({}, {"interval": 60}, (60, None)),
        ({}, {}, (300, None)),
        ({"crontab": None}, {"crontab": "0 4 * * *"}, (None, None)),
        ({"interval": 60, "crontab": "0 4 * * *"}, {}, (60, "0 4 * * *")),
    ],
    ids=["own crontab", "own interval", "policy's crontab", "policy's interval", "default", "switched off", "both"],
)
def test_only_one_schedule_is_in_force(own: dict[str, Any], inherited: dict[str, Any], schedule: object) -> None:
    found = effective(own, inherited, DEFAULTS)
    assert (found["interval"], found["crontab"]) == schedule


def test_a_field_has_the_key_of_its_kind_of_object() -> None:
    assert [key_of(kind, "role_arn") for kind in (Kind.TARGET, Kind.DLQ, Kind.RULE)] == ["role", "role", "role_arn"]
    assert [key_of(Kind.RULE, "conditions"), key_of(Kind.RULE, "target")] == ["when", "to"]
