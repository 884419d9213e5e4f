"""In the admin, an action above the limit is requested; somebody else with the right approves or declines it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from reprocessing.admin.parking_lot.decision import pack_messages
from reprocessing.models import Approval, AuditEntry, BulkAction, DeadLetterQueue, Letter, Rule, Run
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.payloads import content
from reprocessing.store.rights import roles
from reprocessing.store.routing import rule_changes
from tests.reprocessing.admin.parking_lot.parked_messages import DECIDES, person
from tests.reprocessing.payload_rings import NEW, OLD, Rings, rings
from tests.reprocessing.pipeline.approvals.two_people import asked_edit, limited, states

__all__ = ["rings"]

pytestmark = pytest.mark.django_db
LOT = "/admin/reprocessing/parkedletter"
MAY = (*DECIDES, "view_approval")


def somebody(name: str, *permissions: str) -> Client:
    client = person(name, *(permissions or MAY))
    client.handler.enforce_csrf_checks = False
    return client


def discard(client: Client, letters: list[Letter], **more: Any) -> Any:  # noqa: ANN401  a response
    return client.post(f"{LOT}/discard", {"letters": pack_messages(letters), "reason": "obsolete", "query": "", **more})


def decided(client: Client, row: Approval, choice: str = "approve") -> str:
    address = f"/admin/reprocessing/approval/{row.pk}/{choice}"
    answer = client.post(address, {"seen": str(row.pk), "reason": "I looked"}, follow=True)
    assert answer.status_code == 200
    row.refresh_from_db()
    return str(answer.content.decode())


@pytest.mark.soak
def test_the_page_offers_a_request_and_a_post_requests_it() -> None:
    letters, ann = limited(1, letters=3), somebody("ann")
    page = ann.post(f"{LOT}/discard", {"letters": pack_messages(letters), "scope": "ticked"}).content.decode()
    assert 'value="Request approval"' in page
    answer = discard(ann, letters)
    row = Approval.objects.get()
    assert answer.url == f"/admin/reprocessing/approval/{row.pk}/change/"
    assert (row.by, row.reason, row.messages, states(letters)) == ("ann", "obsolete", 3, {"parked"})
    discard(ann, letters)  # the same form again
    assert Approval.objects.count() == 1
    shown = ann.get(answer.url).content.decode()
    assert "Messages of shop-dlq: <strong>3</strong>" in shown
    assert "You made the request: somebody else must approve it" in shown
    assert "somebody else must approve it" in decided(ann, row)
    assert decided(somebody("bob"), row).count("3 messages discarded.") > 0
    assert states(letters) == {"discarded"}
    listed = ann.get("/admin/reprocessing/approval/").content.decode()
    assert "approved and done" in listed
    assert "ann, approved by bob" in ann.get(f"/admin/reprocessing/letter/{letters[0].pk}/change/").content.decode()


@pytest.mark.soak
def test_one_person_cannot_discard_5000_messages_page_by_page_or_by_a_bulk_action() -> None:
    letters, ann = limited(4, letters=6), somebody("ann")
    for letter in letters:
        discard(ann, [letter])
    sent = {"token": str(uuid4()), "reason": "obsolete", "query": "", "opened": database_now().isoformat()}
    ann.post(f"{LOT}/discard", sent)
    assert sorted(Letter.objects.values_list("state", flat=True)) == ["discarded"] * 4 + ["parked"] * 2
    assert not BulkAction.objects.exists()
    assert list(Approval.objects.order_by("messages").values_list("messages", flat=True)) == [1, 1, 2]


def test_a_form_sent_again_after_the_approval_needs_another_one() -> None:
    letters, ann = limited(letters=1), somebody("ann")
    sent = {"letters": pack_messages(letters), "reason": "obsolete", "query": ""}
    ann.post(f"{LOT}/discard", sent)
    decided(somebody("bob"), Approval.objects.get())
    ann.post(f"{LOT}/discard", sent)
    Letter.objects.update(state="parked", reason="stale")
    ann.post(f"{LOT}/discard", sent | {"letters": pack_messages(list(Letter.objects.all()))})
    assert list(Approval.objects.order_by("pk").values_list("state", flat=True)) == ["approved", "open"]
    assert states(letters) == {"parked"}


@pytest.mark.soak
def test_the_approver_needs_the_right_to_do_it() -> None:
    letters = limited()
    discard(somebody("ann"), letters)
    row = Approval.objects.get()
    looks = somebody("cleo", "view_parkedletter", "view_letter", "view_approval")
    for choice in ("approve", "decline", "alone"):
        sent = {"seen": str(row.pk), "reason": "x"}
        assert looks.post(f"/admin/reprocessing/approval/{row.pk}/{choice}", sent).status_code == 403
    assert somebody("bob").post(f"/admin/reprocessing/approval/{row.pk}/alone", {"reason": "x"}).status_code == 403
    assert "done without approval" in decided(somebody("dora", *MAY, "act_alone"), row, "alone")
    assert AuditEntry.objects.get(act="acted_alone").by == "dora"


@pytest.mark.parametrize("name", ["approve", "alone"])
def test_to_approve_an_edit_that_releases_takes_the_permission_to_release(name: str) -> None:
    limited()
    edits = ("view_letter", "view_approval", "edit_parkedletter", "act_alone")
    row = asked_edit(release=True)
    sent = {"seen": str(row.pk), "reason": "x"}
    address = f"/admin/reprocessing/approval/{row.pk}/{name}"
    assert somebody("bob", *edits).post(address, sent).status_code == 403
    row.refresh_from_db()
    assert row.state == "open"
    decided(somebody("cleo", *edits, "release_parkedletter"), row, name)
    assert row.state == {"approve": "approved", "alone": "alone"}[name]


def test_the_requester_withdraws_and_an_expired_request_stays_undone() -> None:
    letters, ann = limited(letters=2), somebody("ann")
    discard(ann, letters[:1])
    row = Approval.objects.get()
    decided(ann, row, "decline")
    assert (row.state, row.decided_by) == ("declined", "ann")
    discard(ann, letters[1:])
    late = Approval.objects.get(state="open")
    Approval.objects.filter(pk=late.pk).update(expires_at=database_now() - timedelta(seconds=1))
    assert "the request expired at" in decided(somebody("bob"), late)
    assert states(letters) == {"parked"}


@pytest.mark.soak
def test_a_team_sees_and_decides_only_requests_about_its_dlqs() -> None:
    ours, theirs = limited(name="ours"), limited(name="theirs")
    root = Client()
    root.force_login(User.objects.create_superuser("root"))
    for letters in (ours, theirs):
        discard(root, letters)
    discard(root, [*ours, *theirs])
    team = Group.objects.create(name="team")
    DeadLetterQueue.objects.get(name="ours").teams.add(team)
    roles.update_groups()
    member = User.objects.create_user("bob", is_staff=True)
    member.groups.set([team, Group.objects.get(name="Redrive operator")])
    bob = Client()
    bob.force_login(member)
    mine, other, both = Approval.objects.order_by("pk")
    listed = bob.get("/admin/reprocessing/approval/").content.decode()
    assert [f"/approval/{row.pk}/change/" in listed for row in (mine, other, both)] == [True, False, False]
    for row in (other, both):
        sent = {"seen": str(row.pk), "reason": "x"}
        assert bob.post(f"/admin/reprocessing/approval/{row.pk}/approve", sent).status_code == 404
    decided(bob, mine)
    assert (states(ours), states(theirs)) == ({"discarded"}, {"parked"})


@pytest.mark.soak
def test_a_rule_and_a_run_are_requested_too() -> None:
    (letter,) = limited()
    rule_changes.save_rule(
        "hold", {"action": "hold", "conditions": [], "enabled": False, "dlq": letter.dlq}, by="ann", reason="x"
    )
    rule = Rule.objects.get()
    ann = somebody("ann", "change_rule", "view_rule", "operate_run", "view_run", "view_approval")
    address = f"/admin/reprocessing/rule/{rule.pk}/enable"
    page = ann.get(address)
    assert "Request approval" in page.content.decode()
    ann.post(address, {"seen": page.context["asked"].seen, "reason": "they migrate"})
    run = Run.objects.create(name="monday", dlq=letter.dlq, selected=1)
    Letter.objects.filter(pk=letter.pk).update(state="captured", reason="", finished_at=None, run=run, key_hash=b"k")
    address = f"/admin/reprocessing/run/{run.pk}/start/now"
    page = ann.get(address)
    assert "Request approval" in page.content.decode()
    ann.post(address, {"seen": page.context["asked"].seen, "reason": "mended"})
    rule.refresh_from_db()
    run.refresh_from_db()
    assert (rule.enabled, run.state) == (False, "planned")
    assert list(Approval.objects.order_by("pk").values_list("title", flat=True)) == [
        "Enable the rule hold", "Start the run monday",
    ]  # fmt: skip
    assert "is running" in decided(somebody("bob", "operate_run", "view_approval"), Approval.objects.latest("pk"))
    run.refresh_from_db()
    assert run.state == "running"
    assert run.reviews.get(act="started").by == "ann, approved by bob"


def test_while_payload_keys_are_missing_the_page_says_so_and_nothing_is_done(rings: Rings) -> None:
    letters, ann = limited(letters=2), somebody("ann")
    rings(OLD)
    content.digests([b"the installation's data key is made"])
    rings(NEW)
    answer = discard(ann, letters)
    assert (answer.status_code, states(letters), Approval.objects.exists()) == (503, {"parked"}, False)
    assert "REDRIVE_PAYLOAD_KEYS has no key old" in answer.content.decode()
