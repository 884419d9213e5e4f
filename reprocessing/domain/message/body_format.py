"""Recognise the format of a message body, and summarise the body in one line for people who may see payloads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from urllib.parse import parse_qsl, unquote_plus

from reprocessing.domain.message import json_view, xml_root
from reprocessing.domain.message.json_span import json_string_text
from reprocessing.domain.message.json_view import JsonValue, Unreadable
from reprocessing.domain.sources import celery_task, sns_notification
from reprocessing.domain.sources.celery_task import TaskMessage
from reprocessing.domain.sources.sns_notification import Notification

_PART, _NAMES, _FIELDS = 100, 6, 1_000  # max characters of a part, names in a summary, fields of a form
_FORM: Final = re.compile(r"(?:[\w.~%+*\[\]-]++=[^\s&=<>{}\"]*+)(?:&[\w.~%+*\[\]-]++=[^\s&=<>{}\"]*+)*+", re.ASCII)
_MAGIC: Final = {
    b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"\x28\xb5\x2f\xfd": "zstd", b"%PDF": "PDF", b"\x89PNG": "PNG",
    b"Obj\x01": "Avro", b"\xac\xed\x00\x05": "serialised Java", b"\x80\x04": "pickled Python",
}  # fmt: skip


class BodyFormat(StrEnum):
    """The formats of message bodies that are recognised."""

    TASK = "Celery task"
    SNS = "SNS notification"
    EVENT = "EventBridge event"
    S3 = "S3 notification"
    JSON = "JSON"
    FORM = "form"
    XML = "XML"
    TEXT = "text"
    BINARY = "bytes"


@dataclass(frozen=True, slots=True)
class BodySummary:
    """The format of a message body, and a summary in one line that quotes the body."""

    body_format: BodyFormat
    summary: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.body_format}: {self.summary}" if self.summary else self.body_format.value


def recognise(body: bytes) -> BodySummary:
    """Return a body's format and summary, in linear time. Never raises."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        looks = next((what for magic, what in _MAGIC.items() if body.startswith(magic)), "")
        return BodySummary(BodyFormat.BINARY, f"looks like {looks}" if looks else "")
    document = json_view.read(body)
    # Celery tasks come before JSON, because a task is usually base64 of JSON.
    if isinstance(task := celery_task.read(body, document), TaskMessage):
        return _of_task(task)
    if not isinstance(document, Unreadable):
        return _of_json(body, document)
    if (root := xml_root.root(text)) and text.rstrip().endswith(">"):
        return BodySummary(BodyFormat.XML, f"its root is {root}")
    if fields := form_fields(text):
        return BodySummary(BodyFormat.FORM, _named([name for name, _ in fields]))
    return BodySummary(BodyFormat.TEXT, "")


def form_fields(text: str) -> list[tuple[str, str]]:
    """Return names and values of a form in the format of browsers (a=1&b=2); empty if the text is not a form."""
    if not _FORM.fullmatch(text.strip()):
        return []
    try:
        return parse_qsl(text.strip(), keep_blank_values=True, max_num_fields=_FIELDS)
    except ValueError:
        return []


def _of_json(body: bytes, document: JsonValue) -> BodySummary:
    match document:
        case {"Type": "Notification", "TopicArn": str()} if isinstance(
            sns := sns_notification.read(body), Notification
        ):
            return BodySummary(BodyFormat.SNS, f"topic {_short(sns.topic.rpartition(':')[2])}{_within(sns)}")
        case {"detail-type": str(what), "source": str(source), "detail": dict()}:
            return BodySummary(BodyFormat.EVENT, f"{_short(what)}, from {_short(source)}")
        case {"Records": [{"eventSource": "aws:s3", "eventName": str(what), "s3": dict(where)}, *others]}:
            more = f" and {len(others)} more" if others else ""
            return BodySummary(BodyFormat.S3, f"{_short(what)}, {_object(where)}{more}")
        case {"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": str(bucket)}:
            return BodySummary(BodyFormat.S3, f"a test event, bucket {_short(bucket)}")
        case _:
            names = _named(list(document)) if isinstance(document, dict) else ""
            return BodySummary(BodyFormat.JSON, f"a list of {len(document):,}" if isinstance(document, list) else names)


def _of_task(task: TaskMessage) -> BodySummary:
    retried = f", retried {task.retries} time{'' if task.retries == 1 else 's'}" if task.retries else ""
    return BodySummary(BodyFormat.TASK, f"{_short(task.task) or 'its name is not shown'}{retried}")


def _within(found: Notification) -> str:
    message = json_string_text(found.fields.get("Message"))
    document = json_view.read(message.encode()) if message else None
    if not isinstance(document, dict) or document.get("Type") == "Notification":
        return ""
    inner = _of_json((message or "").encode(), document)
    return f", holding {inner}" if inner.body_format is not BodyFormat.JSON else ""


def _object(where: Mapping[str, JsonValue]) -> str:
    match where:
        case {"bucket": {"name": str(bucket)}, "object": {"key": str(key)}}:
            return f"bucket {_short(bucket)}, key {_short(unquote_plus(key))}"
        case _:
            return "no object is named"


def _named(names: list[str]) -> str:
    if not names:
        return "no fields"
    shown = ", ".join(_short(name) for name in names[:_NAMES])
    return f"{len(names)} field{'' if len(names) == 1 else 's'}: {shown}{', …' if len(names) > _NAMES else ''}"


def _short(text: str) -> str:
    return text if len(text) <= _PART else f"{text[:_PART]}…"
