"""The stop of everything: with a reason, by who may, seen on every page, and lifted only as it was seen."""

from __future__ import annotations

import pytest
from django.test import Client

from reprocessing.models import Halt, Review
from reprocessing.store.maintenance import restore_hold
from reprocessing.store.ordering import lanes
from reprocessing.store.safety import stops
from tests.reprocessing.admin.parking_lot.lot import LOOKS, person, post

pytestmark = pytest.mark.django_db

STOPS = (*LOOKS, "view_deadletterqueue", "stop_sends")


def _seen(client: Client) -> str:
    """What the page of the stop's end carries."""
    return str(client.get("/admin/resume").context["form"]["seen"].value())


def test_it_takes_a_reason_and_is_recorded_with_who() -> None:
    ann = person("ann", *STOPS)
    assert "This field is required" in post(ann, "/admin/stop", seen="none", reason=" ")
    assert not Halt.objects.exists()
    page = post(ann, "/admin/stop", seen="none", reason="the database is ill")
    assert "Everything is stopped" in page
    assert (Halt.objects.get().by, Halt.objects.get().reason) == ("ann", "the database is ill")
    assert list(Review.objects.values_list("act", "by", "reason")) == [("stopped", "ann", "the database is ill")]


def test_every_page_says_that_everything_is_stopped() -> None:
    ann, ben = person("ann", *STOPS), person("ben", *LOOKS)
    stops.stop(None, by="cron", reason="a <b>test</b>")
    for client, address in ((ann, "/admin/"), (ann, "/admin/reprocessing/deadletter/"), (ben, "/admin/")):
        page = client.get(address).content.decode()
        assert "Everything is stopped" in page
        assert "a &lt;b&gt;test&lt;/b&gt;" in page
    assert "Let it go on" in ann.get("/admin/").content.decode()
    assert "Let it go on" not in ben.get("/admin/").content.decode()


def test_who_may_not_stop_sees_why_and_cannot() -> None:
    ben = person("ben", *LOOKS, "view_deadletterqueue")
    page = ben.get("/admin/").content.decode()
    assert 'You may not stop sends: <a href="/admin/rights">your rights</a>' in page
    assert 'href="/admin/stop"' not in page
    assert [ben.get(address).status_code for address in ("/admin/stop", "/admin/resume")] == [403, 403]


def test_of_two_who_stop_the_second_is_told_of_the_first() -> None:
    ann, ben = person("ann", *STOPS), person("ben", *STOPS)
    post(ann, "/admin/stop", seen="none", reason="first")
    page = post(ben, "/admin/stop", seen="none", reason="second")
    assert "<strong>Nothing was done.</strong> ann has stopped it already (&quot;first&quot;). That stop holds." in page
    assert "It is stopped since" in page
    assert Review.objects.count() == 1


def test_it_goes_on_with_a_reason() -> None:
    ann = person("ann", *STOPS)
    post(ann, "/admin/stop", seen="none", reason="an incident")
    page = post(ann, "/admin/resume", reason="it is over", seen=_seen(ann))
    assert "Everything goes on: the stop by ann (&quot;an incident&quot;) is lifted." in page
    assert not Halt.objects.exists()


def test_a_stop_that_was_not_seen_is_not_lifted() -> None:
    ann = person("ann", *STOPS)
    post(ann, "/admin/stop", seen="none", reason="first")
    seen = _seen(ann)
    stops.resume(None, by="ben", reason="it is over")
    page = post(ann, "/admin/resume", reason="it is over", seen=seen)
    assert "<strong>Nothing was done.</strong> Somebody else has let it go on." in page
    stops.stop(None, by="ben", reason="another incident")
    page = post(ann, "/admin/resume", reason="it is over", seen=seen)
    assert "Since you looked, ben stopped it anew (&quot;another incident&quot;)." in page
    assert Halt.objects.get().by == "ben"


def test_a_page_that_is_not_ours_lifts_nothing() -> None:
    ann = person("ann", *STOPS)
    post(ann, "/admin/stop", seen="none", reason="first")
    for seen in ("", "yesterday", "2026-01-01T00:00:00"):
        post(ann, "/admin/resume", reason="x", seen=seen)
    assert Halt.objects.exists()


def test_who_may_not_is_told_so_on_a_page_that_leads_on() -> None:
    answer = person("ben", *LOOKS).get("/admin/stop")
    assert answer.status_code == 403
    page = answer.content.decode()
    assert "You may not do this" in page
    assert 'href="/admin/rights"' in page


def test_what_is_held_after_a_restore_goes_on_by_no_button() -> None:
    ann = person("ann", *STOPS)
    restore_hold.begin(lanes.clock(), by="cron", reason="the disk burnt")
    page = post(ann, "/admin/resume", reason="it is over", seen=_seen(ann))
    assert "<strong>Nothing was done.</strong> Everything is held since" in page
    assert "manage.py after_restore report" in page
    assert Halt.objects.get().by == "cron"
