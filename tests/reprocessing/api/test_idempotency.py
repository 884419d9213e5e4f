"""The same key and body: the same answer, and no second action."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.http import HttpResponse
from pytest_django import Settings

from reprocessing import conf
from reprocessing.api.parking_lot import decisions
from reprocessing.models import ApiCall, ApiToken, AuditEntry, BulkAction, Letter, Run
from reprocessing.pipeline.maintenance import purge
from reprocessing.store import rows
from reprocessing.store.api import calls
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.safety import stops
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked
from tests.reprocessing.api.callers import Program, problem, program, told

pytestmark = pytest.mark.django_db


def stopped() -> int:
    return AuditEntry.objects.filter(act="stopped").count()


def test_a_repetition_gets_the_first_answer_and_does_nothing() -> None:
    caller, other = program(), program()
    dlq("orders")
    first = caller.post("/dlqs/orders/stop", key="k1", confirm=True)
    stops.resume(None, by="ann", reason="a test")
    again = caller.post("/dlqs/orders/stop", key="k1", confirm=True)
    assert (told(first), first.headers.get("Idempotency-Replayed")) == (told(again), None)
    assert (again.headers["Idempotency-Replayed"], stopped()) == ("true", 1)
    assert told(other.post("/dlqs/orders/stop", key="k1", confirm=True))["changed"] is False  # keys are a token's own


def test_a_repetition_gets_the_bytes_of_the_first_answer() -> None:
    """Also of an answer that is stored with its change, before it is rendered."""
    caller = program()
    dlq("orders")
    noted = {"redrive_ids": [str(parked(dlq("mails")).public_id), str(uuid4())], "reason": "\u00e9", "confirm": True}
    for path, body in (("/messages/note", noted), ("/dlqs/orders/stop", {"confirm": True})):
        first = caller.post(path, key="k" + path, **body)
        again = caller.post(path, key="k" + path, **body)
        assert (first.content, again.headers["Idempotency-Replayed"]) == (again.content, "true")
        assert told(first)["changed"] is True
        assert first.content == json.dumps(told(first)).encode()  # the format of all answers


def test_a_key_belongs_to_one_request() -> None:
    caller = program()
    for name in ("orders", "mails"):
        dlq(name)
    told(caller.post("/dlqs/orders/stop", key="k1", confirm=True))
    for path, more in (
        ("/dlqs/mails/stop", {}),
        ("/dlqs/orders/resume", {}),
        ("/dlqs/orders/stop", {"reason": "other"}),
    ):
        said = problem(caller.post(path, key="k1", confirm=True, **more), 422)
        assert said == "Nothing was done: this Idempotency-Key belongs to another request. Send a new UUID."
    assert stopped() == 1


def test_without_the_secret_key_no_guessed_body_matches_a_stored_request(settings: Settings) -> None:
    caller = program()
    dlq("orders")
    told(caller.post("/dlqs/orders/stop", key="k1", confirm=True))
    settings.SECRET_KEY = "another key"
    problem(caller.post("/dlqs/orders/stop", key="k1", confirm=True), 422)


def test_an_error_is_not_kept_since_nothing_was_done() -> None:
    caller = program()
    problem(caller.post("/dlqs/orders/stop", key="k1", confirm=True), 404)
    problem(caller.post("/dlqs/orders/stop", key="k2", confirm=True, reason=" "), 422)
    assert ApiCall.objects.count() == 0
    dlq("orders")
    assert told(caller.post("/dlqs/orders/stop", key="k1", confirm=True))["changed"] is True


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 256, "\u00e9"], ids=["empty", "space", "two", "long", "accent"])
def test_a_key_that_is_none_is_refused(key: str) -> None:
    said = problem(program().raw("POST", "/stop", b'{"reason": "x"}', Idempotency_Key=key), 400)
    assert said.startswith("Nothing was done: Idempotency-Key must be 1 to 255 printable ASCII characters")


def test_a_change_without_a_key_is_refused_and_a_dry_run_is_not() -> None:
    caller = program()
    assert told(caller.raw("POST", "/stop", b'{"reason": "x"}'))["dry_run"] is True
    said = problem(caller.raw("POST", "/stop", b'{"reason": "x", "confirm": true}'), 400)
    assert "a request with confirm: true needs the header Idempotency-Key" in said
    assert stops.stop_of(None) is None


def test_runs_and_bulk_actions_have_ids_made_from_the_key() -> None:
    """A server that is killed before it stores the answer does the same again: nothing twice."""
    caller = program()
    parked(dlq("orders"))
    token = ApiToken.objects.get(name=caller.name)
    sent: list[tuple[str, dict[str, Any]]] = [
        ("/runs", {"dlq": "orders", "capture": False}),
        ("/bulk-actions", {"action": "discard", "filter": {"dlq": "orders"}}),
    ]
    for path, body in sent:
        first = told(caller.post(path, key="k1", confirm=True, **body))
        ApiCall.objects.filter(token=token).delete()  # as if it had never been stored
        again = told(caller.post(path, key="k1", confirm=True, **body))
        ApiCall.objects.filter(token=token).delete()
        assert {name: first[name] for name in ("run", "bulk_action") if name in first} == {
            name: again[name] for name in ("run", "bulk_action") if name in again
        }
    assert (Run.objects.filter(kind="drain").count(), BulkAction.objects.count()) == (1, 1)


def test_a_key_whose_server_was_killed_is_taken_over_after_its_lease() -> None:
    caller = program()
    dlq("orders")
    told(caller.post("/dlqs/orders/stop", key="k1", confirm=True))
    soon, ago = database_now() + timedelta(seconds=9), database_now() - timedelta(seconds=1)
    ApiCall.objects.update(status=None, answer=None, leased_until=soon)
    busy = caller.post("/dlqs/orders/stop", key="k1", confirm=True)
    assert "is being answered now" in problem(busy, 409)
    assert busy.headers["Retry-After"] == "1"
    ApiCall.objects.update(leased_until=ago)
    assert told(caller.post("/dlqs/orders/stop", key="k1", confirm=True))["changed"] is False
    assert stopped() == 1


NOTED = {"note": "noted", "assign": "assigned", "discard": "discarded", "release": "released"}


@pytest.mark.parametrize("action", NOTED)
def test_a_decision_of_a_server_that_was_killed_is_not_made_again(action: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is killed after the commit, before it sends the answer; then the message is parked again."""
    caller = program()
    letter = parked(dlq("orders"))
    body = {"redrive_ids": [str(letter.public_id)], "confirm": True} | ({"to": ""} if action == "assign" else {})

    def commit_and_die(work: Any) -> None:  # noqa: ANN401
        rows.in_transaction(work)
        raise KilledError

    with monkeypatch.context() as killed:
        killed.setattr(decisions, "rows", SimpleNamespace(in_transaction=commit_and_die))
        killed.setattr(calls, "release_key", lambda _: None)
        problem(caller.post(f"/messages/{action}", key="k1", **body), 500)
    written = AuditEntry.objects.filter(act=NOTED[action])
    first = written.count()
    ApiCall.objects.exclude(leased_until=None).update(leased_until=database_now() - timedelta(seconds=1))
    Letter.objects.filter(pk=letter.pk).update(state="parked", reason="attempts_spent", finished_at=database_now())
    again = caller.post(f"/messages/{action}", key="k1", **body)
    assert (told(again)["done"], again.headers.get("Idempotency-Replayed")) == ([str(letter.public_id)], "true")
    assert written.count() == first > 0


def test_a_note_of_a_server_that_took_longer_than_its_lease_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    caller = program()
    body = {"redrive_ids": [str(parked(dlq("orders")).public_id)], "confirm": True}

    def late(work: Any) -> Any:  # noqa: ANN401
        monkeypatch.undo()
        ApiCall.objects.update(leased_until=database_now() - timedelta(seconds=1))
        told(caller.post("/messages/note", key="k1", **body))
        return rows.in_transaction(work)

    monkeypatch.setattr(decisions, "rows", SimpleNamespace(in_transaction=late))
    assert "is being answered now" in problem(caller.post("/messages/note", key="k1", **body), 409)
    assert AuditEntry.objects.filter(act="noted").count() == 1
    assert told(caller.post("/messages/note", key="k1", **body))["changed"] is True


class KilledError(Exception):
    """The process ends here."""


def test_answers_are_kept_for_a_day() -> None:
    caller = program()
    for key in ("k1", "k2"):
        told(caller.post("/stop", key=key))
    ApiCall.objects.filter(key="k1").update(made_at=database_now() - timedelta(seconds=calls.KEPT_SECONDS))
    purge.purge_expired(conf=conf.current())
    assert list(ApiCall.objects.values_list("key", flat=True)) == ["k2"]


@pytest.mark.soak
@pytest.mark.django_db(transaction=True)
def test_of_two_at_once_one_does_it() -> None:
    caller = program()
    letters = [parked(dlq(f"orders-{n}")) for n in range(2)]
    body = {"redrive_ids": [str(letter.public_id) for letter in letters], "confirm": True}
    key, answers, both = str(uuid4()), list[HttpResponse](), threading.Barrier(4)

    def send() -> None:
        both.wait()
        answers.append(Program(caller.name, caller.secret).post("/messages/discard", key=key, **body))
        connection.close()

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done: list[Any] = [json.loads(answer.content) for answer in answers if answer.status_code == 200]
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert done
    assert all(one == done[0] for one in done)
    assert AuditEntry.objects.filter(act="discarded").count() == 2
