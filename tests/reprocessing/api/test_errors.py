"""Every error below /api/ is a problem that says what happened, why, and what to send."""

from __future__ import annotations

import logging

import pytest
from django.db import connection
from django.test import Client

from reprocessing.store.dlqs import dlq_status
from reprocessing.store.safety import stops
from tests.reprocessing.admin.parking_lot.parked_messages import dlq
from tests.reprocessing.api.callers import problem, program, told

pytestmark = pytest.mark.django_db


def test_errors_of_django_are_problems_and_those_of_the_admin_are_pages() -> None:
    caller = program()
    assert problem(caller.get("/nothing"), 404).startswith("There is no such address.")
    assert problem(caller.raw("GET", "/messages/not-a-uuid"), 404).startswith("There is no such address.")
    refused = caller.raw("DELETE", "/dlqs")
    assert problem(refused, 405).startswith("The address does not allow this method.")
    assert refused.headers["Allow"] == "GET"
    assert problem(caller.client.get("/api/v1/dlqs", headers={"host": "evil.example"}), 400) != ""
    assert Client().get("/admin/nothing").headers["Content-Type"].startswith("text/html")


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 400), (b"", "application/json", 415), (b"[]", "application/json", 422),
        (b"[" * 100_000, "application/json", 400), (b"reason=x", "application/x-www-form-urlencoded", 415),
        (b'{"reason": "\\ud800"}', "application/json", 422), (b"x" * 2_700_000, "application/json", 413),
        (b"\xff", "application/json", 400),
    ],
    ids=["broken", "empty", "list", "deep", "form", "half", "large", "binary"],
)  # fmt: skip
def test_a_body_that_cannot_be_read_is_refused(body: bytes, kind: str, status: int) -> None:
    problem(program().raw("POST", "/stop", body, Content_Type=kind, Idempotency_Key="k1"), status)


@pytest.mark.parametrize(
    ("body", "key"),
    [
        (b'{"reason": "x", "confirm": true, "confirm": false}', "'confirm'"),
        (b'{"confirm": true, "reason": "x", "filter": {"dlq": "orders", "dlq": "mails"}}', "'dlq'"),
        (b'{"confirm": true, "x\\ud800": 1, "x\\ud800": 2}', "'x\\ud800'"),
    ],
    ids=["top", "inside", "half"],
)
def test_a_repeated_key_of_a_body_is_refused(body: bytes, key: str) -> None:
    said = problem(program().raw("POST", "/stop", body, Idempotency_Key="k1"), 422)
    assert said == f"Nothing was done: the key {key} is repeated in an object of the body. Send each key once."
    assert stops.stop_of(None) is None


def test_a_repeated_parameter_of_a_query_is_refused_unless_it_is_a_list() -> None:
    caller = program()
    assert problem(caller.get("/messages?limit=2&limit=3"), 422) == (
        "Nothing was done: the parameter limit is repeated in the query, and is not a list. Send it once."
    )
    assert "there is no parameter 'confirm'" in problem(caller.raw("POST", "/stop?confirm=1", b"{}"), 422)
    assert told(caller.get("/messages?state=parked&state=discarded"))["items"] == []


def test_a_database_that_is_out_of_reach_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object, **__: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = '1ms'; SELECT pg_sleep(1)")

    dlq("orders")
    monkeypatch.setattr(dlq_status, "dlq_statuses", gone)
    answer = program().get("/dlqs/orders/status")
    assert problem(answer, 503).startswith("PostgreSQL cannot be reached. Send the request again")
    assert answer.headers["Retry-After"] == "5"


def test_a_fault_is_a_problem_without_its_cause(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def faulty(*_: object, **__: object) -> None:
        raise ValueError("the secret cause")

    caplog.set_level(logging.ERROR)
    dlq("orders")
    monkeypatch.setattr(dlq_status, "dlq_statuses", faulty)
    assert "The service has a fault" in problem(program().get("/dlqs/orders/status"), 500)
    assert "the secret cause" in caplog.text


def test_answers_are_kept_by_no_cache_and_set_no_cookie() -> None:
    dlq("orders")
    answer = program().get("/dlqs")
    told(answer)
    assert (answer.headers["Cache-Control"], answer.cookies) == ("no-store", {})
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]


def test_the_document_is_served_to_everybody_and_names_every_operation_once() -> None:
    found = told(Client().get("/api/v1/openapi.json"))
    assert found["openapi"] == "3.1.0"
    ids = [made["operationId"] for methods in found["paths"].values() for made in methods.values()]
    assert len(ids) == len(set(ids)) > 25
