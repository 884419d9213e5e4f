from __future__ import annotations

import pytest
from django.conf import settings
from django.test import Client, override_settings

from reprocessing.models import AuditEntry, Run
from tests.reprocessing.admin.parking_lot.parked_messages import LOOKS, dlq, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> Client:
    return person("ann", *LOOKS, "view_deadletterqueue", "view_run", "stop_sends")


def test_checklist_is_shown_in_the_demo_only_and_marks_what_this_person_has_done(ann: Client) -> None:
    shop = dlq("shop")
    run = Run.objects.create(name="r", dlq=shop.dlq, state="finished")
    AuditEntry.objects.create(act="stopped", by="ann", reason="a test")
    AuditEntry.objects.create(act="revealed", by="ben", reason="a test", dlq=shop.dlq)
    assert "Try the demo" not in ann.get("/admin/").content.decode()
    with override_settings(REDRIVE={**settings.REDRIVE, "FIRST_STEPS": True}):
        board = ann.get("/admin/")
        part = ann.get("/admin/board", headers={"HX-Request": "true"}).content.decode()
    steps, page = board.context["steps"], board.content.decode()
    assert page.index("Stop everything…") < page.index("Try the demo")
    assert [step.is_done for step in steps] == [False, False, False, True]
    assert steps[0].address == f"/admin/reprocessing/run/{run.pk}/change/"
    assert "Try the demo" not in part


@pytest.mark.parametrize(
    ("acts", "is_done"),
    [((), False), (("released", "discarded"), False), (("edited",), False), (("edited", "released"), True)],
    ids=["nothing", "released unedited", "not released", "edited and released"],
)
def test_step_of_parked_messages_is_done_after_an_edited_message_was_released(
    ann: Client, acts: tuple[str, ...], is_done: bool
) -> None:
    shop = dlq("shop")
    for act in acts:
        AuditEntry.objects.create(act=act, by="ann", reason="a test", dlq=shop.dlq)
    with override_settings(REDRIVE={**settings.REDRIVE, "FIRST_STEPS": True}):
        step = ann.get("/admin/").context["steps"][2]
    assert (step.address, step.is_done) == ("/admin/reprocessing/parkedletter/", is_done)
    assert step.text.startswith("edit a parked message and release it; discard the others.")
