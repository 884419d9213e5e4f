"""Whatever an endpoint does, a letter is posted once for each attempt, byte for byte; its outcome is what is known."""

from __future__ import annotations

import asyncio
import gc
from datetime import timedelta
from pathlib import Path

import pytest

from reprocessing.domain.replay.verdicts import NotSent, Outcome, Refused, Taken, Unknown
from reprocessing.domain.targets.async_sender import HttpCall
from reprocessing.domain.targets.http_responses import StatusMeanings, parse_answers
from reprocessing.gateways.http import Posts
from tests.conditions import eventually
from tests.contract.carriers import all_ended, always
from tests.reprocessing.gateways.http.posting import become, listed, post, posting
from tests.reprocessing.gateways.http.stand_in import (
    Asked,
    Reader,
    Script,
    StandIn,
    Writer,
    answers,
    hangs,
    pours,
    standing_in,
)
from tests.reprocessing.web_servers import BLANK, status

SECRET = "nobody-is-shown-this"
CLOSED = Unknown("the connection was closed before an answer")
ENDLESS = b"y" * 4_096  #: as much of a body as is read, again and again


async def breaks_off(_made: StandIn, _reader: Reader, writer: Writer, _asked: Asked) -> None:
    writer.close()


def outcome_of(script: Script, *, timeout: float = 30.0) -> Outcome:
    with standing_in({"here": script}) as there, posting(there.port) as posts:
        [outcome] = become(posts, post(there.port, f"/here?{SECRET}", timeout=timeout, body=SECRET.encode()))
        assert len(there.asked) == 1
        assert SECRET not in repr(outcome)
        return outcome


@pytest.mark.parametrize(
    "body", [b"x", b"\x00\xff\r\n\r\n\x1a", '{"größe": "½"}'.encode(), b"", b"z" * 3_000_000], ids=len
)
def test_a_body_arrives_byte_for_byte_at_once(body: bytes) -> None:
    with standing_in() as there, posting(there.port) as posts:
        assert become(posts, post(there.port, body=body)) == [Taken()]
        [asked] = there.asked
        assert asked.body == body
        assert asked.headers["content-length"] == str(len(body))
        assert "expect" not in asked.headers
        assert "transfer-encoding" not in asked.headers


def test_a_request_has_the_headers_it_was_given_and_nothing_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("http_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    (tmp_path / ".netrc").write_text("default login somebody password secret")
    monkeypatch.setenv("HOME", str(tmp_path))
    given = (("Content-Type", "text/plain; charset=latin-1"), ("X-Empty", ""), ("X-Latin", "caf\xe9"))
    with standing_in({"../.": answers(status(200))}) as there, posting(there.port) as posts:
        assert become(posts, post(there.port, "/.././/?a=b&c=/../d", headers=given)) == [Taken()]
        [asked] = there.asked
    assert asked.line == "POST /.././/?a=b&c=/../d HTTP/1.1"
    assert asked.headers == {
        "host": f"hooks.test:{there.port}", "user-agent": "redrive-service", "accept": "*/*", "content-length": "12",
        "content-type": "text/plain; charset=latin-1", "x-empty:": "", "x-latin": "caf\xe9",
    }  # fmt: skip


@pytest.mark.parametrize("body", [b"letter", b""], ids=["with a body", "without one"])
def test_a_used_connection_that_breaks_off_is_no_reason_to_send_a_letter_again(body: bytes) -> None:
    with standing_in({"broken": breaks_off}) as there, posting(there.port) as posts:
        assert become(posts, post(there.port)) == [Taken()]
        assert become(posts, post(there.port, "/broken", body=body)) == [CLOSED]
        assert [asked.connection for asked in there.asked] == [1, 1]


def test_a_used_connection_that_was_closed_meanwhile_is_not_used() -> None:
    with standing_in({"last": answers(status(200), closes=True)}) as there, posting(there.port) as posts:
        for _ in range(3):
            assert become(posts, post(there.port, "/last")) == [Taken()]
            eventually(lambda: not there.alive, within=2, every=0.001)
        assert [asked.connection for asked in there.asked] == [1, 2, 3]


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        (breaks_off, CLOSED),
        (answers(b"HTTP/1.1 200 OK\r\nContent-Le", closes=True), Unknown("the connection broke during its answer")),
        (
            answers(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", closes=True),
            Unknown("the connection broke during its answer"),
        ),
        (answers(b"HTTP/1.1 100 Continue\r\n\r\n", closes=True), CLOSED),
        (answers(b"HTTP/1.0 200 OK\r\n\r\n" + SECRET.encode(), closes=True), Taken()),
        (answers(status(100)[:-4] + status(103, "Retry-After: 9", body=b"") + status(503)), Refused(
            "503", "it answered 503"
        )),
        (answers(status(200, body=b"x" * 4_096)), Taken()),
        (answers(status(302, "Location: /200")), Refused(
            "302", "it answered 302, a redirect, which is not followed; use the redirect's address as target"
        )),
        (answers(status(413), closes=True), Refused("413", "it answered 413", poison=True)),
        (answers(status(999)), Refused("999", "it answered 999")),
        (pours(b"HTTP/1.1 200 OK\r\n\r\n", ENDLESS), Taken()),
        (pours(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", ENDLESS), Taken()),
        (pours(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1000\r\n" + ENDLESS + b"\r\n"), Taken()),
        (answers(status(200, "Retry-After: 5")), Taken()),
        (answers(status(429)), NotSent("it answered 429: try again later", after=timedelta(seconds=1))),
        (answers(status(503, "retry-after:  120 ")), Refused("503", "it answered 503", after=timedelta(seconds=120))),
        (answers(status(503, "Retry-After: Sat, 21 Nov 2026 12:00:30 GMT")),
         Refused("503", "it answered 503", after=timedelta(seconds=30))),
        (answers(status(503, "Date: Sat, 21 Nov 2026 12:00:20 GMT", "Retry-After: Sat, 21 Nov 2026 12:00:30 GMT")),
         Refused("503", "it answered 503", after=timedelta(seconds=10))),
        (answers(status(422, "Retry-After: 5")), Refused("422", "it answered 422", poison=True)),
    ],
)  # fmt: skip
def test_an_answer_counts_when_it_is_whole_or_longer_than_is_read(script: Script, outcome: Outcome) -> None:
    assert outcome_of(script) == outcome


@pytest.mark.parametrize(
    "script",
    [
        *(
            answers(said, closes=True)
            for said in (SECRET.encode() + b"\r\n", b"220 mail.test\r\n", b"\x15\x03\x01\x00\x02")
        ),
        pours(b"HTTP/1.1 200 OK\r\n", b"X-More: " + ENDLESS + b"\r\n"),
        pours(b"", b"HTTP/1.1 103 Early\r\nX: " + b"y" * 900 + BLANK),
    ],
)
def test_what_is_no_http_or_has_an_endless_head_leaves_the_letter_unknown(script: Script) -> None:
    assert isinstance(outcome_of(script), Unknown)


@pytest.mark.soak
@pytest.mark.parametrize("script", [hangs, pours(b"HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n", b"y", every=0.01)])
def test_an_answer_that_is_not_there_in_time_leaves_the_letter_unknown(script: Script) -> None:
    assert outcome_of(script, timeout=1.0) == Unknown("it had not answered within 1 s")


def test_answers_mean_what_the_target_says() -> None:
    with standing_in() as there, posting(there.port) as posts:
        said = parse_answers("409=success 4xx=retry")
        assert become(posts, post(there.port, "/409", answers=said)) == [Taken()]
        assert become(posts, post(there.port, "/422", answers=said)) == [Refused("422", "it answered 422")]


async def _answers_when_all_are_there(made: StandIn, _reader: Reader, writer: Writer, _asked: Asked) -> None:
    while made.most_open < 300 and not made.over.is_set():  # noqa: ASYNC110  # it is a count that is waited for
        await asyncio.sleep(0.01)
    writer.write(status(200))
    await writer.drain()


def test_three_hundred_are_open_at_the_same_time() -> None:
    with standing_in({"late": _answers_when_all_are_there}) as there, posting(there.port) as posts:
        calls = [post(there.port, "/late", attempt=one, timeout=30) for one in range(300)]
        posts.start(calls, may_start=always)
        assert [outcome for _, outcome in all_ended(posts, within=40)] == [Taken()] * 300
        assert there.most_open == 300


def test_a_letter_whose_time_runs_out_while_it_is_connected_is_not_sent() -> None:
    said = iter([True, False])
    with standing_in() as there, posting(there.port) as posts:
        posts.start([post(there.port)], may_start=lambda: next(said))
        assert all_ended(posts) == [(1, NotSent("no time was left to begin its request"))]
        eventually(lambda: there.connections == 1, within=2)
        assert there.asked == []


@pytest.mark.parametrize(
    "header", [("X", "a\r\nX-Forged: yes"), ("X", "a\nb"), ("X", "a\x00"), ("X", "\u20ac"), ("X: a\r\nY", "b"),
               ("Host", "other"), ("Content-Length", "0"), ("Transfer-Encoding", "chunked"), ("", "a")]
)  # fmt: skip
def test_a_header_that_is_more_than_one_is_not_sent(header: tuple[str, str]) -> None:
    with standing_in() as there, posting(there.port) as posts:
        [outcome] = become(posts, post(there.port, headers=(header,)))
        assert outcome == Refused("header", "one of its headers is invalid; nothing was sent", poison=True)
        assert there.connections == 0


def test_nothing_of_a_letter_is_kept_or_logged(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(0)
    with standing_in({"broken": breaks_off}) as there, posting(there.port) as posts:
        call = post(there.port, f"/broken?{SECRET}", body=SECRET.encode(), headers=(("X", SECRET),))
        become(posts, call, post(there.port, f"/200?{SECRET}"))
        assert SECRET not in repr(call) + repr(posts) + caplog.text + "".join(capfd.readouterr())
        assert {one.queued.post.body for one in posts._idle} == {b""}


@pytest.mark.soak
def test_posts_that_are_forgotten_close_what_they_had_open() -> None:
    with standing_in() as there:
        posts = Posts(listed(f"127.0.0.1:{there.port}"))
        address = f"http://127.0.0.1:{there.port}/200"
        assert (
            become(posts, *(HttpCall(one, address, b"letter", (), 5.0, StatusMeanings()) for one in (1, 2)))
            == [Taken()] * 2
        )
        assert there.alive == 2
        del posts
        gc.collect()
        eventually(lambda: there.alive == 0, within=2)
