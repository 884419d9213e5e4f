"""Messages, their bodies, and decisions about them."""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from reprocessing.domain.api.scopes import Scope
from reprocessing.domain.message.envelope import Attribute
from reprocessing.models import ApiCall, AuditEntry, BulkAction, DeadLetterQueue, Letter, Revision
from reprocessing.pipeline.parking_lot import act_on_parked, run_bulk_actions
from reprocessing.pipeline.search import reindex
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.parking_lot import bulk_actions
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked
from tests.reprocessing.api.callers import Program, problem, program, told

pytestmark = pytest.mark.django_db

CARD = b'{"card": "4111 1111"}'


def ids(*letters: Letter) -> list[str]:
    return [str(letter.public_id) for letter in letters]


def pages(caller: Program, **query: object) -> list[list[str]]:
    found, after = [], ""
    while True:
        page = told(caller.get("/messages", after=after, **query))
        found.append([item["message_id"] for item in page["items"]])
        if page["next"] is None:
            return found
        after = page["next"]


@pytest.mark.parametrize("state", ["parked", "captured"])
def test_a_list_has_each_message_once_on_pages(state: str) -> None:
    caller, source = program(), dlq("orders")
    letters = [parked(source, key=f"k{n}") for n in range(5)]
    if state == "captured":
        Letter.objects.update(state="captured", finished_at=None, reason="")
    Letter.objects.filter(pk__in=[letter.pk for letter in letters[:3]]).update(
        finished_at=None if state == "captured" else database_now(), first_sent_at=database_now()
    )  # equal times: the id decides
    found = pages(caller, state=state, limit=2)
    assert [len(page) for page in found] == [2, 2, 1]
    assert sorted(one for page in found for one in page) == sorted(letter.message_id for letter in letters)
    assert told(caller.get("/messages", state=state, limit=2))["total"] == 5


def test_messages_are_found_by_search_fields_but_not_by_masked_values() -> None:
    caller, source = program(), dlq("orders")
    letter = parked(source, body=b'{"order": {"id": 4711}, "card": "4111"}')
    parked(source, body=b'{"order": {"id": 4712}}')
    fields = ["order_id=body:order.id", "card=body:card"]
    DeadLetterQueue.objects.update(search_fields=fields, masked_fields=["card"])
    assert reindex.reindex_dlqs(seconds=10)
    asked = {"order_id:4711": 1, "order_id:47*": 2, "card:4111": 0}
    assert {field: told(caller.get("/messages", field=field))["total"] for field in asked} == asked
    both = told(caller.get("/messages", field=["order_id:47*", "order_id:4711"], q="4711"))
    assert [item["message_id"] for item in both["items"]] == [letter.message_id]
    assert "no condition on a search field" in problem(caller.get("/messages", field="order"), 422)
    assert told(caller.get("/dlqs/orders"))["search_fields"] == ["order_id", "card"]


@pytest.mark.soak
def test_a_list_takes_the_filter_of_the_parking_lot() -> None:
    caller = program()
    mine, other = parked(dlq("orders"), key="k1", body=CARD), parked(dlq("mails"), key="k2")
    named = {"dlq": "orders", "key": "k1", "q": mine.message_id, "text": "4111", "source": mine.source_id}
    for query in ({name: value} for name, value in named.items()):
        assert pages(caller, **query) == [[mine.message_id]], query
    after = (database_now() - timedelta(minutes=1)).isoformat()
    assert pages(caller, parked_before=after) == [[]]
    assert sorted(pages(caller, parked_after=after, reason="attempts_spent")[0]) == sorted(
        [mine.message_id, other.message_id]
    )


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ({"dlq": "mails"}, "The filter names a DLQ that does not exist, or that this token does not see."),
        ({"sent_after": "soon"}, "The filter sent_after takes a time such as 2026-03-01T08:00 (UTC), not 'soon'."),
        ({"state": ["parked", "waiting"]}, "A list has finished or unfinished messages, not both. Send two requests."),
        ({"after": "x"}, "`after` is not valid. Send `next` of the page before, or leave it out."),
        ({"limit": 0}, "Nothing was done: query.limit is not valid: Input should be greater than or equal to 1."),
        (
            {"dlqs": "1"},
            "Nothing was done: there is no parameter 'dlqs' in the query. The parameters are: after, assigned,",
        ),
    ],
    ids=["dlq", "time", "states", "cursor", "limit", "unknown"],
)
def test_a_filter_that_means_nothing_is_refused(query: dict[str, Any], why: str) -> None:
    dlq("orders")
    assert problem(program().get("/messages", **query), 422).startswith(why)


@pytest.mark.parametrize("name", ["key", "q", "text", "assigned", "sent_after", "parked_before"])
def test_a_blank_condition_is_refused_since_it_would_match_everything(name: str) -> None:
    caller, blank = program(), {"dlq": "orders", name: " "}
    parked(dlq("orders"), key="k1")
    assert f"{name} is not valid: Value error, it is empty" in problem(caller.get("/messages", **blank), 422)
    asked: dict[str, Any] = {"action": "discard", "filter": blank, "confirm": True}
    assert f"{name} is not valid: Value error, it is empty" in problem(caller.post("/bulk-actions", **asked), 422)
    assert not BulkAction.objects.exists()


def test_keys_and_texts_with_a_space_are_not_those_without() -> None:
    caller, source = program(), dlq("orders")
    without, spaced = (parked(source, key=key, body=body) for key, body in (("k", b"a1"), ("k ", b"a 1")))
    for name, value in (("key", "k "), ("text", " 1")):
        assert pages(caller, **{name: value}) == [[spaced.message_id]]
    assert pages(caller, key="k") == [[without.message_id]]
    body = {"dlq": "orders", "run": "monday", "key": "k ", "capture": False, "reason": "a test", "confirm": True}
    made = told(caller.raw("POST", "/runs", json.dumps(body), Idempotency_Key="k1"))["run"]
    assert made["selection"]["key"] == "k "


def test_a_body_takes_its_scope_and_each_view_is_recorded(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    letter = parked(
        dlq("orders"), body=CARD, attributes={"n": Attribute("Number", "1"), "b": Attribute("Binary", b"\xff")}
    )
    reader, seer = program(Scope.MESSAGES_READ), program(Scope.MESSAGES_BODIES)
    address = f"/messages/{letter.public_id}"
    for path, query in ((f"{address}/body", {}), ("/messages", {"text": "4111"})):
        assert "This needs the scope messages:bodies" in problem(reader.get(path, **query), 403)
    assert "4111" not in str(told(reader.get(address)))
    found = told(seer.get(f"{address}/body"))
    assert (found["edit"], found["encoding"], found["body"]) == (0, "text", CARD.decode())
    assert found["attributes"] == [
        {"name": "b", "type": "Binary", "value": "/w==", "encoding": "base64"},
        {"name": "n", "type": "Number", "value": "1", "encoding": "text"},
    ]
    entry = AuditEntry.objects.get(act="revealed")
    assert (entry.letter, entry.by) == (letter, f"owner of {seer.name}, API token {seer.name}")
    assert "4111" not in caplog.text


def test_a_decision_is_shown_first_then_made_about_exactly_these() -> None:
    caller, source = program(), dlq("orders")
    letters = [parked(source, key=f"k{n}") for n in range(2)]
    body: dict[str, Any] = {"redrive_ids": [*ids(*letters), "00000000-0000-4000-8000-000000000000"]}
    looked = told(caller.post("/messages/release", **body))
    assert (looked["dry_run"], looked["changed"], looked["messages"], looked["done"]) == (True, False, 2, [])
    assert [one["why"] for one in looked["refused"]] == ["there is no such message, or this token does not see it"]
    assert set(Letter.objects.values_list("state", flat=True)) == {"parked"}
    done = told(caller.post("/messages/release", **body, selection=looked["selection"], confirm=True))
    assert (done["says"], sorted(done["done"])) == (["2 messages released."], sorted(ids(*letters)))
    assert set(Letter.objects.values_list("state", flat=True)) == {"waiting"}
    entries = AuditEntry.objects.filter(act="released")
    assert {(entry.by, entry.reason) for entry in entries} == {
        (f"owner of {caller.name}, API token {caller.name}", "a test")
    }


def test_a_selection_that_changed_is_refused() -> None:
    caller, letter = program(), parked(dlq("orders"))
    looked = told(caller.post("/messages/discard", redrive_ids=ids(letter)))
    act_on_parked.discard([letter.pk], by="ann", reason="a test")
    act_on_parked.restore([letter.pk], by="ann", reason="a test")
    again = caller.post("/messages/discard", redrive_ids=ids(letter), selection=looked["selection"], confirm=True)
    assert "Some of the messages changed since the dry run." in problem(again, 409)
    assert Letter.objects.get().state == "parked"


def test_what_is_discarded_is_restored() -> None:
    caller, letter = program(), parked(dlq("orders"))
    assert told(caller.post("/messages/discard", redrive_ids=ids(letter), confirm=True))["changed"] is True
    refused = told(caller.post("/messages/release", redrive_ids=ids(letter), confirm=True))["refused"]
    assert refused == [{"redrive_id": str(letter.public_id), "why": "it is no longer parked: it is discarded"}]
    told(caller.post("/messages/restore", redrive_ids=ids(letter), confirm=True))
    assert Letter.objects.get().state == "parked"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"at": "2020-01-01T00:00:00Z"}, "`at` is not a future time within a year"),
        ({"target": "nowhere"}, 'Nothing was done: no target is named "nowhere".'),
        ({"reason": "  "}, "Nothing was done: body.reason is not valid: Value error, it is empty."),
        ({"reason": "a\0b"}, "Nothing was done: body.reason is not valid: Value error, a zero byte"),
        ({"redrive_ids": []}, "Nothing was done: body.redrive_ids is not valid: List should have at least 1"),
        ({"confirm": "yes"}, "Nothing was done: body.confirm is not valid: Input should be a valid boolean."),
        ({"force": True}, "Nothing was done: body.force is not valid: Extra inputs are not permitted."),
    ],
    ids=["past", "target", "no reason", "zero", "nothing", "not yes", "unknown"],
)
def test_a_decision_that_cannot_be_meant_is_refused(more: dict[str, Any], why: str) -> None:
    letter = parked(dlq("orders"))
    answer = program().post("/messages/release", **{"redrive_ids": ids(letter), "confirm": True, **more})
    assert problem(answer, 422).startswith(why)


def test_a_bulk_action_is_shown_started_watched_and_aborted() -> None:
    caller, source = program(), dlq("orders")
    letters = [parked(source, key=f"k{n}") for n in range(3)]
    asked: dict[str, Any] = {"action": "discard", "filter": {"dlq": "orders"}}
    looked = told(caller.post("/bulk-actions", **asked))
    assert (looked["says"], looked["bulk_action"]) == (["3 messages match."], None)
    assert looked["counts"] == [{"dlq": "orders", "state": "parked", "reason": "attempts_spent", "messages": 3}]
    late = parked(source)
    made = told(caller.post("/bulk-actions", **asked, seen_at=looked["seen_at"], confirm=True))["bulk_action"]
    assert (made["state"], made["messages"]) == ("running", 3)
    (due,) = bulk_actions.lease_due(limit=9)
    run_bulk_actions.run_bulk_action(due, seconds=9)
    done = told(caller.get(f"/bulk-actions/{made['id']}"))
    assert (done["state"], done["done"], done["by"]) == ("done", 3, f"owner of {caller.name}, API token {caller.name}")
    assert [Letter.objects.get(pk=one.pk).state for one in (*letters, late)] == [*["discarded"] * 3, "parked"]
    assert "is done already" in problem(caller.post(f"/bulk-actions/{made['id']}/abort", confirm=True), 409)
    other = told(caller.post("/bulk-actions", action="restore", filter={"dlq": "orders"}, confirm=True))["bulk_action"]
    assert told(caller.post(f"/bulk-actions/{other['id']}/abort"))["bulk_action"]["state"] == "running"
    assert told(caller.post(f"/bulk-actions/{other['id']}/abort", confirm=True))["bulk_action"]["state"] == "aborted"
    assert [one["id"] for one in told(caller.get("/bulk-actions"))["items"]] == [other["id"], made["id"]]


def test_messages_are_assigned_and_annotated_by_their_ids() -> None:
    caller, letter = program(), parked(dlq("orders"))
    User.objects.create_user("ann", is_staff=True)
    looked = told(caller.post("/messages/assign", redrive_ids=ids(letter), to="ann"))
    assert (looked["says"], Letter.objects.get().assigned_to) == (["1 message would be assigned to ann."], "")
    told(caller.post("/messages/assign", redrive_ids=ids(letter), to="ann", confirm=True))
    told(caller.post("/messages/note", redrive_ids=ids(letter), reason="it is the third one", confirm=True))
    assert (Letter.objects.get().assigned_to, Letter.objects.get().state) == ("ann", "parked")
    told(caller.post("/messages/assign", redrive_ids=ids(letter), to="", confirm=True))
    entries = AuditEntry.objects.filter(letter=letter).order_by("pk").values_list("act", "reason", "after__assigned_to")
    assert list(entries) == [
        ("assigned", "a test", "ann"), ("noted", "it is the third one", None), ("assigned", "a test", ""),
    ]  # fmt: skip


def test_all_that_match_are_assigned_or_annotated() -> None:
    caller, source = program(), dlq("orders")
    letters = [parked(source, key=f"k{n}") for n in range(2)]
    User.objects.create_user("ann", is_staff=True)
    asked: dict[str, Any] = {"filter": {"dlq": "orders"}, "confirm": True}
    assigned = told(caller.post("/bulk-actions", action="assign", to="ann", **asked))
    noted = told(caller.post("/bulk-actions", action="note", **{**asked, "reason": "known bug"}))
    assert [answer["says"][1] for answer in (assigned, noted)] == [
        "Workers assign the messages that are still parked.",
        "Workers add the note to the messages that are still parked.",
    ]
    for due in bulk_actions.lease_due(limit=9):
        run_bulk_actions.run_bulk_action(due, seconds=9)
    assert set(Letter.objects.values_list("assigned_to", "state")) == {("ann", "parked")}
    assert AuditEntry.objects.filter(act="noted", reason="known bug", letter__in=letters).count() == 2


@pytest.mark.parametrize(
    ("path", "body", "why"),
    [
        ("/messages/assign", {"to": "nobodys"}, 'No user of the admin is named "nobodys".'),
        ("/messages/assign", {}, "body.to is not valid: Field required"),
        ("/bulk-actions", {"action": "assign"}, "`to` is for assignments, which need it."),
        ("/messages/assign", {"to": "a\0b"}, "body.to is not valid: Value error, a zero byte cannot be stored"),
        ("/bulk-actions", {"action": "assign", "to": "nobodys"}, 'No user of the admin is named "nobodys".'),
        ("/bulk-actions", {"action": "assign", "to": "a\0b"}, "body.to is not valid: Value error, a zero byte"),
        ("/bulk-actions", {"action": "note", "to": ""}, "`to` is for assignments, which need it."),
    ],
    ids=["unknown", "missing", "zero", "bulk missing", "bulk unknown", "bulk zero", "note"],
)
def test_an_assignment_to_nobody_who_exists_is_refused(path: str, body: dict[str, Any], why: str) -> None:
    letter = parked(dlq("orders"))
    about = {"filter": {"dlq": "orders"}} if path == "/bulk-actions" else {"redrive_ids": ids(letter)}
    assert why in problem(program().post(path, **about, **body, confirm=True), 422)
    assert not BulkAction.objects.exists()


def test_assignments_and_notes_take_their_own_scope() -> None:
    caller, letter = program(Scope.MESSAGES_READ, Scope.MESSAGES_RELEASE), parked(dlq("orders"))
    bulk: dict[str, Any] = {"filter": {"dlq": "orders"}, "confirm": True}
    for answer in (
        caller.post("/messages/assign", redrive_ids=ids(letter), to="", confirm=True),
        caller.post("/messages/note", redrive_ids=ids(letter), confirm=True),
        caller.post("/bulk-actions", action="assign", to="", **bulk),
        caller.post("/bulk-actions", action="note", **bulk),
    ):
        assert "This needs the scope messages:assign" in problem(answer, 403)
    assert not AuditEntry.objects.filter(letter=letter).exists()


PATCH = '[{"op": "replace", "path": "/n", "value": 100000000000000000000.10}]'


def test_all_that_match_are_edited_by_a_patch_that_keeps_all_digits() -> None:
    caller, source = program(), dlq("orders")
    fits, other = parked(source, body=b'{"n": 1}'), parked(source, body=b"<xml/>")
    asked: dict[str, Any] = {"action": "edit", "filter": {"dlq": "orders"}, "patch": PATCH}
    assert told(caller.post("/bulk-actions", **asked))["says"][1:] == [
        "The patch fits 1 of the 2 newest messages.", "1 would not be changed, since it is not JSON.",
    ]  # fmt: skip
    assert told(caller.post("/bulk-actions", **asked, confirm=True))["says"][1] == (
        "Workers edit the messages that are still parked."
    )
    for due in bulk_actions.lease_due(limit=9):
        run_bulk_actions.run_bulk_action(due, seconds=9)
    revision = Revision.objects.get()
    assert (revision.letter, bytes(revision.body)) == (fits, b'{"n": 100000000000000000000.10}')
    assert not AuditEntry.objects.filter(act="edited", letter=other).exists()


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"action": "edit"}, "`patch` is for edits, which need it"), ({"action": "note", "patch": PATCH}, "`patch` is"),
        ({"action": "edit", "patch": "[]"}, "not a list of operations"),
        ({"action": "note", "release": True}, "`release` and `changes_keys` are for edits."),
    ],
    ids=["missing", "note", "empty", "release"],
)  # fmt: skip
def test_an_edit_that_is_not_possible_is_refused(given: dict[str, Any], why: str) -> None:
    parked(dlq("orders"))
    assert why in problem(program().post("/bulk-actions", filter={"dlq": "orders"}, confirm=True, **given), 422)
    assert not BulkAction.objects.exists()


@pytest.mark.parametrize(
    ("missing", "release"),
    [(Scope.MESSAGES_EDIT, False), (Scope.MESSAGES_BODIES, False), (Scope.MESSAGES_RELEASE, True)],
)
def test_an_edit_takes_the_scopes_of_what_it_does(missing: Scope, *, release: bool) -> None:
    parked(dlq("orders"), body=b'{"n": 1}')
    caller = program(*(scope for scope in Scope if scope is not missing))
    asked: dict[str, Any] = {"action": "edit", "filter": {"dlq": "orders"}, "patch": PATCH, "release": release}
    assert f"This needs the scope {missing}" in problem(caller.post("/bulk-actions", **asked, confirm=True), 403)


def test_messages_with_masked_fields_are_not_edited_by_a_program() -> None:
    parked(dlq("orders"), body=b'{"n": 1}')
    DeadLetterQueue.objects.update(masked_fields=["n"])
    asked: dict[str, Any] = {"action": "edit", "filter": {"dlq": "orders"}, "patch": PATCH, "confirm": True}
    assert "could reveal masked values" in problem(program().post("/bulk-actions", **asked), 422)


def test_a_searched_text_is_in_no_answer_and_no_kept_answer() -> None:
    caller = program()
    parked(dlq("orders"), body=CARD)
    asked: dict[str, Any] = {"action": "discard", "filter": {"dlq": "orders", "text": "4111 1111"}}
    answer = caller.post("/bulk-actions", **asked, confirm=True)
    assert told(answer)["bulk_action"]["filter"]["text"] == "(a text in their bodies)"
    assert b"4111" not in answer.content + bytes(ApiCall.objects.get().answer or b"")
    assert BulkAction.objects.get().filter["text"] == "4111 1111"


def test_the_queries_of_a_list_do_not_grow_with_it() -> None:
    caller, source = program(), dlq("orders")
    asked = list[int]()
    for _ in range(2):
        for _ in range(3):
            parked(source)
        with CaptureQueriesContext(connection) as queries:
            told(caller.get("/messages"))
        asked.append(len(queries))
    assert asked[0] == asked[1]
