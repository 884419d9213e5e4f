"""The call log: what was asked, what was answered, and which messages it was about."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

import orjson

from redrive_service.sandbox.sqs.account import Record, Sent

DEFAULT_LIMIT: Final = 20_000


@dataclass(slots=True, kw_only=True)
class Call:
    """One call. `at` is the injected clock; `status` is None when nothing was done.

    `answered` is false when the client never got an answer.
    """

    at: float
    action: str
    queue: str | None
    status: int | None
    code: str | None
    fault: str | None
    answered: bool
    record: Record
    n: int = 0

    def shown(self) -> dict[str, object]:
        """The call as JSON has it."""
        record = self.record
        return {
            "n": self.n,
            "at": self.at,
            "action": self.action,
            "queue": self.queue,
            "status": self.status,
            "code": self.code,
            "fault": self.fault,
            "answered": self.answered,
            "sent": [_show_sent(sent) for sent in record.sent],
            "received": [{"message_id": name, "receive_count": count} for name, count in record.received],
            "deleted": [{"message_id": message_id} for message_id in record.deleted],
        }


class CallLog:
    """The latest calls, numbered from 0 on; a file, if given, gets all of them as JSON lines."""

    def __init__(self, *, limit: int = DEFAULT_LIMIT, file: BinaryIO | None = None) -> None:
        self._calls: deque[Call] = deque(maxlen=limit)
        self._next = 0
        self._file = file

    def add(self, call: Call) -> None:
        """Numbers the call and keeps it."""
        call.n = self._next
        self._next += 1
        self._calls.append(call)
        if self._file is not None:
            self._file.write(orjson.dumps(call.shown(), option=orjson.OPT_APPEND_NEWLINE))

    def clear(self) -> None:
        """Forgets the calls; numbers go on."""
        self._calls.clear()

    def shown(self, *, since: int = 0, action: str | None = None, queue: str | None = None) -> dict[str, object]:
        """The calls numbered `since` or later that match, and the number to ask from `next` time."""
        calls = [call.shown() for call in self._since(since) if _matches(call, action, queue)]
        return {"calls": calls, "next": self._next}

    def _since(self, since: int) -> Iterator[Call]:
        return (call for call in self._calls if call.n >= since)


def _matches(call: Call, action: str | None, queue: str | None) -> bool:
    return action in (None, call.action) and queue in (None, call.queue)


def _show_sent(sent: Sent) -> dict[str, object]:
    message_id, group, deduplication_id, sequence_number, md5, attributes = sent
    return {
        "message_id": message_id,
        "group": group,
        "deduplication_id": deduplication_id,
        "sequence_number": sequence_number,
        "md5": md5,
        "attributes": {name: value["StringValue"] for name, value in attributes.items() if "StringValue" in value},
    }
