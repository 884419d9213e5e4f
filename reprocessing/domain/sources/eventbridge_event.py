"""Read an EventBridge event from a message in the DLQ of the event's target, to put the event on the bus again."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from reprocessing.domain.message.json_span import json_string_text, member_bytes
from reprocessing.domain.message.json_view import Unreadable

_BYTES_OF_A_TIME: Final = 14
_EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event to put on a bus. `detail` has the unchanged bytes of the event's JSON object.

    `attempt`: the attempt's id, by which the caller finds the outcome.
    """

    attempt: int
    source: str
    detail_type: str
    detail: bytes = field(repr=False)
    resources: tuple[str, ...] = ()
    time: datetime | None = None
    trace_header: str | None = None

    @property
    def size(self) -> int:
        """Return the event's size in bytes, as AWS counts it.

        https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevent-size.html
        """
        texts = (self.source, self.detail_type, *self.resources)
        return sum(len(text.encode()) for text in texts) + len(self.detail) + (_BYTES_OF_A_TIME if self.time else 0)


def read(body: bytes, *, attempt: int, trace_header: str | None = None) -> Event | Unreadable:
    """Return the event in a body (docs.aws.amazon.com/eventbridge/latest/userguide/eb-events-structure.html).

    The event's account, region and id are left out, because the bus assigns new values. `attempt`: the attempt's id.
    `trace_header`: the message's X-Ray header.
    """
    found = member_bytes(body)
    if isinstance(found, Unreadable):
        return found
    source, detail_type = json_string_text(found.get("source")), json_string_text(found.get("detail-type"))
    detail = found.get("detail", b"")
    if not source or not detail_type or not detail.startswith(b"{"):
        return Unreadable("it is not an EventBridge event: it lacks a source, a detail-type or a detail")
    resources = _resources(found.get("resources", b"[]"))
    moment = _moment(json_string_text(found.get("time")))
    if resources is None or isinstance(moment, Unreadable):
        return Unreadable(
            "it is not an EventBridge event: its resources are no list of texts, or its time is not valid"
        )
    return Event(
        attempt=attempt, source=source, detail_type=detail_type, detail=detail, resources=resources, time=moment,
        trace_header=trace_header,
    )  # fmt: skip


def _resources(raw: bytes) -> tuple[str, ...] | None:
    named = json.loads(raw, parse_int=float)  # int() refuses more than 4300 digits
    if not isinstance(named, list) or not all(isinstance(text, str) and _is_storable(text) for text in named):
        return None
    return tuple(named)


def _is_storable(text: str) -> bool:
    return json_string_text(json.dumps(text).encode()) is not None


def _moment(text: str | None) -> datetime | Unreadable | None:
    """Return the event's time; None: it has none. Return `Unreadable` for an invalid time, or a time before 1970.

    AWS refuses times before 1970.
    """
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        in_range = moment.astimezone(UTC) >= _EARLIEST
    except (ValueError, OverflowError):
        return Unreadable("its time is not valid")
    return moment if in_range else Unreadable("its time is not valid")
