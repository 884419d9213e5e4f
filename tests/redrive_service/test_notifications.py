"""Destinations and thresholds come from the environment; what is wrong is named, and no URL is repeated."""

from __future__ import annotations

import pytest

from redrive_service.environment import Environment, EnvironmentIsIncomplete, read
from reprocessing import conf
from tests.redrive_service.test_environment import COMPLETE

URL = "mailto://user:hunter2@example.com"
PUBLIC = {"REDRIVE_PUBLIC_URL": "https://redrive.example.com"}


def surroundings(**variables: str) -> Environment:
    return read({**COMPLETE, **variables})


def refusal(**variables: str) -> str:
    with pytest.raises(EnvironmentIsIncomplete) as refused:
        surroundings(**variables)
    assert "hunter2" not in str(refused.value)
    return str(refused.value)


def test_each_variable_is_a_destination_by_its_name() -> None:
    found = surroundings(REDRIVE_NOTIFY_OPS=URL, REDRIVE_NOTIFY_TEAM_A=URL, REDRIVE_NOTIFY_NONE=" ", **PUBLIC)
    assert found.destinations == {"ops": URL, "team-a": URL}
    assert "hunter2" not in repr(found)


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"REDRIVE_NOTIFY_OPS": "syslog://hunter2"}, "REDRIVE_NOTIFY_OPS cannot be used: its schema is not allowed"),
        ({"REDRIVE_NOTIFY_OPS": URL, "REDRIVE_NOTIFY_ops": URL}, "names the destination ops a second time"),
        ({"REDRIVE_NOTIFY_": URL}, "REDRIVE_NOTIFY_ names no destination"),
        ({"REDRIVE_ALERT_PARKED_COUNT": "many"}, "REDRIVE_ALERT_PARKED_COUNT must be a whole number from 1 to"),
        ({"REDRIVE_ALERT_PARKED_AGE": "1"}, "REDRIVE_ALERT_PARKED_AGE must be a whole number of seconds from 60 to"),
        ({"REDRIVE_PUBLIC_URL": "redrive.example.com"}, "REDRIVE_PUBLIC_URL must be a URL without a path"),
        ({"REDRIVE_PUBLIC_URL": "https://redrive.example.com/admin"}, "REDRIVE_PUBLIC_URL must be a URL without a"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_cure(variables: dict[str, str], why: str) -> None:
    assert why in refusal(**{**PUBLIC, **variables})


def test_a_destination_takes_the_address_of_the_admin() -> None:
    assert "REDRIVE_PUBLIC_URL is not set, but a notification destination is." in refusal(REDRIVE_NOTIFY_OPS=URL)


def test_thresholds_are_read() -> None:
    found = surroundings(REDRIVE_ALERT_PARKED_COUNT="5", REDRIVE_ALERT_PARKED_AGE="7200")
    thresholds = conf.read_settings(found.alerts).thresholds
    assert (thresholds.parked_count, thresholds.parked_age.total_seconds()) == (5, 7_200)
