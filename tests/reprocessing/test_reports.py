"""The endpoint that consumers report to: who is heard, what is refused and in which words, and nothing twice."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as some

from reprocessing.models import Attempt, Letter, Report, Reporter
from reprocessing.report_endpoint import MAX_BYTES, MAX_REPORTS
from reprocessing.store.outcomes import reporters
from tests.reprocessing.store.stock import Stock

pytestmark = pytest.mark.django_db

PROSE = "the card is 4111 1111 1111 1111"


@pytest.fixture
def stock() -> Stock:
    """A letter that its target took, and whose consumer is to say what became of it."""
    stock = Stock()
    stock.hand_over("sent")
    return stock


@pytest.fixture
def token(stock: Stock) -> str:
    return str(reporters.save_reporter("shop", [stock.target], anew=False, by="ann", reason="a test").token)


def post(said: object, token: str | None, *, content_type: str = "application/json", **headers: str) -> Any:  # noqa: ANN401
    """The answer to one call, as a consumer makes it: without a cookie, and without a token against forgery."""
    body = said if isinstance(said, bytes) else json.dumps(said).encode()
    given = {"Authorization": f"Bearer {token}"} if token is not None else {}
    client = Client(enforce_csrf_checks=True)
    return client.post("/reports", body, content_type=content_type, headers={**given, **headers})


def reports(*said: object) -> dict[str, object]:
    return {"reports": list(said)}


DELIVERED = {"message_id": "sent", "verdict": "delivered", "at": "2026-03-01T08:00:00Z"}


def test_a_consumer_is_heard_and_hears_what_became_of_each_report(stock: Stock, token: str) -> None:
    answer = post(reports(DELIVERED, {**DELIVERED, "body": "x"}), token)
    refused = [{"index": 1, "why": "it has unknown fields: 'body'"}]
    assert (answer.status_code, answer.json()) == (200, {"accepted": 1, "repeated": 0, "refused": refused})
    assert Letter.objects.get().state == "delivered"


def test_replaying_its_calls_changes_nothing(stock: Stock, token: str) -> None:
    said = reports({**DELIVERED, "verdict": "retrying"}, DELIVERED, {**DELIVERED, "verdict": "failed"})
    assert post(said, token).json() == {"accepted": 3, "repeated": 0, "refused": []}
    before = list(Letter.objects.values()), list(Attempt.objects.values()), list(Report.objects.values())
    for _ in range(2):
        assert post(said, token).json() == {"accepted": 0, "repeated": 3, "refused": []}
    assert (list(Letter.objects.values()), list(Attempt.objects.values()), list(Report.objects.values())) == before


@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
@pytest.mark.parametrize("sent", [None, "", "x", "redrive-" + "x" * 43, "x" * 5_000, "\u00e9"])
def test_who_has_no_token_is_not_heard(scheme: str, sent: str | None, stock: Stock) -> None:
    answer = post(reports(DELIVERED), None, **({} if sent is None else {"Authorization": f"{scheme} {sent}"}))
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert answer.json()["error"].startswith("No reporter has this token.")
    assert Report.objects.count() == 0


def test_a_token_that_was_revoked_or_replaced_is_heard_no_more(stock: Stock, token: str) -> None:
    reporters.revoke("shop", by="ann", reason="a test")
    answer = post(reports(DELIVERED), token)
    assert (answer.status_code, Report.objects.count()) == (403, 0)
    assert answer.json()["error"] == (
        "The token of shop was revoked. To create another: manage.py add_reporter shop --new-token --confirm"
    )
    other = reporters.save_reporter("shop", [], anew=True, by="ann", reason="a test").token
    assert post(reports(DELIVERED), token).status_code == 401
    assert post(reports(DELIVERED), other).status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        (b" ", 400, "The body cannot be read: it is not JSON"),
        (b"{", 400, "The body cannot be read: it is not JSON"),
        (b"\xff", 400, "The body cannot be read: it is not UTF-8"),
        (b'{"reports": ' + b"[" * 100_000, 400, "The body cannot be read: its JSON is nested more than 64 deep"),
        (b"[]", 400, 'The body must be an object with one list: {"reports": [...]}.'),
        (b'{"reports": {}}', 400, 'The body must be an object with one list: {"reports": [...]}.'),
        (b'{"reports": [], "more": 1}', 400, 'The body must be an object with one list: {"reports": [...]}.'),
        (
            json.dumps(reports(*[0] * (MAX_REPORTS + 1))).encode(),
            413,
            "A request has at most 500 reports; this one has 501.",
        ),
        (b" " * (MAX_BYTES + 1), 413, "A request has at most 1,048,576 bytes. Send fewer reports at once."),
    ],
    ids=["empty", "broken", "binary", "deep", "list", "object", "more", "many", "large"],
)
def test_a_body_that_is_no_list_of_reports_is_refused(
    body: bytes, status: int, why: str, stock: Stock, token: str
) -> None:
    answer = post(body, token)
    assert (answer.status_code, answer.json()["error"].startswith(why)) == (status, True)


def test_other_methods_and_forms_and_calls_without_a_length_are_refused(stock: Stock, token: str) -> None:
    told = {"Authorization": f"Bearer {token}"}
    got = Client().get("/reports", headers=told)
    assert (got.status_code, got.headers["Allow"], got.json()) == (405, "POST", {"error": "Send reports with POST."})
    assert post(reports(DELIVERED), token, content_type="text/plain").status_code == 415
    assert post(reports(DELIVERED), token, **{"Content-Encoding": "gzip"}).status_code == 415
    chunked = {**told, "Content-Type": "application/json", "Transfer-Encoding": "chunked"}
    answer = Client().generic("POST", "/reports", headers=chunked)
    why = "The request has no Content-Length. Send this header; chunked requests are not read."
    assert (answer.status_code, answer.json()) == (411, {"error": why})


def test_half_a_character_in_one_report_costs_no_other(stock: Stock, token: str) -> None:
    cut = {**DELIVERED, "verdict": "retrying", "message": "half of \ud83d"}
    assert post(reports(cut, {"\ud800": 1}, DELIVERED), token).json() == {
        "accepted": 2, "repeated": 0, "refused": [{"index": 1, "why": "it has unknown fields: '\\ud800'"}],
    }  # fmt: skip
    assert Report.objects.get(verdict="retrying").message == "half of \ufffd"
    assert Letter.objects.get().state == "delivered"


def test_nothing_of_what_was_said_is_logged(stock: Stock, token: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    said = {**DELIVERED, "type": PROSE, "message": PROSE, "fingerprint": PROSE}
    answers = [post(reports(said, {**said, PROSE: 1, "at": PROSE}, PROSE), token), post(PROSE.encode(), token)]
    assert answers[0].json()["accepted"] == 1
    assert token not in caplog.text
    assert "4111 1111" not in caplog.text
    assert "shop reported: 1 accepted, 0 repeated, 2 refused" in caplog.text


def test_a_database_that_is_out_of_reach_is_told_so(stock: Stock, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object, **__: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = '1ms'; SELECT pg_sleep(1)")

    monkeypatch.setattr("reprocessing.pipeline.outcomes.record_reports.record_json", gone)
    answer = post(reports(DELIVERED), token)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert answer.json()["error"].startswith("Nothing was recorded: PostgreSQL cannot be reached.")


json_values = some.recursive(
    some.none() | some.booleans() | some.floats(allow_nan=False) | some.text(max_size=20),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.soak
@settings(max_examples=60)
@given(some.binary(min_size=1, max_size=60) | json_values | json_values.map(lambda one: {"reports": [one]}))
def test_whatever_is_sent_is_answered_in_json(said: object) -> None:
    found = Reporter.objects.filter(name="fuzz").exists()
    made = reporters.save_reporter("fuzz", [] if found else [Stock().target], anew=True, by="ann", reason="a test")
    answer = post(said, made.token)
    assert answer.status_code in {200, 400}
    assert set(answer.json()) in ({"error"}, {"accepted", "repeated", "refused"})
