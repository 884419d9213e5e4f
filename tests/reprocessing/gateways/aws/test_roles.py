"""Queues of other accounts are used under their roles. Against a stand-in for STS, which says what it is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from botocore.awsrequest import AWSPreparedRequest

from reprocessing.domain.errors import QueueUnreachable
from reprocessing.domain.replay.verdicts import NotSent
from reprocessing.gateways import aws, sqs
from reprocessing.gateways.aws.clients import client
from reprocessing.gateways.sqs import QueueAddress
from tests.contract.endpoints import Sandbox
from tests.contract.queues import Queue
from tests.reprocessing.gateways.letters import arrivals, kinds, letter, send
from tests.reprocessing.gateways.stand_ins import (
    Asked,
    Said,
    StandIn,
    assumed,
    not_assumed,
    role_of,
    session_of,
    standing_in,
)

ROLE = "arn:aws:iam::111122223333:role/orders-redrive"
DENIED = "arn:aws:iam::111122223333:role/denied"
SHORT = "arn:aws:iam::111122223333:role/short"
CURE = "Check its ARN. Its trust policy must name the role of this process, which needs sts:AssumeRole on it."


def answer(asked: Asked) -> Said:
    role = role_of(asked)
    if role == DENIED:
        return not_assumed("AccessDenied", "User is not authorized to perform: sts:AssumeRole.")
    now = datetime.now(UTC)  # noqa: TID251  credentials end by the real clock
    return assumed(role.rpartition("/")[2].upper(), now + timedelta(minutes=5 if role == SHORT else 60))


@pytest.fixture
def sts(afresh: pytest.MonkeyPatch) -> Iterator[StandIn]:
    with standing_in(answer) as running:
        afresh.setenv("AWS_ENDPOINT_URL_STS", running.url)
        aws.forget_clients()
        yield running


def signers(address: QueueAddress) -> list[str]:
    """The access keys that calls to the queue are signed with, from now on."""
    found: list[str] = []
    session = cast("Any", client(address.region, role=address.role))._endpoint.http_session
    send = session.send

    def note(request: AWSPreparedRequest) -> object:
        signed = re.search(r"Credential=([^/]+)/", _text(request.headers["Authorization"]))
        found.append(signed[1] if signed else "")
        return send(request)

    session.send = note
    return found


def _text(header: str | bytes) -> str:
    return header.decode() if isinstance(header, bytes) else header


def test_a_queue_is_used_under_its_role_and_the_role_is_assumed_once(sts: StandIn, queue: Queue) -> None:
    address, own = QueueAddress.of(queue.url, ROLE), QueueAddress.of(queue.url)
    under_role, by_itself = signers(address), signers(own)
    assert kinds(send(address, letter(1), letter(2))) == {1: "Taken", 2: "Taken"}
    handles = {one.message_id: one.handle for one in arrivals(address)}
    assert sqs.release(address, handles).failed == {}
    assert sqs.delete(address, handles).failed == {}
    sqs.describe(address)
    sqs.sources_of(address)
    sqs.depth(own)
    calls = ["SendMessageBatch", "ReceiveMessage", "ReceiveMessage", "ChangeMessageVisibilityBatch"]
    calls += ["DeleteMessageBatch", "GetQueueAttributes", "ListDeadLetterSourceQueues"]
    assert under_role == ["ORDERS-REDRIVE"] * len(calls)
    assert by_itself == [os.environ["AWS_ACCESS_KEY_ID"]]
    assert [(role_of(one), session_of(one)) for one in sts.asked] == [(ROLE, "redrive")]


def test_an_address_found_by_arn_keeps_the_role_it_was_found_under(sts: StandIn, queue: Queue) -> None:
    arn = sqs.describe(QueueAddress.of(queue.url)).arn
    assert sqs.locate(arn, ROLE).role == ROLE
    assert sqs.active_moves(arn, ROLE) == []


def test_credentials_that_end_soon_are_renewed_before_they_do(sts: StandIn, queue: Queue) -> None:
    address = QueueAddress.of(queue.url, SHORT)
    sqs.depth(address)
    sqs.depth(address)
    assert [role_of(one) for one in sts.asked] == [SHORT, SHORT]


def test_a_role_that_cannot_be_assumed_is_named_with_its_cure_and_no_letter_leaves(
    sts: StandIn, queue: Queue, sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(QueueUnreachable) as raised:
        sqs.depth(QueueAddress.of(queue.url, DENIED))
    why = f"the role {DENIED} could not be assumed: AccessDenied (User is not authorized to perform: sts:AssumeRole)"
    assert str(raised.value) == f"{queue.url}: GetQueueAttributes failed: {why}. {CURE}"
    outcomes = send(QueueAddress.of(queue.url, DENIED), letter(1), letter(2))
    assert outcomes == dict.fromkeys((1, 2), NotSent(f"nothing was sent: {why}", unreachable=True))
    assert sandbox.calls(action="SendMessageBatch", queue=queue.name) == []
    assert [one for one in caplog.records if one.exc_info] == []  # a sentence, and no traceback before it


@pytest.mark.parametrize(
    ("said", "told", "done"),  # requests to STS, whether credentials are read again, whether the role is to blame
    [
        (Said(hangs_up=True), f"the role {ROLE} could not be assumed: Connection was closed", (3, False, True)),
        (not_assumed("ExpiredToken", ""), "ExpiredToken", (1, True, True)),
        (None, "Correct or unset AWS_ENDPOINT_URL_STS", (0, False, False)),
    ],
)
def test_where_sts_gives_no_credentials_the_reason_is_told(
    queue: Queue, afresh: pytest.MonkeyPatch, said: Said | None, told: str, done: tuple[int, bool, bool]
) -> None:
    with standing_in(lambda _: said or Said()) as running:
        afresh.setenv("AWS_ENDPOINT_URL_STS", running.url if said else "nonsense")
        afresh.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0.0)
        aws.forget_clients()
        before = client("eu-west-1")
        with pytest.raises(QueueUnreachable, match=told) as raised:
            sqs.depth(QueueAddress.of(queue.url, ROLE))
    assert (len(running.asked), client("eu-west-1") is not before, CURE in str(raised.value)) == done
