from __future__ import annotations

import base64
import csv
import io
import json
import re
from typing import Any

import pytest
from django.test import Client

from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.message.redrive_attributes import MarkNames
from reprocessing.domain.payloads.sealing import Part
from reprocessing.models import AuditEntry, FailureGroup, Letter, Payload
from reprocessing.pipeline.parking_lot import edit
from reprocessing.pipeline.parking_lot.edit import Alteration, Edited, SeenLetter
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.parking_lot import export
from reprocessing.store.payloads import content
from tests.reprocessing.admin.parking_lot.parked_messages import LOOKS, dlq, failure_group, parked, person, post, token
from tests.reprocessing.payload_rings import NEW, OLD, Rings, rings

__all__ = ["rings"]

pytestmark = pytest.mark.django_db
EXPORT = "/admin/reprocessing/parkedletter/export"
MAY = (*LOOKS, "export_letter")


def exported(client: Client, **values: object) -> tuple[dict[str, str], str]:
    given = {"csrfmiddlewaretoken": token(client, "/admin/password_change/"), "reason": "for the supplier", **values}
    answer = client.post(EXPORT, given)
    assert answer.status_code == 200
    text = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    return dict(answer.headers), text


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_export_has_the_messages_of_the_filter() -> None:
    here, there = dlq("here"), dlq("there")
    meant = [parked(here, key="a"), parked(here)]
    parked(there)
    client = person("ann", *MAY)
    page = post(client, EXPORT, query=f"dlq={here.dlq_id}")
    assert "<strong>2</strong> parked messages of the DLQ here" in page
    headers, text = exported(client, kind="jsonl", query=f"dlq={here.dlq_id}")
    assert [one["message_id"] for one in lines(text)] == [one.message_id for one in meant]
    assert lines(text)[0]["ordering_key"] == "a"
    assert re.fullmatch(r'attachment; filename="letters-\d{8}-\d{6}\.jsonl"', headers["Content-Disposition"])
    assert headers["Cache-Control"].startswith("no-store")


def test_export_is_recorded_with_filter_and_reason() -> None:
    source = dlq()
    parked(source)
    client = person("ann", *MAY)
    assert "This field is required." in post(client, EXPORT, query="", kind="csv", reason=" ")
    assert AuditEntry.objects.count() == 0
    exported(client, kind="csv", query=f"dlq={source.dlq_id}&reason=stale")
    review = AuditEntry.objects.get()
    assert (review.act, review.by, review.reason, review.dlq) == ("exported", "ann", "for the supplier", source.dlq)
    assert review.after == {
        "filter": {"dlq": source.dlq_id, "states": ["parked"], "reasons": ["stale"]}, "as": "csv", "bodies": False,
        "originals": False, "revealed": False,
    }  # fmt: skip


def test_bodies_take_the_permission_to_see_payloads() -> None:
    binary = b"\xff\x00canary"
    parked(dlq(), body=b'{"card": "4111-canary"}', attributes={"n": Attribute("Binary", b"canary-value")})
    parked(dlq("two"), body=binary)
    _, text = exported(person("ann", *MAY), kind="jsonl", bodies="on", query="")
    assert ["canary" in text, "body" in lines(text)[0]] == [False, False]
    client = person("ben", *MAY, "view_payload")
    assert "canary" not in exported(client, kind="csv", query="")[1]
    found = lines(exported(client, kind="jsonl", bodies="on", query="")[1])
    assert [(one["body_encoding"], one["body"]) for one in found] == [
        ("text", '{"card": "4111-canary"}'), ("base64", base64.b64encode(binary).decode()),
    ]  # fmt: skip
    assert found[0]["attributes"] == {"n": {"type": "Binary", "value": base64.b64encode(b"canary-value").decode()}}


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r"])
def test_no_cell_is_a_formula(begin: str) -> None:
    letter = parked(dlq(), body=f"{begin}cmd|' /C calc'!A0".encode())
    Letter.objects.filter(pk=letter.pk).update(ordering_key=f"{begin}1", assigned_to='a "quoted", b')
    _, text = exported(person("ann", *MAY, "view_payload"), kind="csv", bodies="on", query="")
    row = next(csv.DictReader(io.StringIO(text, newline="")))
    assert (row["ordering_key"], row["assigned_to"]) == (f"'{begin}1", 'a "quoted", b')
    assert row["body"] == f"'{begin}cmd|' /C calc'!A0"


def test_export_is_streamed_with_each_message_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "PIECE", 2)
    monkeypatch.setattr(export, "WEIGHT", 15)
    source = dlq()
    letters = [parked(source, body=b"x" * 10) for _ in range(7)]
    ids = [one.message_id for one in letters]
    edited(letters[2], b"made", "new")
    for given in ({}, {"bodies": "on"}, {"bodies": "on", "originals": "on"}):
        _, text = exported(person(f"ann{given}", *MAY, "view_payload"), kind="jsonl", query="", **given)
        assert [one["message_id"] for one in lines(text)] == ids


def test_body_text_of_a_filter_is_not_recorded() -> None:
    parked(dlq(), body=b"4111-canary")
    client = person("ann", *MAY, "view_payload")
    assert len(lines(exported(client, kind="jsonl", query="text=4111-canary")[1])) == 1
    assert AuditEntry.objects.get().after["filter"]["text"] == "(a text in their bodies)"


def edited(letter: Letter, body: bytes, note: str) -> None:
    assert letter.finished_at
    to = Alteration(body, {"note": Attribute("String", note)})
    done = edit.edit_letter(
        letter.pk, SeenLetter(letter.finished_at, 0), to, names=MarkNames(), by="bob", reason="a typo", replay=False
    )
    assert done == Edited(1)


def test_edited_message_is_exported_with_its_original_on_request() -> None:
    source = dlq()
    first = parked(source, body=b"=captured", attributes={"note": Attribute("String", "old")})
    parked(source, body=b"untouched")
    edited(first, b"made", "new")
    client = person("ben", *MAY, "view_payload")
    sent = {"body_encoding": "text", "body": "made", "attributes": {"note": {"type": "String", "value": "new"}}}
    died = {"body_encoding": "text", "body": "=captured", "attributes": {"note": {"type": "String", "value": "old"}}}
    for given, originals in (({}, ()), ({"originals": "on"}, (died, None))):
        text = exported(client, kind="jsonl", bodies="on", query="", **given)[1]
        assert [one["edited"] for one in lines(text)] == [True, False]
        assert lines(text)[0] | sent == lines(text)[0]
        assert tuple(one["original"] for one in lines(text) if "original" in one) == originals
        rows = list(csv.DictReader(io.StringIO(exported(client, kind="csv", bodies="on", query="", **given)[1])))
        assert [(row["edited"], row["body"]) for row in rows] == [("True", "made"), ("False", "untouched")]
        assert [row["original"] and json.loads(row["original"]) for row in rows if "original" in row] == [
            one or "" for one in originals
        ]
    assert [one.after["originals"] for one in AuditEntry.objects.filter(act="exported").order_by("pk")] == [
        False, False, True, True,
    ]  # fmt: skip


def test_originals_need_bodies_and_the_permission() -> None:
    edited(parked(dlq(), body=b"4111-canary"), b"made", "new")
    asked = {"kind": "jsonl", "query": "", "originals": "on", "reason": "because"}
    refused = post(person("ann", *MAY, "view_payload"), EXPORT, **asked)
    assert "Include bodies and attributes as well, or untick this box." in refused
    text = exported(person("ben", *MAY), **asked, bodies="on")[1]
    assert ("canary" in text, "original" in lines(text)[0], "body" in lines(text)[0]) == (False, False, False)


@pytest.mark.parametrize("text", ["captured", "made"])
def test_body_text_is_found_in_captured_and_edited_bodies(text: str) -> None:
    source = dlq()
    letter = parked(source, body=b"captured")
    edited(letter, b"made", "new")
    parked(source, body=b"another")
    client = person("ben", *MAY, "view_payload")
    page = client.get("/admin/reprocessing/parkedletter/", {"text": text}).content.decode()
    assert (letter.message_id in page, page.count('name="pick"')) == (True, 1)
    found = lines(exported(client, kind="jsonl", query=f"text={text}")[1])
    assert [one["message_id"] for one in found] == [letter.message_id]


@pytest.mark.soak
@pytest.mark.parametrize("query", ["dlq=999999", "group=999999", "dlq=9223372036854775807"])
def test_filter_of_a_removed_row_is_explained(query: str) -> None:
    parked(dlq())
    client = person("ann", *MAY, "discard_parkedletter", "view_bulkaction")
    lot = "/admin/reprocessing/parkedletter/"
    refused = post(client, EXPORT, query=query, kind="csv", reason="for the supplier")
    name, _, number = query.partition("=")
    assert f"There is no {name} {number} any more, so there is nothing to export." in refused
    others = [client.get(f"{lot}?{query}").content.decode()]
    others += [post(client, address, query=query, scope="all") for address in (EXPORT, f"{lot}discard")]
    action = {"token": "0b5c2a3e-7d4e-4a57-9b7e-6a2f1f2b8a11", "opened": database_now().isoformat(), "reason": "x"}
    others.append(post(client, f"{lot}discard", query=query, **action))
    assert [len(others), AuditEntry.objects.filter(act="exported").count()] == [4, 0]


@pytest.mark.soak
@pytest.mark.django_db(transaction=True)
def test_group_removed_during_export_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    source = dlq()
    group = failure_group(source)
    bound = export.current_bound

    def too_late() -> export.ExportBound:
        FailureGroup.objects.all().delete()
        return bound()

    monkeypatch.setattr(export, "current_bound", too_late)
    said = post(person("ann", *MAY), EXPORT, query=f"group={group.pk}", kind="csv", reason="for the supplier")
    assert "The DLQ or failure group of this filter was removed. Choose another one." in said
    assert not AuditEntry.objects.exists()


def test_a_message_that_cannot_be_decrypted_does_not_cut_the_file_off(rings: Rings) -> None:
    source = dlq()
    rings(OLD)
    sealer = content.sealer_of(source.dlq_id, database_now().date())
    sealed = parked(source)
    body = sealer.bytes(b"canary", Part.BODY, of=sealed.message_id)
    Payload.objects.filter(letter=sealed).delete()
    Payload.objects.create(letter=sealed, body=body, attributes=b"{}", system={})
    parked(source, body=b"readable")
    rings(NEW)
    client = person("ann", *MAY, "view_payload")
    found = lines(exported(client, kind="jsonl", bodies="on", originals="on", query=f"dlq={source.dlq_id}")[1])
    assert [(one["body_encoding"], one["body"][:36]) for one in found] == [
        ("unreadable", "REDRIVE_PAYLOAD_KEYS has no key old,"), ("text", "readable"),
    ]  # fmt: skip
    assert len(set(map(tuple, found))) == 1
