"""The reporter sends what it can, and does its consumer no harm when it cannot."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from reprocessing.reasons import Counts, InvalidEndpoint, Names, Reporter, names_of, reporting
from reprocessing.reasons import client as reasons_client
from tests.conditions import eventually
from tests.reprocessing.reasons.stub import Stub

SOURCES = Path(__file__).resolve().parents[3]
TOKEN = "rt_0123456789"
MARK = "0b5c6a7e-1111-4222-8333-444455556666:2"
MESSAGE: dict[str, Any] = {
    "MessageId": "m-1", "MessageAttributes": {"RedriveId": {"DataType": "String", "StringValue": MARK}},
}  # fmt: skip
FOR_GOOD = 600.0  #: seconds for which an endpoint hangs; longer than the time limit of a test


@pytest.fixture
def reporter(stub: Stub) -> Iterator[Reporter]:
    one = Reporter(stub.url, TOKEN, every=0.02, timeout=10, clock=lambda: 1_800_000_000.25)
    yield one
    stub.let_go.set()
    one.close(within=5)


def broken(words: str = "no stock") -> ValueError:
    def work() -> None:
        raise ValueError(words)

    try:
        work()
    except ValueError as error:
        return error
    raise AssertionError("it was not raised")


def heard(stub: Stub, number: int) -> list[dict[str, Any]]:
    eventually(lambda: len(stub.reports) >= number, within=10)
    return stub.reports


def test_a_report_has_all_that_is_known(stub: Stub, reporter: Reporter) -> None:
    reporter.report("failed", Names("m-1", MARK), broken())
    reporter.report("delivered", Names("m-1"))
    first, second = heard(stub, 2)
    assert re.fullmatch("[0-9a-f]{16}", first.pop("fingerprint"))
    at = "2027-01-15T08:00:00.250000+00:00"
    assert first == {
        "message_id": "m-1", "redrive_id": MARK, "verdict": "failed", "type": "ValueError", "message": "no stock",
        "at": at,
    }  # fmt: skip
    assert second == {"message_id": "m-1", "verdict": "delivered", "at": at}
    headers = stub.asked[0]["headers"]
    assert (stub.asked[0]["path"], headers["authorization"], headers["content-type"]) == (
        "/reports", f"Bearer {TOKEN}", "application/json",
    )  # fmt: skip


def test_reports_are_sent_in_batches_and_in_order(stub: Stub) -> None:
    reporter = Reporter(stub.url, TOKEN, batch=100, every=5)
    for number in range(250):
        reporter.report("delivered", Names(f"m-{number}"))
    reporter.close(within=10)
    first, *others = [len(batch) for batch in stub.batches]  # the first report waits for no other
    assert max(first, *others) == 100
    assert len(others) <= 3
    assert [one["message_id"] for one in stub.reports] == [f"m-{number}" for number in range(250)]
    assert reporter.counts == Counts(taken=250, accepted=250)


def test_a_batch_is_smaller_than_the_endpoint_accepts(stub: Stub) -> None:
    reporter = Reporter(stub.url, TOKEN, every=5)
    for _ in range(100):
        reporter.report("failed", Names("m-1"), broken("\x01" * 2_000))  # six bytes each, in JSON
    reporter.close(within=10)
    assert len(stub.reports) == 100
    assert max(int(one["headers"]["content-length"]) for one in stub.asked) < 600 * 1024


@pytest.mark.parametrize(
    ("status", "answer", "refused"),
    [
        (200, b'{"accepted": 0, "repeated": 0, "refused": [{"index": 0, "why": "foreign"}]}', 1),
        (400, b"", 1), (413, b"", 1), (422, b"", 1),
        (200, b"", 0), (200, b"[]", 0), (200, b"{}", 0), (200, b'{"refused": 5}', 0), (200, b"\xff", 0),
    ],
)  # fmt: skip
def test_refused_reports_are_counted_and_given_up_and_an_unreadable_answer_refuses_none(
    stub: Stub, reporter: Reporter, status: int, answer: bytes, refused: int
) -> None:
    stub.status, stub.answer = status, answer
    reporter.report("delivered", Names("m-1"))
    eventually(lambda: reporter.counts.refused + reporter.counts.accepted, within=10)
    stub.status, stub.answer = 200, b"{}"
    reporter.report("delivered", Names("m-2"))
    eventually(lambda: reporter.counts.refused + reporter.counts.accepted == 2, within=10)
    assert reporter.counts == Counts(taken=2, refused=refused, accepted=2 - refused)
    assert [one["message_id"] for one in stub.reports] == ["m-1", "m-2"]


@pytest.mark.parametrize("status", [301, 307, 401, 404, 429, 500, 503])
def test_a_batch_that_was_not_accepted_is_sent_again_without_following_redirects(
    stub: Stub, reporter: Reporter, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporter, "_rest", lambda _: 0.01)
    stub.status, stub.headers = status, {"Location": stub.url + "/elsewhere"}
    reporter.report("delivered", Names("m-1"))
    eventually(lambda: len(stub.asked) >= 2, within=10)
    stub.status = 200
    eventually(lambda: reporter.counts.accepted, within=10)
    assert {one["path"] for one in stub.asked} == {"/reports"}
    assert len({json.dumps(one["body"]) for one in stub.asked}) == 1


def test_the_backoff_doubles_up_to_a_minute_with_jitter(stub: Stub) -> None:
    reporter = Reporter(stub.url, TOKEN)
    for unheard, longest in [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (10_000, 60)]:
        rests = [reporter._rest(unheard) for _ in range(50)]
        assert all(longest / 2 <= rest <= longest for rest in rests)
        assert len(set(rests)) > 1


def unused_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.mark.parametrize("trouble", ["down", "hangs", "answers 500", "slow name"])
def test_report_never_waits_for_an_endpoint_that(stub: Stub, trouble: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stub.hangs, stub.status = trouble == "hangs", 500
    url = f"http://127.0.0.1:{unused_port()}/" if trouble == "down" else stub.url
    if trouble == "slow name":
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: stub.let_go.wait(FOR_GOOD))
    reporter = Reporter(url, TOKEN, capacity=50, every=0, timeout=FOR_GOOD)
    for _ in range(500):
        reporter.report("failed", Names("m-1"), broken())
    counts = reporter.counts
    assert counts.taken + counts.dropped == 500
    assert 50 <= counts.taken <= 50 + 100  # those that wait, and the batch that the thread holds
    reporter.close(within=0)


def test_a_closed_reporter_sends_waiting_reports_and_takes_no_more(stub: Stub) -> None:
    reporter = Reporter(stub.url, TOKEN, every=60)
    reporter.report("delivered", Names("m-1"))
    reporter.close(within=10)
    reporter.report("delivered", Names("m-2"))
    assert [one["message_id"] for one in stub.reports] == ["m-1"]
    assert reporter.counts == Counts(taken=1, accepted=1, dropped=1)


def test_close_ends_a_backoff_with_one_more_try(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    stub.status = 500
    reporter = Reporter(stub.url, TOKEN)
    rests: list[int] = []

    def rest(unheard: int) -> float:
        rests.append(unheard)
        return 60.0

    monkeypatch.setattr(reporter, "_rest", rest)
    reporter.report("delivered", Names("m-1"))
    eventually(lambda: rests, within=10)
    stub.status = 200
    reporter.close(within=10)
    assert reporter.counts == Counts(taken=1, accepted=1)


def test_reports_that_cannot_be_sent_at_the_end_are_counted_and_nothing_without_a_url(stub: Stub) -> None:
    stub.status = 500
    reporter, without_a_url = Reporter(stub.url, TOKEN, batch=1, every=0), Reporter("", "")
    for _ in range(3):
        reporter.report("delivered", Names("m-1"))
        without_a_url.report("failed", Names("m-1"), broken())
    reporter.close(within=10)
    assert reporter.counts == Counts(taken=3, dropped=3)
    assert (without_a_url.counts, without_a_url._thread) == (Counts(), None)


def test_texts_can_be_left_out_and_scrubbed(stub: Stub) -> None:
    def scrub(text: str) -> str:
        return re.sub(r"\d{4}-\d{4}", "****", text)

    options: list[dict[str, Any]] = [{"message": False}, {"scrub": scrub}, {"scrub": lambda _: 1 / 0}]
    for one in options:
        reporter = Reporter(stub.url, TOKEN, every=0, **one)
        reporter.report("failed", Names("m-1"), broken("card 4111-1111"))
        reporter.close(within=10)
    assert [one.get("message") for one in stub.reports] == [None, "card ****", "(its text could not be read)"]


def test_a_thread_that_cannot_be_started_is_no_error(
    stub: Stub, reporter: Reporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(_: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", none_left)
        reporter.report("delivered", Names("m-1"))
    reporter.report("delivered", Names("m-2"))
    assert [one["message_id"] for one in heard(stub, 2)] == ["m-1", "m-2"]


@pytest.mark.parametrize(
    ("url", "token"),
    [
        ("redrive.example.com", TOKEN), ("ftp://redrive.example.com/", TOKEN), ("https://", TOKEN),
        ("https://me:secret@redrive.example.com/", TOKEN), ("https://redrive.example.com:port/", TOKEN),
        ("https://redrive.example.com/\r\nX: 1", TOKEN), ("https://[::1/", TOKEN),
        ("https://redrive.example.com/", ""), ("https://redrive.example.com/", "a b"),
        ("https://redrive.example.com/", "a\nb"),
    ],
)  # fmt: skip
def test_an_invalid_url_or_token_is_refused_at_once_and_not_quoted(url: str, token: str) -> None:
    with pytest.raises(InvalidEndpoint) as refused:
        Reporter(url, token)
    assert "secret" not in str(refused.value)


def test_a_forked_process_sends_its_own_reports_once(stub: Stub) -> None:
    reporter = Reporter(stub.url, TOKEN, every=5)
    reporter.report("delivered", Names("parent"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads at every fork
        child = os.fork()
    if child == 0:
        with suppress(BaseException):
            reporter.report("delivered", Names("child"))
            reporter.close(within=10)
        os._exit(0 if reporter.counts == Counts(taken=1, accepted=1) else 1)
    _, status = os.waitpid(child, 0)
    reporter.close(within=10)
    assert os.waitstatus_to_exitcode(status) == 0
    assert sorted(one["message_id"] for one in stub.reports) == ["child", "parent"]


#: A process that sends one report and ends: `python -c PROCESS URL [hangs]`.
PROCESS = """
import sys
from reprocessing.reasons import Names, Reporter, client
client.FLUSH_AT_EXIT = 2 if sys.argv[2:] else 10
Reporter(sys.argv[1], "token", timeout=30).report("delivered", Names("m-1"))
assert not {"django", "celery"} & set(sys.modules)
"""


@pytest.mark.soak
@pytest.mark.parametrize("hangs", [False, True])
def test_a_process_sends_waiting_reports_at_exit_if_it_can(stub: Stub, tmp_path: Path, *, hangs: bool) -> None:
    stub.hangs = hangs
    shutil.copytree(SOURCES / "reprocessing/reasons", tmp_path / "reprocessing/reasons")
    shutil.copy(SOURCES / "reprocessing/__init__.py", tmp_path / "reprocessing")
    subprocess.run(
        [sys.executable, "-c", PROCESS, stub.url, *(["hangs"] if hangs else [])], cwd=tmp_path, check=True, timeout=15
    )
    eventually(lambda: stub.reports, within=10)
    assert [one["message_id"] for one in stub.reports] == ["m-1"]


def test_all_reporters_share_the_time_at_exit(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    stub.hangs = True
    reporters = [Reporter(stub.url, TOKEN, every=0, timeout=FOR_GOOD) for _ in range(4)]
    for one in reporters:
        one.report("delivered", Names("m-1"))
    heard(stub, 4)
    monkeypatch.setattr(reasons_client, "FLUSH_AT_EXIT", 0.1)
    monkeypatch.setattr(reasons_client, "_reporters", reporters)
    reasons_client._close_all()
    assert not stub.let_go.is_set()


@pytest.mark.parametrize(
    ("error", "options", "reported"),
    [
        (ValueError("no stock"), {}, [("m-1", MARK, "retrying", "no stock")]),
        (ValueError("no stock"), {"final": True}, [("m-1", MARK, "failed", "no stock")]),
        (KeyError("busy"), {}, []),  # is ignored
        (SystemExit(), {}, []),  # is no failure of the message
        (None, {}, []),
        (None, {"acknowledges": True}, [("m-1", MARK, "delivered", None)]),
        (None, {"message": None, "redrive_id": MARK, "acknowledges": True}, [(None, MARK, "delivered", None)]),
        (ValueError("no stock"), {"message": None}, []),  # has no ids
    ],
)
def test_the_end_of_a_block_is_reported_and_its_error_raised(
    stub: Stub, error: BaseException | None, options: dict[str, Any], reported: list[object]
) -> None:
    reporter = Reporter(stub.url, TOKEN, ignores=(LookupError,))
    with pytest.raises(type(error)) if error else nullcontext(), reporting(reporter, **{"message": MESSAGE, **options}):
        if error:
            raise error
    reporter.close(within=10)
    names = ("message_id", "redrive_id", "verdict", "message")
    assert [tuple(one.get(name) for name in names) for one in stub.reports] == reported
    has_ids = options.get("message", MESSAGE) or options.get("redrive_id")
    assert reporter.counts == Counts(taken=len(reported), accepted=len(reported), nameless=0 if has_ids else 1)


@pytest.mark.parametrize("foreign", [{"StringValue": "17"}, {"BinaryValue": b"17"}, {}, None])
def test_a_foreign_attribute_is_no_redrive_id(foreign: object) -> None:
    message = {"MessageId": "m-1", "MessageAttributes": {"RedriveId": foreign}}
    assert names_of(message) == Names("m-1")
