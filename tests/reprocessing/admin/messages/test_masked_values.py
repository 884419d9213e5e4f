"""A person who may see payloads, but not reveal masked values, finds them nowhere."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from reprocessing.domain.message.envelope import Attribute, pack_attributes
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.domain.replay.attempt_detail import QUOTES
from reprocessing.models import (
    Attempt,
    AuditEntry,
    BulkAction,
    BulkActionKind,
    DeadLetterQueue,
    Letter,
    Report,
    Revision,
)
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.parking_lot import bulk_actions
from reprocessing.store.payloads import viewed_content
from tests.reprocessing.admin.editing.test_edit import EDITS, address, filled
from tests.reprocessing.admin.parking_lot.parked_messages import LOOKS, dlq, parked, person, post, revealed, token
from tests.reprocessing.admin.site.preview_steps import sheet

pytestmark = pytest.mark.django_db

CANARY = "4111-canary"
LOT = "/admin/reprocessing/parkedletter/"
SEES = (*LOOKS, "view_payload")
REVEALS = (*SEES, "reveal_payload")


@pytest.fixture
def letter() -> Letter:
    source = dlq()
    DeadLetterQueue.objects.update(masked_fields=["card"], public_fields=["card", "total"])
    body = json.dumps({"card": CANARY, "total": 17}).encode()
    found = parked(source, body=body, attributes={"card": Attribute("String", CANARY)})
    packed = pack_attributes({"card": Attribute("String", CANARY)})
    edit = {"no": 1, "body": body, "attributes": packed, "body_hash": b"1", "previous_body_hash": b"2", "size": 1}
    found.revision = Revision.objects.create(letter=found, **edit, by="ann", reason="why")
    found.save(update_fields=["revision"])
    Report.objects.create(
        message_id=found.message_id, verdict="failed", type="CardError", message=f"no card {CANARY}",
        happened_at=database_now(), received_at=database_now(), digest=b"d",
    )  # fmt: skip
    return found


def _pages(client: Client, letter: Letter) -> dict[str, str]:
    """Return all pages and files on which content of a message can be."""
    at = f"/admin/reprocessing/letter/{letter.pk}"
    given = {"csrfmiddlewaretoken": token(client, "/admin/password_change/")}
    bodies = {of: client.post(f"{at}/body", {**given, "of": of}).content.decode() for of in ("sent", "captured")}
    return bodies | {
        "message": client.get(f"{at}/change/").content.decode(), "payload": revealed(client, letter),
        "comparison": post(client, f"{at}/compare", no="1"), "edit": post(client, address(letter), open="1"),
        "search": client.get(f"{LOT}?text={CANARY[:4]}").content.decode(),
    }  # fmt: skip


@pytest.mark.soak
def test_masked_values_are_on_no_page_and_in_no_file(letter: Letter) -> None:
    client = person("ann", *EDITS)
    pages = _pages(client, letter)
    assert {name for name, page in pages.items() if CANARY in page} == set()
    assert "It needs the permission to reveal masked values." in pages["search"]
    assert "Editing shows them, so it needs the permission" in pages["edit"]
    assert json.loads(pages["sent"]) == {"card": "[masked]", "total": 17}


def test_the_page_of_a_consumer_s_report_has_no_masked_value(letter: Letter) -> None:
    client, at = person("ann", *SEES, "view_report"), f"/admin/reprocessing/report/{Report.objects.get().pk}/change/"
    assert CANARY not in client.get(at).content.decode()
    DeadLetterQueue.objects.update(masked_fields=[])
    assert CANARY in client.get(at).content.decode()


def test_the_page_of_an_attempt_has_no_text_that_may_quote_the_payload(letter: Letter) -> None:
    first = letter.history.get()
    attempt = Attempt.objects.create(
        letter=letter, lane=first.lane, target=first.target, no=2, epoch=1, fence=1, opened_at=database_now(),
        closed_at=database_now(), outcome="refused", holds_lane=False, detail=f"InvalidContent{QUOTES}{CANARY}",
    )  # fmt: skip
    page = person("ann", *REVEALS, "view_attempt").get(f"/admin/reprocessing/attempt/{attempt.pk}/change/")
    assert (CANARY in page.content.decode(), "InvalidContent: its text may" in page.content.decode()) == (False, True)


def test_a_text_that_was_searched_for_is_shown_to_those_who_may_search_for_it(letter: Letter) -> None:
    """The person who started the bulk action may reveal masked values; the text may be one."""
    criteria = MessageFilter(dlq=letter.dlq_id, text=CANARY)
    bulk_actions.create(uuid4(), BulkActionKind.NOTE, criteria, {}, by="ben", reason="a test")
    at = f"/admin/reprocessing/bulkaction/{BulkAction.objects.get().pk}/change/"
    ann, ben = person("ann", *SEES, "view_bulkaction"), person("ben", *REVEALS, "view_bulkaction")
    assert [CANARY in one.get(at).content.decode() for one in (ann, ben)] == [False, True]
    DeadLetterQueue.objects.update(masked_fields=[])
    assert CANARY in ann.get(at).content.decode()


@pytest.mark.soak
def test_a_reason_reveals_them_and_is_recorded(letter: Letter) -> None:
    client = person("ben", *REVEALS)
    at = f"/admin/reprocessing/letter/{letter.pk}/reveal"
    assert CANARY not in post(client, at)
    assert CANARY not in post(client, at, reveal_reason="  ")
    page = post(client, at, reveal_reason="ticket 17")
    assert (page.count(CANARY) > 1, "no card 4111-canary" in page) == (True, True)
    last = AuditEntry.objects.latest("pk")
    assert (last.act, last.by, last.reason, last.after) == (
        "revealed", "ben", "ticket 17", {"revision": 1, "revealed": True},
    )  # fmt: skip


def test_a_reason_without_the_right_reveals_nothing(letter: Letter) -> None:
    page = post(person("ann", *SEES), f"/admin/reprocessing/letter/{letter.pk}/reveal", reveal_reason="ticket 17")
    assert (CANARY in page, AuditEntry.objects.get().reason) == (False, "Showed the payload.")


def test_a_file_has_the_values_only_with_a_reason(letter: Letter) -> None:
    client = person("ben", *REVEALS)
    given = {"csrfmiddlewaretoken": token(client, "/admin/password_change/")}
    at = f"/admin/reprocessing/letter/{letter.pk}/body"
    found = [client.post(at, {**given, **more}).content for more in ({}, {"reveal_reason": "ticket 17"})]
    assert [CANARY.encode() in body for body in found] == [False, True]


@pytest.mark.soak
def test_editing_asks_for_the_reason_first(letter: Letter) -> None:
    client = person("ben", *EDITS, "reveal_payload")
    assert CANARY not in post(client, address(letter), open="1")
    page = post(client, address(letter), open="1", reveal_reason="ticket 17")
    assert CANARY in page
    assert AuditEntry.objects.get().reason == "ticket 17"
    look = post(person("ann", *EDITS), address(letter), **filled(page))
    assert CANARY not in look


def _exported(client: Client, **values: object) -> str:
    given = {"csrfmiddlewaretoken": token(client, "/admin/password_change/"), "reason": "for the supplier", **values}
    answer: Any = client.post(f"{LOT}export", {"query": "", "bodies": "on", "originals": "on", **given})
    return b"".join(answer.streaming_content).decode()


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_an_export_is_masked_unless_it_is_asked_to_reveal_by_somebody_who_may(letter: Letter, kind: str) -> None:
    ann, ben = person("ann", *SEES, "export_letter"), person("ben", *REVEALS, "export_letter")
    found = [
        _exported(ann, kind=kind, revealed="on"), _exported(ben, kind=kind), _exported(ben, kind=kind, revealed="on"),
    ]  # fmt: skip
    assert [CANARY in text for text in found] == [False, False, True]
    recorded = AuditEntry.objects.order_by("pk").values_list("after__revealed", flat=True)
    assert list(recorded) == [False, False, True]


def test_a_rule_from_the_message_has_no_masked_value(letter: Letter) -> None:
    client = person("ann", *SEES, "add_rule")
    page = post(
        client, f"/admin/reprocessing/rule/add/?letter={letter.pk}", do="fill", values="on", add="attribute:card",
        conditions="[]",
    )  # fmt: skip
    assert (CANARY in page, "attribute:card exists" in page) == (False, True)


def test_fields_of_the_settings_are_masked_in_every_dlq(letter: Letter, settings: Any) -> None:  # noqa: ANN401
    DeadLetterQueue.objects.update(masked_fields=[])
    settings.REDRIVE = {**settings.REDRIVE, "MASKED_FIELDS": ("card",)}
    assert CANARY not in revealed(person("ann", *SEES), letter)
    assert viewed_content.masks_fields(None)


@pytest.mark.parametrize("text", ["a.b(", "length(card)"])
def test_the_form_of_a_dlq_refuses_useless_rules(letter: Letter, text: str) -> None:
    client = person("eva", "view_deadletterqueue", "change_deadletterqueue", "reveal_payload", "view_payload")
    at = f"/admin/reprocessing/deadletterqueue/{letter.dlq_id}/examine"
    page = post(client, at, **sheet(client, at) | {"masked_fields": text})
    assert "Line 1: " in page


def test_nobody_without_the_right_unmasks_fields_in_the_settings_of_a_dlq(letter: Letter) -> None:
    client = person("eva", "view_deadletterqueue", "change_deadletterqueue")
    at = f"/admin/reprocessing/deadletterqueue/{letter.dlq_id}/examine"
    page = post(client, at, **sheet(client, at) | {"masked_fields": "", "ordering_key": "body:card"})
    assert page.count("it needs the permission to reveal them") == 2
