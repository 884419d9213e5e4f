"""A log line is one line in both formats, has the fields that its call knows, and quotes no message."""

from __future__ import annotations

import json
import logging
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from billiard.einfo import ExceptionInfo
from celery import Celery
from django.conf import settings
from django.db import DataError
from django.http import HttpRequest, HttpResponse

from redrive_service.telemetry.access_log import AccessLogMiddleware
from tests.redrive_service.telemetry.written import Written

FORGED = "ok\n2026-01-01 00:00:00,000 ERROR root forged\r\x1b[2K\x85\u2028{}\x00"
logger = logging.getLogger("reprocessing.of_this_test")


@pytest.fixture
def handlers() -> Iterator[dict[str, Written]]:
    made = {name: Written(name) for name in ("text", "json")}
    for handler in made.values():
        logging.getLogger().addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield made
    for handler in made.values():
        logging.getLogger().removeHandler(handler)


def fail_because(cause: Exception, error: Exception) -> None:
    try:
        raise cause
    except type(cause) as first:
        raise error from first


def test_a_record_in_json_is_one_object_with_the_fields_that_its_call_knows(handlers: dict[str, Written]) -> None:
    logger.warning("%s: %d left", "orders", 3, extra={"dlq": "orders", "key_queue_ids": [1, 2], "body": "canary"})
    (record,) = handlers["json"].records
    assert record.pop("time").endswith("+00:00")
    assert record == {
        "level": "WARNING", "logger": "reprocessing.of_this_test", "message": "orders: 3 left",
        "process": os.getpid(), "dlq": "orders", "key_queue_ids": [1, 2],
    }  # fmt: skip


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_no_content_forges_a_line(handlers: dict[str, Written], log_format: str) -> None:
    written = handlers[log_format]
    logger.error("%s", FORGED, extra={"dlq": FORGED})
    logger.error(FORGED)
    logger.error(ValueError(FORGED))
    assert len(written.text.splitlines()) == 3
    assert all(character.isprintable() for character in written.text.replace("\n", ""))


def test_lines_of_a_traceback_are_indented_in_text_and_a_field_in_json(handlers: dict[str, Written]) -> None:
    try:
        fail_because(KeyError("inner"), ValueError(FORGED))
    except ValueError:
        logger.exception("it broke")
    first, *rest = handlers["text"].text.splitlines()
    assert first == "ERROR reprocessing.of_this_test it broke"
    assert all(line.startswith("  ") for line in rest)
    assert [line for line in rest if "Error: " in line] == [
        "  KeyError: 'inner'",
        "  ValueError: ok",
    ]
    (record,) = handlers["json"].records
    assert record["exception"].split("\n") == [line.removeprefix("  ") for line in rest]


def test_the_values_that_postgresql_quotes_are_not_logged(handlers: dict[str, Written]) -> None:
    quoting = 'duplicate key value violates unique constraint "one_lane_per_key"\nDETAIL:  Key (key)=(canary) exists.'
    try:
        fail_because(psycopg.DataError(quoting), DataError(quoting))
    except DataError as error:
        logger.log(logging.ERROR, "it failed: %s, %r", error, error, exc_info=error)
    for written in handlers.values():
        assert "canary" not in written.text
        assert "one_lane_per_key" in written.text


def test_the_traceback_of_a_child_process_is_logged(handlers: dict[str, Written]) -> None:
    found: Any = None
    try:
        fail_because(KeyError("inner"), ValueError("it broke"))
    except ValueError:
        found = pickle.loads(pickle.dumps(ExceptionInfo()))
    logger.error("Task handler raised error: %r", found.exception, exc_info=found.exc_info)
    (record,) = handlers["json"].records
    assert record["exception"].endswith("ValueError: it broke")
    assert "test_log_format.py" in record["exception"]


def test_lines_of_a_task_have_its_id_and_its_name(handlers: dict[str, Written]) -> None:
    with Celery("here", set_as_current=False) as app:

        @app.task(name="shop.charge")
        def charge() -> None:
            logger.info("inside")

        charge.apply(task_id="t-1")
    logger.info("Task received", extra={"data": {"id": "t-2", "name": "shop.ship", "args": "canary"}})
    logger.info("outside")
    records = {record["message"]: record for record in handlers["json"].records if record["logger"] == logger.name}
    assert {said: (one.get("task_id"), one.get("task_name")) for said, one in records.items()} == {
        "inside": ("t-1", "shop.charge"), "Task received": ("t-2", "shop.ship"), "outside": (None, None),
    }  # fmt: skip
    assert "canary" not in handlers["json"].text


def test_a_request_is_a_line_without_its_query(handlers: dict[str, Written]) -> None:
    request = HttpRequest()
    request.method, request.path = "GET", "/admin/\n"
    request.META["QUERY_STRING"] = "q=canary"
    logging.getLogger("redrive.web.access").setLevel(logging.INFO)
    AccessLogMiddleware(lambda _: HttpResponse(status=404))(request)
    (record,) = handlers["json"].records
    assert [record[name] for name in ("logger", "method", "path", "status")] == [
        "redrive.web.access", "GET", "/admin/\n", 404,
    ]  # fmt: skip
    assert isinstance(record["duration_ms"], int)
    assert "canary" not in handlers["json"].text


def test_requests_are_logged_only_in_json() -> None:
    assert "redrive_service.telemetry.access_log.AccessLogMiddleware" not in settings.MIDDLEWARE


_WRITES = """
import logging, sys
import django
django.setup()
from redrive_service.celery import app
from django.conf import settings
logging.getLogger("redrive.web").info(settings.MIDDLEWARE[1])
logging.getLogger("redrive.web").info("of a page\\nforged")
app.log.setup(loglevel="INFO", redirect_stdouts=True)
print("printed")
logging.getLogger("redrive.beat").warning("of beat\\nforged")
logging.getLogger("celery.task").warning("of a task\\nforged")
"""


@pytest.mark.soak  # processes that import everything
@pytest.mark.parametrize("log_format", ["text", "json"])
def test_web_worker_and_beat_log_in_the_format_that_is_set(log_format: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WRITES], capture_output=True, text=True, check=True, timeout=120,
        env={**os.environ, "LOG_FORMAT": log_format},
    )  # fmt: skip
    lines = done.stderr.splitlines()[-5:]
    if log_format == "json":
        assert [json.loads(line)["message"] for line in lines] == [
            "redrive_service.telemetry.access_log.AccessLogMiddleware", "of a page\nforged", "printed",
            "of beat\nforged",
            "of a task\nforged",
        ]  # fmt: skip
    else:
        assert [re.sub(r"^\S+ \S+ |Process-\d+|PoolWorker-\d+", "", line) for line in lines] == [
            "INFO redrive.web django.middleware.security.SecurityMiddleware",
            r"INFO redrive.web of a page\nforged",
            "WARNING/MainProcess] printed",
            r"WARNING/MainProcess] of beat\nforged",
            r"WARNING/MainProcess] ???[???]: of a task\nforged",
        ]
