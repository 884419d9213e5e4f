"""The call log: every request, its answer, and what it did with messages, in a given file or in temporary files."""

from collections.abc import Iterator
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import BinaryIO, Final, cast

import orjson

from redrive_service.sandbox.sqs.api.call_record import Record, Sent
from redrive_service.sandbox.sqs.call_log.call_file import CallFile

# Max calls and bytes of a temporary file. When the second temporary file is full, the first is deleted.
MOST_CALLS: Final = 1_000_000
MOST_BYTES: Final = 1024 * 1024 * 1024
# Bytes after which calls in memory are written to a temporary file.
_BUFFER: Final = 256 * 1024
# Max calls in one answer, and the bytes after which an answer ends.
PAGE: Final = 20_000
PAGE_BYTES: Final = 32 * 1024 * 1024


@dataclass(slots=True)
class Call:
    """One call of the API.

    Attributes:
        at: seconds since 1970 on the server's clock.
        status: HTTP status, or None if the call was not executed.
        code: code of the error, or None.
        fault: kind of the fault that affected the call on purpose, or None.
        answered: whether the client got an answer.
        record: what the call did with messages.
        n: number of the call.
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

    def written(self) -> bytes:
        """Return the call as a line of a temporary file, in a format that is fast to write and that `read` reads."""
        record = self.record
        fields = (
            self.n, self.at, self.action, self.queue, self.status, self.code, self.fault, self.answered,
            record.sent, record.received, record.deleted, record.dead_lettered,
        )  # fmt: skip
        return orjson.dumps(fields, default=tuple)  # orjson does not write a `Sent` as a list

    @classmethod
    def read(cls, line: bytes) -> "Call":
        """Return the call in a line that `written` made."""
        n, at, action, queue, status, code, fault, answered, sent, *rest = orjson.loads(line)
        record = Record(None, [Sent(*fields) for fields in sent], *rest)
        return cls(at, action, queue, status, code, fault, answered, record, n)

    def line(self) -> bytes:
        """Return the call as one line of JSON, in the form that docs/local_sqs.md describes."""
        record = self.record
        shown = {
            "n": self.n,
            "at": self.at,
            "action": self.action,
            "queue": self.queue,
            "status": self.status,
            "code": self.code,
            "fault": self.fault,
            "answered": self.answered,
            "sent": [Sent(*sent)._asdict() for sent in record.sent],
            "received": [
                {"message_id": message_id, "receive_count": count, "extra": extra}
                for message_id, count, extra in record.received
            ],
            "deleted": [{"message_id": message_id, "took_effect": done} for message_id, done in record.deleted],
            "dead_lettered": [
                {"message_id": message_id, "from": source, "to": target}
                for message_id, source, target in record.dead_lettered
            ],
        }
        return orjson.dumps(shown)


class CallLog:
    """The calls, numbered from 0. They are on disk, so that memory does not grow with their number.

    If a file is given, every call is at once appended to the file. Without a file, temporary files keep at least the
    latest million calls, or the latest GiB, until the server ends. The format of temporary files is fast to write. It
    is converted to the format of docs/local_sqs.md when somebody reads the call log.
    """

    def __init__(self, *, file: BinaryIO | None = None, most: int = MOST_CALLS) -> None:
        self._given = file is not None
        self._most = most
        self._stretches = [CallFile(file or _temporary(), 0)]
        self._first = self._next = 0

    def add(self, call: Call) -> None:
        """Store the call with the next number."""
        call.n = self._next
        latest = self._stretches[-1]
        if not self._given and (latest.count >= self._most or latest.size >= MOST_BYTES):
            latest = self._turn_over()
        latest.append((call.line() if self._given else call.written()) + b"\n")
        self._next += 1

    def clear(self) -> None:
        """Remove all calls. Numbers continue, and a given file keeps its content."""
        self._first = self._next
        if not self._given:
            self._turn_over()
            self._stretches.pop(0).close()

    def close(self) -> None:
        """Close the files of the call log."""
        for stretch in self._stretches:
            stretch.close()

    def shown(
        self, *, since: int | None = None, action: str | None = None, queue: str | None = None
    ) -> dict[str, object]:
        """Return a page of the calls numbered `since` or later (default: the latest page) that match the filters.

        In the result, `next` is the value of `since` for the next page. `first` is the number of the oldest stored
        call. `end` is the number that the next call will get. If `next` equals `end`, this was the last page.
        """
        begin = max(self._first, self._next - PAGE) if since is None else min(max(since, self._first), self._next)
        calls, seen, size = [], 0, 0
        for kept in self._lines(begin):
            line = self._matching_line(kept, action, queue)
            if line is not None:
                calls.append(orjson.Fragment(line))
            seen += 1
            size += len(line or kept)
            if seen >= PAGE or size >= PAGE_BYTES:
                break
        return {"calls": calls, "next": begin + seen, "first": self._first, "end": self._next}

    def _matching_line(self, kept: bytes, action: str | None, queue: str | None) -> bytes | None:
        """Return a stored call as a JSON line (docs/local_sqs.md), or None if it does not match the filters."""
        if not self._given:
            call = Call.read(kept)
            return call.line() if action in (None, call.action) and queue in (None, call.queue) else None
        if action is queue is None:
            return kept
        call = orjson.loads(kept)
        return kept if action in (None, call["action"]) and queue in (None, call["queue"]) else None

    def _lines(self, since: int) -> Iterator[bytes]:
        for stretch in self._stretches:
            if since < stretch.first + stretch.count:
                yield from stretch.lines(since)

    def _turn_over(self) -> CallFile:
        """Begin another temporary file. Of the older temporary files, keep only the latest."""
        while len(self._stretches) > 1:
            self._stretches.pop(0).close()
        self._first = max(self._first, self._stretches[0].first)
        self._stretches.append(CallFile(_temporary(), self._next))
        return self._stretches[-1]


def _temporary() -> BinaryIO:
    return cast("BinaryIO", TemporaryFile("w+b", buffering=_BUFFER))
