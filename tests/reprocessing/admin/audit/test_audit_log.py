from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, cast

import pytest
from django.http import StreamingHttpResponse
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from reprocessing.admin.audit.audit_log import json_line
from reprocessing.models import AuditAct, AuditEntry, BulkAction, Run
from reprocessing.store.maintenance import audit_log
from reprocessing.store.maintenance.audit_log import LogEntry
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.safety import stops
from tests.reprocessing.admin.parking_lot.parked_messages import LOOKS, dlq, parked, person, token

pytestmark = pytest.mark.django_db

SEES = (*LOOKS, "view_auditentry", "view_deadletterqueue", "view_run")
EXPORTS = (*SEES, "export_letter")
THERE = "/admin/reprocessing/auditentry/export"


def _export(client: Client, **asked: object) -> list[dict[str, Any]]:
    answer = client.post(THERE, {"csrfmiddlewaretoken": token(client, "/admin/password_change/")} | asked)
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/x-ndjson")
    body = b"".join(cast("Iterable[bytes]", cast("StreamingHttpResponse", answer).streaming_content))
    return [json.loads(one) for one in body.splitlines()]


def test_export_has_user_time_reason_and_values() -> None:
    ann, letter = person("ann", *EXPORTS), parked(dlq("shop"))
    stops.stop(None, by="bob", reason='he said "stop"\n=1+1')
    AuditEntry.objects.create(
        act=AuditAct.RELEASED, letter=letter, dlq=letter.dlq, by="cid", reason="mended", before={"state": "parked"},
        after={"state": "waiting"},
    )  # fmt: skip
    first, second = _export(ann)[:2]
    assert (first["event"]["action"], first["event"]["reason"]) == ("stopped", 'he said "stop"\n=1+1')
    assert second["user"] == {"name": "cid"}
    assert second["redrive"] == {
        "id": second["redrive"]["id"], "dlq": "shop", "letter": str(letter.public_id),
        "message_id": letter.message_id, "before": {"state": "parked"}, "after": {"state": "waiting"},
    }  # fmt: skip


def test_export_line_is_ascii_without_line_breaks() -> None:
    said = "one\u2028two\x85three\nfour\x9b31m\u202egnp.exe"
    entry = LogEntry(
        1, database_now(), "noted", "ann\u2029", said, None, None, None, None, None, None, None, None, {}, {}
    )
    told = json_line(entry)
    assert (told.decode().splitlines(), told.isascii()) == ([told.decode().rstrip("\n")], True)
    assert json.loads(told)["event"]["reason"] == said


def test_export_is_recorded_with_its_filter() -> None:
    ann = person("ann", *EXPORTS)
    assert [one["event"]["action"] for one in _export(ann, by="ann")] == ["exported"]
    review = AuditEntry.objects.get()
    assert (review.act, review.by, review.after) == (AuditAct.EXPORTED, "ann", {"what": "audit", "by": "ann"})


def test_export_is_filtered_by_time_bulk_action_and_user() -> None:
    ann, now = person("ann", *EXPORTS), database_now()
    operation = BulkAction.objects.create(act="release", filter={}, by="bob", reason="why", max_letter_id=1, asked=1)
    for hours, by, part in ((3, "bob", None), (2, "bob", operation), (1, "cid", operation)):
        AuditEntry.objects.create(
            act=AuditAct.NOTED, by=by, reason=f"{hours}", at=now - timedelta(hours=hours), operation=part
        )

    def told(**asked: object) -> list[str]:
        return [one["event"]["reason"] for one in _export(ann, **asked) if one["event"]["action"] == "noted"]

    assert told() == ["3", "2", "1"]
    assert told(by="bob") == ["3", "2"]
    assert told(operation=operation.pk) == ["2", "1"]
    half_past = (now - timedelta(hours=1, minutes=30)).strftime("%Y-%m-%dT%H:%M:%S")
    assert (told(since=half_past), told(until=half_past)) == (["1"], ["3", "2"])


@pytest.mark.soak
def test_both_people_of_an_approved_action_find_it_and_nobody_else_does() -> None:
    ann = person("ann", *EXPORTS)
    names = (
        "ann", "ann, approved by bob", "ann, API token ci", "ann, API token ci, approved by bob",
        "bob, without approval", "ann2", "joann, approved by bob.x", "cid, approved by ann, API token ci",
        "joann, approved by a.n",
    )  # fmt: skip
    for name in names:
        AuditEntry.objects.create(act=AuditAct.NOTED, by=name, reason="why")
    wanted = {
        "ann": [0, 1, 2, 3, 7], "bob": [1, 3, 4], "bob.x": [6], "a.n": [8], "ann, approved by bob": [1],
        "ann, API token ci": [2, 3, 7], "an": [],
    }  # fmt: skip
    for asked, found in wanted.items():
        exported = [one["user"]["name"] for one in _export(ann, by=asked) if one["event"]["action"] == "noted"]
        assert exported == [names[number] for number in found], asked
        listed = ann.get("/admin/reprocessing/auditentry/", {"q": asked, "act__exact": "noted"}).context["cl"]
        assert [entry.by for entry in listed.result_list] == exported[::-1], asked


def test_invalid_filter_is_explained() -> None:
    ann = person("ann", *EXPORTS)
    given = {"csrfmiddlewaretoken": token(ann, "/admin/password_change/")}
    page = ann.post(THERE, given | {"since": "2026-02-02T00:00", "until": "2026-02-01T00:00", "operation": "x"})
    assert "The end is before the beginning." in page.content.decode()
    assert "Enter a whole number." in page.content.decode()
    assert not AuditEntry.objects.exists()


def test_export_takes_a_permission() -> None:
    bob = person("bob", *SEES)
    assert "needs the permission to export messages" in bob.get("/admin/reprocessing/auditentry/").content.decode()
    assert bob.get(THERE).status_code == 403
    assert person("cid", "export_letter").get(THERE).status_code == 403


def test_list_shows_objects_with_bounded_queries(django_assert_max_num_queries: DjangoAssertNumQueries) -> None:
    ann, letter = person("ann", *SEES), parked(dlq("shop"))
    run = Run.objects.create(name="monday", dlq=letter.dlq)
    for about in ({"letter": letter}, {"run": run}, {"dlq": letter.dlq}, {}):
        AuditEntry.objects.create(act=AuditAct.NOTED, by="bob", reason="<b>why</b>", **about)
    for _ in range(30):
        AuditEntry.objects.create(act=AuditAct.NOTED, by="bob", reason="again", letter=letter)
    with django_assert_max_num_queries(12):
        page = ann.get("/admin/reprocessing/auditentry/").content.decode()
    for told in (f">{letter.message_id}</a>", ">monday</a>", ">shop</a>", "everything", "&lt;b&gt;why&lt;/b&gt;"):
        assert told in page, told


def test_long_log_is_read_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "_CHUNK", 2)
    for number in range(5):
        AuditEntry.objects.create(act=AuditAct.NOTED, by="bob", reason=f"{number}")
    assert [one.reason for one in audit_log.log_entries(audit_log.LogFilter())] == ["0", "1", "2", "3", "4"]
