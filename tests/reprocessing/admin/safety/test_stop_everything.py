"""The stop of everything: banner, permission, reason."""

from __future__ import annotations

import pytest

from reprocessing.models import AuditEntry, GlobalStop
from reprocessing.store.maintenance import restore_hold
from reprocessing.store.ordering import lanes
from reprocessing.store.safety import stops
from tests.reprocessing.admin.parking_lot.parked_messages import LOOKS, person, post, seen_state

pytestmark = pytest.mark.django_db

STOPS = (*LOOKS, "view_deadletterqueue", "stop_sends")


def test_stop_takes_a_reason_and_is_recorded() -> None:
    ann = person("ann", *STOPS)
    assert "This field is required" in post(ann, "/admin/stop", seen="none", reason=" ")
    assert not GlobalStop.objects.exists()
    page = post(ann, "/admin/stop", seen="none", reason="the database is ill")
    assert "Everything is stopped" in page
    assert (GlobalStop.objects.get().by, GlobalStop.objects.get().reason) == ("ann", "the database is ill")
    assert list(AuditEntry.objects.values_list("act", "by", "reason")) == [("stopped", "ann", "the database is ill")]


def test_banner_is_on_every_page() -> None:
    ann, ben = person("ann", *STOPS), person("ben", *LOOKS)
    stops.stop(None, by="cron", reason="a <b>test</b>")
    for client, address in ((ann, "/admin/"), (ann, "/admin/reprocessing/letter/"), (ben, "/admin/")):
        page = client.get(address).content.decode()
        assert "Everything is stopped" in page
        assert "a &lt;b&gt;test&lt;/b&gt;" in page
    assert "Resume…" in ann.get("/admin/").content.decode()
    assert "Resume…" not in ben.get("/admin/").content.decode()


def test_without_permission_the_button_is_closed() -> None:
    ben = person("ben", *LOOKS, "view_deadletterqueue")
    page = ben.get("/admin/").content.decode()
    assert 'You may not stop everything: <a href="/admin/rights">your permissions</a>' in page
    assert 'href="/admin/stop"' not in page
    assert [ben.get(address).status_code for address in ("/admin/stop", "/admin/resume")] == [403, 403]


def test_hold_after_a_restore_is_not_resumed_here() -> None:
    ann = person("ann", *STOPS)
    restore_hold.begin_hold(lanes.database_now(), by="cron", reason="the disk burnt")
    page = post(ann, "/admin/resume", reason="it is over", seen=seen_state(ann, "/admin/resume"))
    assert "<strong>Nothing was done.</strong> Everything is held since" in page
    assert "manage.py after_restore report" in page
    assert GlobalStop.objects.get().by == "cron"
