"""What the call log keeps, and what a reader gets of it."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest

from redrive_service.sandbox.sqs.api.call_record import Record, Sent
from redrive_service.sandbox.sqs.call_log import calls as module
from redrive_service.sandbox.sqs.call_log.call_file import CallFile, CallLogIsUnusable
from redrive_service.sandbox.sqs.call_log.calls import MOST_CALLS, PAGE, Call, CallLog

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


@pytest.fixture
def log() -> Iterator[CallLog]:
    made = CallLog(most=300)
    yield made
    made.close()


def add(log: CallLog, count: int, action: str = "A") -> None:
    for _ in range(count):
        log.add(
            Call(at=0, action=action, queue=None, status=200, code=None, fault=None, answered=True, record=Record())
        )


def read(log: CallLog, since: int | None = None, action: str | None = None) -> tuple[list[int], int, int, int]:
    """Numbers of the calls, next, first and end."""
    shown = orjson.loads(orjson.dumps(log.shown(since=since, action=action)))
    return [call["n"] for call in shown["calls"]], shown["next"], shown["first"], shown["end"]


def test_a_call_is_shown_as_it_was(log: CallLog) -> None:
    add(log, 1)
    about: dict[str, object] = {"sent": [], "received": [], "deleted": [], "dead_lettered": []}
    common = {"n": 0, "at": 0, "action": "A", "queue": None, "status": 200, "code": None, "fault": None}
    assert orjson.loads(orjson.dumps(log.shown()))["calls"] == [{**common, **about, "answered": True}]


def test_a_temporary_file_keeps_all_that_a_given_one_tells(log: CallLog, tmp_path: Path) -> None:
    record = Record(
        sent=[
            Sent("id", "g", "d", "18870000000000000256", "md5", {"s": "é"}, duplicate=True),
            Sent(None, None, None, None, None, {}, accepted=False, code="InternalError"),
        ],
        received=[("id", 2, True)],
        deleted=[(None, False), ("id", True)],
        dead_lettered=[("id", "q", "dlq")],
    )
    with (tmp_path / "calls").open("a+b", buffering=0) as file:
        for kept in (log, CallLog(file=file)):
            kept.add(
                Call(at=1.5, action="A", queue="q", status=None, code="C", fault="hang", answered=False, record=record)
            )
    line = (tmp_path / "calls").read_bytes()
    assert orjson.dumps(log.shown()["calls"]) == b"[%b]" % line.removesuffix(b"\n")
    assert (b'"s":"\xc3\xa9"' in line, b'"deleted":[{"message_id":null' in line) == (True, True)


@pytest.mark.parametrize("since", [0, 1, 127, 128, 129, 255, 256, 299, 300, 301, 400, 10_000])
def test_the_log_is_read_from_any_number_on(log: CallLog, since: int) -> None:
    add(log, 400)
    assert read(log, since=since) == (list(range(min(since, 400), 400)), 400, 0, 400)


def test_the_oldest_calls_make_room(log: CallLog) -> None:
    add(log, 1_000)
    assert read(log, since=0) == (list(range(600, 1_000)), 1_000, 600, 1_000)


def test_without_a_file_a_million_calls_are_kept() -> None:
    assert MOST_CALLS == 1_000_000


def open_files() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


def test_full_files_are_closed_and_memory_does_not_grow(log: CallLog) -> None:
    before = open_files()
    add(log, 3_000)
    after = open_files()
    assert after <= before + 1


def test_too_many_bytes_make_room_too(log: CallLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 1)
    add(log, 5)
    assert read(log, since=0) == ([3, 4], 5, 3, 5)


def test_a_given_file_keeps_all(tmp_path: Path) -> None:
    with (tmp_path / "calls").open("a+b", buffering=0) as file:
        log = CallLog(file=file, most=300)
        add(log, 1_000)
        assert read(log, since=0) == (list(range(1_000)), 1_000, 0, 1_000)
        assert read(log, since=0, action="B") == ([], 1_000, 0, 1_000)
        log.clear()
        add(log, 1)
        assert read(log, since=0) == ([1_000], 1_001, 1_000, 1_001)
    assert len((tmp_path / "calls").read_bytes().splitlines()) == 1_001


@pytest.mark.soak
def test_a_page_ends_when_it_is_full_and_the_next_goes_on() -> None:
    log = CallLog()
    add(log, PAGE + 5)
    assert read(log, since=0)[1:] == (PAGE, 0, PAGE + 5)
    assert read(log, since=PAGE) == (list(range(PAGE, PAGE + 5)), PAGE + 5, 0, PAGE + 5)
    assert read(log)[0][0] == 5
    add(log, 1, "B")
    assert read(log, since=0, action="B") == ([], PAGE, 0, PAGE + 6)
    assert read(log, since=PAGE, action="B") == ([PAGE + 5], PAGE + 6, 0, PAGE + 6)
    log.close()


def test_a_page_of_large_calls_ends_early(log: CallLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE_BYTES", 1)
    add(log, 3)
    assert read(log, since=1) == ([1], 2, 0, 3)


@pytest.mark.parametrize(("calls", "since", "place"), [(290, 260, 256), (400, 350, 300)], ids=["one file", "two files"])
def test_reading_on_reads_nothing_of_what_was_before(
    log: CallLog, monkeypatch: pytest.MonkeyPatch, calls: int, since: int, place: int
) -> None:
    add(log, calls)
    places = []
    pread = os.pread

    def watched(number: int, size: int, place: int) -> bytes:
        content = pread(number, size, place)
        places.append(Call.read(content.splitlines()[0]).n)
        return content

    monkeypatch.setattr(os, "pread", watched)
    assert read(log, since=since)[0] == list(range(since, calls))
    assert places == [place]


def test_forgotten_calls_are_gone_and_numbers_go_on(log: CallLog) -> None:
    add(log, 700)
    log.clear()
    assert read(log, since=0) == ([], 700, 700, 700)
    add(log, 2)
    assert read(log, since=0) == ([700, 701], 702, 700, 702)


def test_forgotten_calls_take_no_room(log: CallLog) -> None:
    before = open_files()
    add(log, 700)
    log.clear()
    assert open_files() <= before


class NearlyFull(io.BytesIO):
    """A file on a disk that takes only the beginning of what is written, or nothing any more."""

    def write(self, data: ReadableBuffer) -> int:
        return super().write(bytes(data)[:10])

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_line_that_is_written_in_part_is_no_line() -> None:
    log = CallLog(file=NearlyFull())
    with pytest.raises(CallLogIsUnusable, match=r"^The call log cannot be written: the disk is full\.$"):
        add(log, 1)


def test_a_log_that_cannot_be_written_when_it_is_read_says_so() -> None:
    with pytest.raises(CallLogIsUnusable, match=r"^The call log cannot be written: No space left on device\.$"):
        list(CallFile(NearlyFull(), 0).lines(0))
