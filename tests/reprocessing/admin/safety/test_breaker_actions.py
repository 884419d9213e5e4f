from __future__ import annotations

import re

import pytest

from reprocessing.models import AuditEntry, Breaker
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.safety import breaker_resets
from tests.reprocessing.admin.parking_lot.parked_messages import confirm, dlq, person, post, seen_state

pytestmark = pytest.mark.django_db
MOVES = ("view_breaker", "reset_breaker")


@pytest.fixture
def breaker() -> Breaker:
    return Breaker.objects.get(target=dlq().target)


def _address(one: Breaker, action: str) -> str:
    return f"/admin/reprocessing/breaker/{one.pk}/{action}/now"


@pytest.mark.soak
def test_moves_are_recorded_with_user_and_reason(breaker: Breaker) -> None:
    ann = person("ann", *MOVES)
    for action, state in (("open", "open"), ("half-open", "half_open"), ("close", "closed")):
        before = breaker.epoch
        confirm(ann, _address(breaker, action))
        breaker.refresh_from_db()
        assert (breaker.state, breaker.epoch) == (state, before + 1)
    acts = list(AuditEntry.objects.order_by("pk").values_list("act", "by", "target", "after__state"))
    assert acts == [("reset", "ann", breaker.target_id, one) for one in ("open", "half_open", "closed")]


def test_cooldown_can_be_set(breaker: Breaker) -> None:
    ann = person("ann", *MOVES)
    confirm(ann, _address(breaker, "open"), seconds="3600")
    breaker.refresh_from_db()
    assert breaker.retry_at
    assert round((breaker.retry_at - breaker.since).total_seconds()) == 3600


def test_changed_breaker_is_not_moved(breaker: Breaker) -> None:
    ann = person("ann", *MOVES)
    seen = seen_state(ann, _address(breaker, "open"))
    breaker_resets.reset([breaker.target_id], to="open", by="ben", reason="it burns")
    page = post(ann, _address(breaker, "open"), seen=seen, reason="a test")
    assert "Nothing was done." in page
    assert "opened by ben: &quot;it burns&quot;" in page
    assert AuditEntry.objects.count() == 1


def test_pages_name_the_action_and_the_way_back(breaker: Breaker) -> None:
    ann = person("ann", *MOVES)
    Breaker.objects.update(state="half_open", canary_until=database_now())
    page = ann.get(f"/admin/reprocessing/breaker/{breaker.pk}/change/").content.decode()
    assert re.findall(r'class="closelink">(.*?)<', page) == ["Back"]
    assert re.findall(r">(Close[^<]*)<", page) == ["Close…"]
    assert "Canary awaited until" in page
    assert "this time is one hour after its outcome should be known. The max cooldown does not limit this time." in page
    titles = [
        re.findall(r"<h1>(.*?)</h1>", ann.get(_address(breaker, action)).content.decode())[0]
        for action in ("close", "open")
    ]
    name = "the circuit breaker of shop-dlq-source"
    assert titles == [f"Close {name}", f"Open {name}"]


def test_dashboard_calls_a_half_open_breaker_half_open(breaker: Breaker) -> None:
    Breaker.objects.update(state="half_open")
    page = person("ann", "view_deadletterqueue").get("/admin/").content.decode()
    assert "Circuit breaker half open" in page
    assert "circuit breaker of target shop-dlq-source is half open" in page
    assert "Circuit breaker open" not in page
    assert re.findall(r'<td class="n">(\S*) <span class="quiet">(.*?)</span>', page) == [("", "only canaries")]
    Breaker.objects.update(state="open", retry_at=database_now())
    page = person("ben", "view_deadletterqueue").get("/admin/").content.decode()
    assert ("Circuit breaker open" in page, "Circuit breaker half open" in page) == (True, False)
