from __future__ import annotations

import re

import pytest

from reprocessing.models import AuditEntry, DeadLetterQueue, GlobalStop, Lane
from reprocessing.store.maintenance import restore_hold
from reprocessing.store.ordering import lanes
from reprocessing.store.safety import stops
from tests.reprocessing.admin.parking_lot.parked_messages import LOOKS, confirm, dlq, parked, person, post, seen_state

pytestmark = pytest.mark.django_db
STOPS = ("view_deadletterqueue", "view_lane", "stop_deadletterqueue", "stop_lane", "stop_sends")
KINDS = ("deadletterqueue", "lane", "everything")


@pytest.fixture(params=KINDS)
def there(request: pytest.FixtureRequest) -> str:
    letter = parked(dlq(), key="<i>ann</i>")
    row = letter.dlq_id if request.param == KINDS[0] else letter.lane_id
    return "/admin" if request.param == "everything" else f"/admin/reprocessing/{request.param}/{row}"


def _stopped() -> list[str]:
    found = [*DeadLetterQueue.objects.values_list("stopped_by"), *Lane.objects.values_list("stopped_by")]
    found += GlobalStop.objects.values_list("by")
    return [one for (one,) in found if one]


@pytest.mark.soak
def test_stop_and_resume_are_recorded_with_user_and_reason(there: str) -> None:
    ann = person("ann", *STOPS)
    assert "is stopped: nothing is sent" in confirm(ann, f"{there}/stop", reason="it burns")
    assert _stopped() == ["ann"]
    page = ann.get(f"{there}/" if there == "/admin" else f"{there}/change/").content.decode()
    assert re.search(r"<strong>(Everything is stopped|Stopped)</strong>", page)
    assert "<i>ann" not in page
    assert "The stop by ann (&quot;it burns&quot;) has ended." in confirm(ann, f"{there}/resume", reason="it is over")
    assert _stopped() == []
    told = list(AuditEntry.objects.order_by("pk").values_list("act", "by", "reason"))
    assert told == [("stopped", "ann", "it burns"), ("resumed", "ann", "it is over")]


def test_second_stop_names_the_first(there: str) -> None:
    ann, ben = person("ann", *STOPS), person("ben", *STOPS)
    seen = seen_state(ben, f"{there}/stop")
    confirm(ann, f"{there}/stop", reason="first")
    page = post(ben, f"{there}/stop", seen=seen, reason="second")
    assert "Nothing was done." in page
    assert "ann stopped it before you (&quot;first&quot;). That stop stays." in page
    assert _stopped() == ["ann"]


@pytest.mark.soak
def test_only_the_stop_that_was_seen_is_ended(there: str) -> None:
    ann, ben = person("ann", *STOPS), person("ben", *STOPS)
    confirm(ann, f"{there}/stop", reason="first")
    seen = seen_state(ann, f"{there}/resume")
    confirm(ben, f"{there}/resume", reason="it is over")
    assert "Somebody else resumed it before you." in post(ann, f"{there}/resume", seen=seen, reason="x")
    confirm(ben, f"{there}/stop", reason="another incident")
    page = post(ann, f"{there}/resume", seen=seen, reason="x")
    assert "ben stopped it again after you opened this page (&quot;another incident&quot;)." in page
    for nonsense in ("yesterday", "2026-01-01T00:00:00", "none"):
        assert "Nothing was done." in post(ann, f"{there}/resume", seen=nonsense, reason="x")
    assert _stopped() == ["ben"]


def test_audit_entry_of_a_key_queue_has_no_ordering_key() -> None:
    letter = parked(dlq(), key="customer-7")
    assert letter.lane_id
    stops.stop_lane(letter.lane_id, by="ann", reason="it burns")
    review = AuditEntry.objects.get()
    assert (review.letter, review.dlq_id, review.before) == (
        None, letter.dlq_id, {"stopped": False, "lane": letter.lane_id},
    )  # fmt: skip
    assert review.after["lane"] == letter.lane_id
    assert "customer-7" not in str(review.after)


def test_banner_is_on_every_page() -> None:
    ann, ben = person("ann", *STOPS, *LOOKS), person("ben", *LOOKS)
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
