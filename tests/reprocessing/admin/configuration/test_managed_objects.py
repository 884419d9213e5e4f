"""What a configuration file manages is changed in the file, or after somebody unlocked it with a reason."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from reprocessing.domain.configuration.keys import Kind
from reprocessing.models import AuditEntry, DeadLetterQueue, ManagedObject, NotificationRoute, Rule
from reprocessing.store.configuration import managed, state
from reprocessing.store.routing import rule_changes
from tests.reprocessing.admin.parking_lot.parked_messages import confirm, dlq, person, post

pytestmark = pytest.mark.django_db
ADMIN = "/admin/reprocessing"


@pytest.fixture
def ann() -> Client:
    kinds = ("deadletterqueue", "target", "rule", "notificationroute")
    may = [f"{act}_{kind}" for kind in kinds for act in ("view", "change")]
    return person("ann", *may, "delete_rule", "delete_notificationroute", "view_managedobject", "unlock_managedobject")


@pytest.fixture
def pages() -> dict[str, str]:
    """A managed object of each kind that the admin can change: the page that changes it, by its own page."""
    source = dlq("shop")
    rule_changes.save_rule("hold", {"action": "hold", "conditions": []}, by="ann", reason="a test")
    route = NotificationRoute.objects.create(destination="ops")
    now = state.read_state()
    managed.write_marks({kind: now[kind] for kind in Kind}, by="mia", source="4f1c2ab")
    rule = f"{ADMIN}/rule/{Rule.objects.get().pk}"
    return {
        f"{ADMIN}/deadletterqueue/{source.dlq_id}/examine": f"{ADMIN}/deadletterqueue/{source.dlq_id}/change/",
        f"{ADMIN}/target/{source.target_id}/edit": f"{ADMIN}/target/{source.target_id}/change/",
        **{f"{rule}/{page}": f"{rule}/change/" for page in ("edit", "enable", "disable", "remove")},
        f"{ADMIN}/notificationroute/{route.pk}/edit": f"{ADMIN}/notificationroute/{route.pk}/change/",
        f"{ADMIN}/notificationroute/{route.pk}/remove": f"{ADMIN}/notificationroute/{route.pk}/change/",
    }


@pytest.mark.soak
def test_the_pages_that_change_a_managed_object_lead_to_its_page_which_tells_who_manages_it(
    ann: Client, pages: dict[str, str]
) -> None:
    for page, there in pages.items():
        answer = ann.get(page, follow=True)
        assert answer.redirect_chain == [(there, 302)]
        shown = answer.content.decode()
        assert "Nothing was changed: the configuration file manages this object. Unlock it first." in shown
        assert "Managed by the configuration file</strong>, applied by mia on" in shown
        assert "from 4f1c2ab. Change it in the file." in shown
        assert page not in shown
        assert "Unlock…" in shown
        post(ann, page, do="write", reason="a test")
    assert not AuditEntry.objects.exclude(by="ann", act="added").exists()


def test_a_locked_object_of_another_team_is_not_found_like_one_that_does_not_exist(
    ann: Client, pages: dict[str, str]
) -> None:
    User.objects.get(username="ann").user_permissions.remove(Permission.objects.get(codename="view_all_dlqs"))
    page = next(iter(pages))
    missing = page.replace(str(DeadLetterQueue.objects.get().pk), "999999")
    assert [ann.get(address).status_code for address in (page, missing)] == [404, 404]


@pytest.mark.soak
def test_an_object_that_was_unlocked_with_a_reason_can_be_changed_until_it_is_locked_again(
    ann: Client, pages: dict[str, str]
) -> None:
    mark = ManagedObject.objects.get(kind=Kind.DLQ)
    said = confirm(ann, f"{ADMIN}/managedobject/{mark.pk}/unlock", reason="INC-7")
    assert "DLQ shop is unlocked." in said
    entry = AuditEntry.objects.latest("pk")
    assert (entry.act, entry.by, entry.reason, entry.dlq) == ("unlocked", "ann", "INC-7", DeadLetterQueue.objects.get())
    page, there = next(iter(pages.items()))
    assert ann.get(page).status_code == 200
    assert "Unlocked by ann: INC-7. The next apply overwrites changes." in ann.get(there).content.decode()
    assert "ann has already unlocked it." in ann.get(f"{ADMIN}/managedobject/{mark.pk}/unlock").content.decode()
    managed.write_marks({Kind.DLQ: state.read_state()[Kind.DLQ]}, by="mia", source="")
    assert ann.get(page).status_code == 302


@pytest.mark.soak
def test_an_object_that_no_file_manages_has_no_badge(ann: Client, pages: dict[str, str]) -> None:
    ManagedObject.objects.filter(kind=Kind.DLQ).delete()
    page, there = next(iter(pages.items()))
    assert ann.get(page).status_code == 200
    assert "Managed by" not in ann.get(there).content.decode()
    lists = [ann.get(f"{ADMIN}/{kind}/").content.decode() for kind in ("deadletterqueue", "rule")]
    assert ["icon-yes" in found for found in lists] == [False, True]
