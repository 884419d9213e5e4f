"""A letter's fate is told as it is: taken, refused, not sent, or not known. Never better, never worse."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import md5
from typing import Any

import pytest
from botocore.exceptions import ClientError

from reprocessing.domain.replay.verdicts import Outcome, Refused, Taken, Unknown
from reprocessing.gateways import aws, sqs
from reprocessing.gateways.sqs import QueueAddress
from tests.conditions import eventually
from tests.contract.endpoints import Sandbox
from tests.contract.queues import Queue
from tests.reprocessing.gateways.letters import TEN, bodies, kinds, letter, requests, send


def answering(monkeypatch: pytest.MonkeyPatch, answer: Callable[..., dict[str, Any]]) -> None:
    """Lets `answer` stand for SendMessageBatch: some answers no server of ours gives."""

    class Client:
        send_message_batch = staticmethod(answer)

    monkeypatch.setattr("reprocessing.gateways.sqs.sending.client", lambda region, role: Client())


# What the network does.


def test_a_lost_answer_leaves_every_fate_unknown_and_nothing_is_sent_again(
    address: QueueAddress, queue: Queue, sandbox: Sandbox, afresh: pytest.MonkeyPatch
) -> None:
    afresh.setattr("reprocessing.gateways.aws.clients.READ_SECONDS", 0.3)
    aws.forget_clients()
    sandbox.plan({"kind": "accept_then_timeout", "action": "SendMessageBatch"})
    assert set(kinds(send(address, *TEN)).values()) == {"Unknown"}
    assert sorted(map(int, bodies(address))) == list(range(10))


# What the deadline does.


def test_nothing_goes_out_when_it_may_not(address: QueueAddress, queue: Queue, sandbox: Sandbox) -> None:
    outcomes = sqs.send(address, TEN, may_start=lambda: False)
    assert set(kinds(outcomes).values()) == {"NotSent"}
    assert requests(sandbox, queue) == []


def test_every_request_is_asked_for_by_itself(address: QueueAddress, queue: Queue, sandbox: Sandbox) -> None:
    grants = iter([True, True, False])
    outcomes = sqs.send(address, map(letter, range(30)), may_start=lambda: next(grants), threads=1)
    assert kinds(outcomes) == {n: "Taken" if n < 20 else "NotSent" for n in range(30)}
    assert [len(sent) for sent in requests(sandbox, queue)] == [10, 10]


def test_the_halves_of_a_refused_batch_are_asked_for_too(address: QueueAddress, queue: Queue) -> None:
    grants = iter([True, True, False])
    batch = [letter(1), letter(2), letter(3, ""), letter(4)]
    outcomes = sqs.send(address, batch, may_start=lambda: next(grants), threads=1)
    assert kinds(outcomes) == {1: "Taken", 2: "Taken", 3: "NotSent", 4: "NotSent"}
    assert bodies(address) == ["1", "2"]


def test_requests_go_side_by_side(address: QueueAddress, queue: Queue, sandbox: Sandbox) -> None:
    sandbox.plan({"kind": "hang", "action": "SendMessageBatch", "queue": queue.name})
    with ThreadPoolExecutor(1) as background:
        sending = background.submit(sqs.send, address, map(letter, range(40)), may_start=lambda: True, threads=4)
        try:
            eventually(lambda: sandbox.faults()[0]["fired"] == 4, within=5)
        finally:
            sandbox.release()
        assert len(sending.result(10)) == 40


# What SQS says.


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("InvalidMessageContents", Refused("InvalidMessageContents", "said", poison=True, quotes=True)),
        ("InvalidParameterValue", Refused("InvalidParameterValue", "said", poison=True, quotes=True)),
        ("RequestThrottled", Refused("RequestThrottled", "said")),
        ("KMS.ThrottlingException", Refused("KMS.ThrottlingException", "said")),
        ("AccessDenied", Refused("AccessDenied", "said")),
        ("InternalError", Unknown("SQS failed: InternalError")),
        ("ServiceUnavailable", Unknown("SQS failed: ServiceUnavailable")),
    ],
)
def test_each_entry_of_a_batch_has_its_own_fate(
    address: QueueAddress, sandbox: Sandbox, code: str, outcome: Outcome
) -> None:
    sandbox.plan(
        {"kind": "partial", "action": "SendMessageBatch", "positions": [1, 8], "code": code, "message": "said"}
    )
    outcomes = send(address, *TEN)
    assert {attempt: fate for attempt, fate in outcomes.items() if not isinstance(fate, Taken)} == {
        1: outcome,
        8: outcome,
    }
    assert sorted(map(int, bodies(address))) == [0, 2, 3, 4, 5, 6, 7, 9]


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ((403, "AccessDenied"), Refused("AccessDenied", "said")),
        ((400, "AWS.SimpleQueueService.NonExistentQueue"), Refused("NonExistentQueue", "said")),
        ((403, "RequestThrottled"), Refused("RequestThrottled", "said")),
        ((503, "Throttling"), Refused("Throttling", "said")),
        ((400, "SomethingNew"), Refused("SomethingNew", "said", quotes=True)),
        ((500, "InternalError"), Unknown("SQS failed: InternalError (500)")),
        ((503, "ServiceUnavailable"), Unknown("SQS failed: ServiceUnavailable (503)")),
        ((500, "SomethingNew"), Unknown("SQS failed: SomethingNew (500)")),
        ((408, "SomethingNew"), Unknown("SQS failed: SomethingNew (408)")),
        ((408, "RequestTimeout"), Unknown("SQS failed: RequestTimeout (408)")),
    ],
)
def test_a_request_refused_for_no_letter_of_its_own_is_asked_once(
    address: QueueAddress, queue: Queue, sandbox: Sandbox, answer: tuple[int, str], outcome: Outcome
) -> None:
    sandbox.plan({"kind": "error", "status": answer[0], "code": answer[1], "message": "said"})
    assert send(address, *TEN) == dict.fromkeys(range(10), outcome)
    assert len(requests(sandbox, queue)) == 1


@pytest.mark.parametrize("code", ["InvalidMessageContents", "BatchRequestTooLong", "InvalidParameterValue"])
def test_a_batch_refused_for_one_letter_is_halved_until_that_letter_stands_alone(
    monkeypatch: pytest.MonkeyPatch, address: QueueAddress, code: str
) -> None:
    asked: list[list[str]] = []

    def answer(*, Entries: list[dict[str, Any]], **_: object) -> dict[str, Any]:  # noqa: N803  boto3's own name
        asked.append([entry["MessageBody"] for entry in Entries])
        if "6" in asked[-1]:
            raise ClientError(
                {"Error": {"Code": code, "Message": "said"}, "ResponseMetadata": {"HTTPStatusCode": 400}},  # type: ignore[typeddict-item]  # as much of an answer as is read
                "SendMessageBatch",
            )
        return {"Successful": [taken(entry) for entry in Entries]}

    answering(monkeypatch, answer)
    outcomes = send(address, *TEN)
    assert outcomes == {
        n: Refused(code, "said", poison=True, quotes=True) if n == 6 else Taken(f"id-{n}") for n in range(10)
    }
    assert asked == [[*"0123456789"], [*"01234"], [*"56789"], [*"56"], ["5"], ["6"], [*"789"]]


def taken(entry: dict[str, Any], digest: str | None = None) -> dict[str, Any]:
    body = entry["MessageBody"]
    return {"Id": entry["Id"], "MessageId": f"id-{body}", "MD5OfMessageBody": digest or md5(body.encode()).hexdigest()}


def test_a_letter_that_the_answer_does_not_name_has_an_unknown_fate(
    monkeypatch: pytest.MonkeyPatch, address: QueueAddress
) -> None:
    def answer(*, Entries: list[dict[str, Any]], **_: object) -> dict[str, Any]:  # noqa: N803  boto3's own name
        first, second, third, *_rest = Entries
        failed = {"Id": third["Id"], "Code": "InvalidMessageContents", "SenderFault": True}
        return {"Successful": [taken(first), taken(second, digest="0" * 32), taken(third)], "Failed": [failed]}

    answering(monkeypatch, answer)
    assert send(address, *TEN[:4]) == {
        0: Taken("id-0"),
        1: Unknown("SQS took another body than was sent, as id-1"),
        2: Unknown("the answer of SQS names it as taken and as failed"),
        3: Unknown("the answer of SQS does not name it"),
    }


def test_a_failure_nobody_foresaw_leaves_fates_unknown_and_the_other_requests_alone(
    monkeypatch: pytest.MonkeyPatch, address: QueueAddress
) -> None:
    def answer(*, Entries: list[dict[str, Any]], **_: object) -> dict[str, Any]:  # noqa: N803  boto3's own name
        if len(Entries) == 10:
            raise RuntimeError("secret-body")
        return {"Successful": [{**taken(Entries[0]), "MessageId": "m"}]}

    answering(monkeypatch, answer)
    outcomes = send(address, *[letter(number, "1") for number in range(11)])
    assert outcomes == {
        **{number: Unknown("SQS did not answer: RuntimeError") for number in range(10)},
        10: Taken("m"),
    }
