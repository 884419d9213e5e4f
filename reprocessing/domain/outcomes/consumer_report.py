"""Read a consumer's report about one message from JSON, with length limits, or say why the report is not valid."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

VERDICTS: Final = ("delivered", "failed", "retrying")
#: Max characters of fields of a report. Longer types and messages are cut; longer fingerprints and ids are refused.
TYPE_LENGTH, MESSAGE_LENGTH, FINGERPRINT_LENGTH, MESSAGE_ID_LENGTH = 200, 2_000, 128, 200

_FIELDS: Final = ("message_id", "redrive_id", "verdict", "type", "message", "fingerprint", "at")
_REDRIVE_ID = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?::([1-9][0-9]{0,8}))?")
_NO_TEXT = re.compile("[\0\ud800-\udfff]")  # characters that PostgreSQL cannot store
_SHOWN = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerReport:
    """One report of a consumer about the outcome of one message.

    Attributes:
        verdict: delivered, failed or retrying.
        message_id: SQS's id of the message that the consumer received; None if the report has only the redrive id.
        public_id: the redrive id; None if the report has only the message id.
        attempt_no: the number of the attempt; None: not reported.
        type, message: the failure's type and text; empty: not reported.
        fingerprint: a text that is equal for failures with the same cause; empty: not reported.
        at: when the message succeeded or failed; None: not reported.
    """

    verdict: str
    message_id: str | None = None
    public_id: UUID | None = None
    attempt_no: int | None = None
    type: str = ""
    message: str = ""
    fingerprint: str = ""
    at: datetime | None = None

    def digest(self, reporter: int | None) -> bytes:
        """Return the SHA-256 of all fields and the reporter's id, by which a repeated report is recognised.

        `reporter` is None for a consumer that writes its reports into this database.
        """
        at = self.at.isoformat() if self.at else None
        named = (reporter, self.message_id, str(self.public_id), self.attempt_no)
        values = (*named, self.verdict, self.type, self.message, self.fingerprint, at)
        return hashlib.sha256(json.dumps(values).encode()).digest()


@dataclass(frozen=True, slots=True)
class InvalidReport:
    """The report is not valid. `why` contains names of fields, but no values."""

    why: str


def read(given: object) -> ConsumerReport | InvalidReport:
    """Return the report that parsed JSON describes, or why the report is not valid. Never raises."""
    if not isinstance(given, Mapping):
        return InvalidReport("it is not an object")
    if unknown := sorted(ascii(str(name)[:_SHOWN])[:_SHOWN] for name in given if name not in _FIELDS):
        return InvalidReport(f"it has unknown fields: {', '.join(unknown[:5])}")
    texts = {name: given.get(name) for name in _FIELDS if given.get(name) is not None}
    for name, value in texts.items():
        if not isinstance(value, str):
            return InvalidReport(f"{name} is not a text")
    return _read({name: _NO_TEXT.sub("\ufffd", str(value)) for name, value in texts.items()})


def _read(texts: Mapping[str, str]) -> ConsumerReport | InvalidReport:
    mark = _REDRIVE_ID.fullmatch(texts.get("redrive_id", "").lower())
    at = _moment(texts.get("at", ""))
    if why := _objection(texts, marked=mark is not None, timed=at is not None):
        return InvalidReport(why)
    return ConsumerReport(
        verdict=texts["verdict"], message_id=texts.get("message_id") or None,
        public_id=UUID(mark[1]) if mark else None, attempt_no=int(mark[2]) if mark and mark[2] else None,
        type=texts.get("type", "")[:TYPE_LENGTH], message=texts.get("message", "")[:MESSAGE_LENGTH],
        fingerprint=texts.get("fingerprint", ""), at=at,
    )  # fmt: skip


def _objection(texts: Mapping[str, str], *, marked: bool, timed: bool) -> str:
    """Return what is wrong with a report's fields; "": nothing.

    `marked`: whether the report's redrive id could be parsed. `timed`: whether the report's time could be parsed.
    """
    if texts.get("verdict") not in VERDICTS:
        return f"verdict is not one of {', '.join(VERDICTS)}"
    if not texts.get("message_id") and not texts.get("redrive_id"):
        return "it names no message; give message_id, redrive_id, or both"
    if texts.get("redrive_id") and not marked:
        return "redrive_id is not a UUID, with or without a colon and the number of the attempt"
    if texts.get("at") and not timed:
        return "at is not a time in ISO 8601, such as 2026-03-01T08:00:00Z"
    for name, longest in (("message_id", MESSAGE_ID_LENGTH), ("fingerprint", FINGERPRINT_LENGTH)):
        if len(texts.get(name, "")) > longest:
            return f"{name} is longer than {longest} characters"
    return ""


def _moment(text: str) -> datetime | None:
    try:
        value = datetime.fromisoformat(text)
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
