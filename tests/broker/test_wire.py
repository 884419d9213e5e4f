"""The HTTP of a receive: its deadlines, and its failures as values."""

from __future__ import annotations

from types import SimpleNamespace

import boto3
import pycurl
import pytest

from redrive_service.broker.failure import ReceiveFailure
from redrive_service.broker.timeouts import Timeouts
from redrive_service.broker.version import KombuValue
from redrive_service.broker.wire import ContainedSqsConnection


class Curl:
    def __init__(self) -> None:
        self.options: dict[int, object] = {}

    def setopt(self, option: int, value: object) -> None:
        self.options[option] = value


@pytest.fixture
def connection() -> ContainedSqsConnection:
    client = boto3.client("sqs", region_name="us-east-1", aws_access_key_id="sandbox", aws_secret_access_key="sandbox")
    return ContainedSqsConnection(
        timeouts=Timeouts(), long_poll=20, sqs_connection=client, http_client=SimpleNamespace()
    )


def _answer(status: int, body: bytes, *, errno: int | None = None) -> KombuValue:
    error = SimpleNamespace(errno=errno) if errno else None
    http = SimpleNamespace(status_code=status, headers={}, content=body, error=error)
    return SimpleNamespace(status=status, response=http, read=lambda: body)


def _outcome(connection: ContainedSqsConnection, answer: KombuValue) -> KombuValue:
    return connection._on_list_ready(None, [], "ReceiveMessage", answer)


def test_every_request_has_a_deadline_to_connect_and_one_to_end_past_its_long_poll(
    connection: ContainedSqsConnection,
) -> None:
    curl = Curl()
    connection.get_http_connection().getrequest().on_prepare(curl)  # type: ignore[misc]  # set by us, so not None
    assert curl.options == {
        pycurl.NOSIGNAL: 1,
        pycurl.CONNECTTIMEOUT_MS: 3_000,
        pycurl.TIMEOUT_MS: 30_000,
        pycurl.TCP_KEEPALIVE: 1,
        pycurl.TCP_KEEPIDLE: 15,
        pycurl.TCP_KEEPINTVL: 5,
        pycurl.FOLLOWLOCATION: 0,
    }


def test_an_answer_with_messages_is_a_dict(connection: ContainedSqsConnection) -> None:
    outcome = _outcome(connection, _answer(200, b'{"Messages": [{"MessageId": "m"}]}'))
    assert outcome["Messages"] == [{"MessageId": "m"}]


ERROR = b'{"__type": "com.amazonaws.sqs#Code"}'


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        *((_answer(status, ERROR), (status, "Code")) for status in (301, 400, 403, 404, 408, 429, 500, 502, 503, 504)),
        (_answer(599, b"", errno=28), (599, "curl-28")),
        (_answer(200, b"\xff\xfe"), (599, "UnicodeDecodeError")),
    ],
)
def test_any_other_answer_or_none_is_a_failure(
    connection: ContainedSqsConnection, answer: KombuValue, failure: tuple[int, str]
) -> None:
    assert _outcome(connection, answer) == ReceiveFailure(status=failure[0], code=failure[1])
