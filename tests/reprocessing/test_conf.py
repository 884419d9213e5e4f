"""settings.REDRIVE: everything may be left out, and nothing may be wrong."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import override_settings

from reprocessing import conf
from reprocessing.domain.aws.pricing import Prices
from reprocessing.domain.errors import InvalidSettings
from reprocessing.domain.safety.url_policy import Endpoint, read_url

URL = "mailto://user:hunter2@example.com"


def test_settings_are_read_when_they_are_asked_for_and_without_any_the_defaults_hold() -> None:
    with override_settings(REDRIVE={}):
        assert conf.current() == conf.Conf()
    with override_settings(REDRIVE={"LANES_PER_TASK": 1}):
        assert conf.current().lanes_per_task == 1


def test_settings_are_read_again_only_if_they_changed_also_inside() -> None:
    destinations = {"ops": URL}
    with override_settings(REDRIVE={"DESTINATIONS": destinations}):
        first = conf.current()
        assert conf.current() is first
        destinations["more"] = URL
        assert sorted(conf.current().destinations) == ["more", "ops"]


def test_durations_are_seconds_and_a_mark_can_be_named_or_switched_off() -> None:
    seen = conf.read_settings({"COUNT_LAG": 0, "SLICE": 0.5, "MARKS": {"redrive": "id", "message_id": None}})
    assert (seen.count_lag, seen.slice) == (timedelta(0), timedelta(milliseconds=500))
    assert (seen.marks.redrive, seen.marks.message_id, seen.marks.reprocessed_from) == ("id", None, "ReprocessedFrom")


def test_prices_are_dollars_for_a_million_requests() -> None:
    assert conf.read_settings({}).prices == Prices(0.40, 0.50)
    seen = conf.read_settings({"PRICE_STANDARD": 1, "PRICE_FIFO": 2.0}).prices
    assert (seen.of(fifo=False), seen.of(fifo=True)) == (1e-6, 2e-6)


def test_the_hosts_that_health_checks_may_ask_are_read_as_a_list_of_them() -> None:
    seen = conf.read_settings({"OUTBOUND_HOSTS": ("status.example.com", "10.1.0.0/16")}).outbound_hosts
    asked = ["http://status.example.com/", "http://10.1.2.3/", "http://10.2.2.3/"]
    assert [isinstance(read_url(url, seen), Endpoint) for url in asked] == [True, True, False]


def test_secrets_and_destinations_are_known_by_name_and_never_shown() -> None:
    seen = conf.read_settings({"SECRETS": {"orders": "s" * 24}, "DESTINATIONS": {"ops": URL}})
    assert (seen.secrets, list(seen.destinations)) == ({"orders": "s" * 24}, ["ops"])
    assert ("sss" in repr(seen), "hunter2" in repr(seen)) == (False, False)


def test_a_destination_that_cannot_be_used_is_named_without_its_secret() -> None:
    with pytest.raises(InvalidSettings) as refusal:
        conf.read_settings({"DESTINATIONS": {"ops": "syslog://hunter2"}})
    assert "DESTINATIONS: ops: its schema is not allowed" in str(refusal.value)
    assert "hunter2" not in str(refusal.value)


def test_everything_that_is_wrong_is_named_at_once() -> None:
    wrong = {"LAESE": 8, "RECEIVERS": True, "LONG_POLL": 21, "INTENT_SIZE": 1.5, "MARKS": {"id": "x", "redrive": "a b"}}
    with pytest.raises(InvalidSettings) as refusal:
        conf.read_settings(wrong)
    named = [line.split()[1].rstrip(":") for line in str(refusal.value).splitlines()[1:]]
    assert named == ["LAESE", "RECEIVERS", "LONG_POLL", "INTENT_SIZE", "MARKS", "MARKS"]


@pytest.mark.parametrize(
    "given",
    [
        {"SLICE": 8},
        {"HINT_LIFE": 60, "HINT_LIFE_CAP": 30},
        {"RECEIVE_VISIBILITY": 20},
        {"MARKS": {"redrive": "Same", "message_id": "Same"}},
        {"MARKS": {"redrive": "AWS.trace"}},
        {"MARKS": ["redrive"]},
        {"LEASE": float("nan")},
        {"LEASE": "8"},
        ["LEASE"],
    ],
)
def test_what_cannot_be_acted_on_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(InvalidSettings):
        conf.read_settings(given)
