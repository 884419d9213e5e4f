from __future__ import annotations

import pytest
from pytest_django import Settings

from reprocessing.models import AuditEntry, NotificationRoute
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, person, post
from tests.reprocessing.admin.site.preview_steps import saved, sheet

pytestmark = pytest.mark.django_db
ADD = "/admin/reprocessing/notificationroute/add/"
CONFIGURES = tuple(f"{act}_notificationroute" for act in ("view", "add", "change", "delete"))


@pytest.fixture(autouse=True)
def destinations(settings: Settings) -> None:
    settings.REDRIVE = {"DESTINATIONS": {"ops": "mailto://user:hunter2@example.com"}}


def test_preview_is_saved_with_user_and_reason() -> None:
    ann, watched = person("ann", *CONFIGURES), dlq().dlq
    page = saved(ann, ADD, destination="ops", events=["beat_silent"], dlqs=[watched.name])
    assert "Saved. Test it: manage.py test_notification ops" in page
    assert "hunter2" not in page
    row = NotificationRoute.objects.get()
    assert (row.destination, row.kinds, [one.name for one in row.dlqs.all()]) == (
        "ops",
        ["beat_silent"],
        [watched.name],
    )
    assert list(AuditEntry.objects.values_list("act", "by", "reason")) == [("added", "ann", "a test")]


@pytest.mark.soak
def test_destination_is_changed_and_removed() -> None:
    ann = person("ann", *CONFIGURES)
    saved(ann, ADD, destination="ops")
    row = NotificationRoute.objects.get()
    edit = f"/admin/reprocessing/notificationroute/{row.pk}/edit"
    saved(ann, edit, events=["run_stopped"])
    row.refresh_from_db()
    assert row.kinds == ["run_stopped"]
    page = post(
        ann, f"/admin/reprocessing/notificationroute/{row.pk}/remove", seen="ops", reason="nobody reads it"
    )  # fmt: skip
    assert "ops was removed: no more notifications are sent to it." in page
    assert not NotificationRoute.objects.exists()
    assert AuditEntry.objects.latest("pk").reason == "nobody reads it"


def test_destination_without_url_gives_a_warning() -> None:
    ann = person("ann", *CONFIGURES)
    page = post(ann, ADD, **sheet(ann, ADD) | {"destination": "team-a", "do": "look"})
    assert "This process has no URL for team-a" in page
