from __future__ import annotations

import json
import shlex
from dataclasses import replace

import pytest

from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.targets.send_command import LONGEST, MessageToSend, aws_command, curl_command

URL = "https://sqs.eu-west-1.amazonaws.com/111122223333/orders"
PLAIN = MessageToSend(b"{}", {}, "id.body")


def aws(message: MessageToSend) -> list[str]:
    """The arguments that a shell passes on."""
    command = aws_command(message, url=URL, region="eu-west-1")
    assert command is not None
    return shlex.split(command.replace("\\\n", ""))


def curl(message: MessageToSend, *headers: tuple[str, str]) -> list[str]:
    command = curl_command(message, url="https://shop.example/hook?a=1&b=2", headers=headers)
    assert command is not None
    return shlex.split(command.replace("\\\n", ""))


def test_the_aws_cli_sends_body_and_attributes() -> None:
    attributes = {"type": Attribute("String", "o'clock"), "bytes": Attribute("Binary.png", b"\x00\xff")}
    found = aws(replace(PLAIN, body=b'{"it\'s": "$HOME `id` \\\\ \xc3\xa9"}\n', attributes=attributes))
    assert found[:6] == ["aws", "sqs", "send-message", "--queue-url", URL, "--region"]
    assert found[7] == '--message-body={"it\'s": "$HOME `id` \\\\ é"}\n'
    assert json.loads(found[8].removeprefix("--message-attributes=")) == {
        "bytes": {"DataType": "Binary.png", "BinaryValue": "AP8="},
        "type": {"DataType": "String", "StringValue": "o'clock"},
    }


def test_a_fifo_queue_gets_group_and_deduplication_id() -> None:
    assert aws(replace(PLAIN, group="g'1", deduplication="once"))[-2:] == [
        "--message-group-id=g'1", "--message-deduplication-id=once",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "body", [b"x" * (LONGEST + 1), b"a\x00b", "\u202e".encode(), b"file:///etc/passwd", b"fileb://secret"]
)
def test_a_body_that_a_command_cannot_carry_is_read_from_the_file(body: bytes) -> None:
    assert aws(replace(PLAIN, body=body))[-1] == "--message-body=file://id.body"


def test_a_body_that_is_no_text_has_no_aws_command() -> None:
    assert aws_command(replace(PLAIN, body=b"\xff"), url=URL, region="eu-west-1") is None


@pytest.mark.parametrize("body", [b"\xff\x00", b"@/etc/passwd", b"x" * (LONGEST + 1)])
def test_curl_reads_what_it_would_change_from_the_file(body: bytes) -> None:
    assert curl(replace(PLAIN, body=body))[-1] == "@id.body"


def test_curl_posts_body_and_headers() -> None:
    found = curl(replace(PLAIN, body=b"it's"), ("Content-Type", "text/plain"), ("Idempotency-Key", "o'k"))
    assert found == [
        "curl", "--request", "POST", "https://shop.example/hook?a=1&b=2", "--header", "Content-Type: text/plain",
        "--header", "Idempotency-Key: o'k", "--data-binary", "it's",
    ]  # fmt: skip


def test_an_address_with_a_password_is_not_shown() -> None:
    assert curl_command(PLAIN, url="https://user:secret@shop.example/", headers=()) is None
