from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client

from reprocessing.domain.ordering.placement import sort_key
from reprocessing.models import Breaker, DeadLetterQueue, Lane
from reprocessing.store.ordering.lanes import database_now
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> Client:
    return person("ann", "view_breaker", "view_lane")


def _page(client: Client, row: Breaker | Lane) -> str:
    page = client.get(f"/admin/reprocessing/{row._meta.model_name}/{row.pk}/change/")
    assert page.status_code == 200
    return unescape(page.content.decode())


def _internals(page: str) -> list[str]:
    """The fields in the section that is closed at first."""
    (section,) = re.findall(r"<details>\s*<summary>\s*<h2[^>]*>Internals</h2>(.*?)</details>", page, re.DOTALL)
    return re.findall(r'class="form-row field-(\w+)"', section)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, "50 % of the rate (the rate rises: 0 of 20 messages failed)"),
        ({"ramp_reason": ""}, "50 % of the rate"),
        ({"state": "open"}, "starts again at 10 % of the rate when the circuit breaker closes"),
        ({"state": "half_open"}, "starts again at 10 % of the rate when the circuit breaker closes"),
        ({"state": "open", "ramp_from": 1.0}, "off"),
    ],
)
def test_ramp_up_of_an_open_breaker_is_that_of_its_next_closing(
    fields: dict[str, object], told: str, ann: Client
) -> None:
    breaker = Breaker.objects.get(target=dlq().target)
    retry = database_now() if fields.get("state") == "open" else None
    values = {"ramp": 0.5, "ramp_reason": "the rate rises: 0 of 20 messages failed", "retry_at": retry, **fields}
    Breaker.objects.update(**values)
    listed = unescape(ann.get("/admin/reprocessing/breaker/").content.decode())
    assert re.findall(r'<td class="field-ramp_up">(.*?)</td>', listed) == [told]
    page = _page(ann, breaker)
    assert f'<div class="readonly">{told}</div>' in page
    assert ("the rate rises" in page) == ("the rate rises" in told)


def test_breaker_page_names_the_time_of_its_opening_and_folds_internals(ann: Client) -> None:
    breaker = Breaker.objects.get(target=dlq().target)
    Breaker.objects.update(state="open", retry_at=database_now(), failing_since=database_now())
    page = _page(ann, breaker)
    assert ("<label>Failing since:</label>" in page, "No success since" in page) == (True, False)
    assert "When the circuit breaker opened. Empty: it is closed, or a canary has succeeded since." in page
    assert _internals(page) == ["epoch", "ramp_at", "ramp_failure_ratio"]
    shown = set(re.findall(r'class="form-row field-(\w+)"', page))
    fields = {field.name for field in Breaker._meta.get_fields() if field.concrete and field.editable}
    assert fields - shown == {"id", "ramp", "ramp_reason"}


def test_key_queue_page_folds_internals_and_shows_a_readable_sequence(ann: Client) -> None:
    lane = parked(dlq(), key="account-7").lane
    assert lane
    Lane.objects.update(highest_sent_sequence=sort_key("14"))
    page = _page(ann, lane)
    assert _internals(page) == ["why", "highest_sent", "single", "fence", "owner", "hinted_until"]
    assert (">14</div>" in page, str(sort_key("14")) in page) == (True, False)
    shown = set(re.findall(r'class="form-row field-(\w+)"', page))
    fields = {field.name for field in Lane._meta.get_fields() if field.concrete and field.editable}
    assert fields - shown == {"id", "highest_sent_sequence"}


def test_whole_seconds_have_no_decimal_point(ann: Client) -> None:
    breaker = Breaker.objects.get(target=dlq().target)
    Breaker.objects.update(cooldown=2.5, cooldown_cap=600)
    page = _page(ann, breaker)
    assert ('<div class="readonly">600</div>' in page, '<div class="readonly">2.5</div>' in page) == (True, True)
    assert "600.0" not in page


def test_dlq_page_shows_the_retention_in_days_too() -> None:
    source = dlq()
    DeadLetterQueue.objects.update(retention=1_209_600)
    eva = person("eva", "view_deadletterqueue")
    page = eva.get(f"/admin/reprocessing/deadletterqueue/{source.dlq_id}/change/").content.decode()
    assert '<div class="readonly">1209600 (14 days)</div>' in page


def test_a_key_queue_without_queued_messages_says_so_or_who_stopped_it(ann: Client) -> None:
    lane = parked(dlq(), key="account-7").lane
    assert lane
    Lane.objects.update(why="an old reason")
    assert re.findall(r"field-waits.*?readonly\">([^<]*)<", _page(ann, lane), re.DOTALL) == ["nothing is queued"]
    Lane.objects.update(stopped_at=database_now(), stopped_by="bob", stop_reason="a test")
    (stopped,) = re.findall(r"field-waits.*?readonly\">([^<]*)<", _page(ann, lane), re.DOTALL)
    assert re.fullmatch(r'stopped by bob at [0-9: -]{19} UTC: "a test"', stopped)
