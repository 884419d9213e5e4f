"""What is confirmed is gone or held; of all else it is said that it may not be, and why."""

from __future__ import annotations

import pytest

from reprocessing.gateways import sqs
from reprocessing.gateways.sqs import Deleted, Extended, QueueAddress
from tests.contract.endpoints import Sandbox
from tests.contract.queues import Queue
from tests.reprocessing.gateways.letters import arrivals, letter, send


@pytest.fixture
def handles(address: QueueAddress) -> dict[str, str]:
    send(address, *[letter(number) for number in range(25)])
    return {one.message_id: one.handle for one in arrivals(address)}


def test_ten_copies_travel_in_one_request(
    address: QueueAddress, queue: Queue, sandbox: Sandbox, handles: dict[str, str]
) -> None:
    assert sqs.extend(address, handles, 60) == Extended(held=set(handles), failed={})
    assert queue.counts().in_flight == 25
    assert sqs.delete(address, handles) == Deleted(gone=set(handles), failed={})
    for action in ("ChangeMessageVisibilityBatch", "DeleteMessageBatch"):
        assert len(sandbox.calls(action=action, queue=queue.name)) == 3
    assert sum(queue.counts()) == 0


def test_a_copy_that_sqs_did_not_delete_is_told_with_the_reason(
    address: QueueAddress, sandbox: Sandbox, handles: dict[str, str]
) -> None:
    first, second, *rest = list(handles)[:10]
    sandbox.plan({"kind": "partial", "action": "DeleteMessageBatch", "positions": [0, 1], "code": "InternalError"})
    ten = {message_id: handles[message_id] for message_id in [first, second, *rest]}
    why = "SQS refused it: InternalError"
    assert sqs.delete(address, ten) == Deleted(gone=set(rest), failed={first: why, second: why})


def test_a_refused_request_fails_its_own_ten_alone(
    address: QueueAddress, queue: Queue, sandbox: Sandbox, handles: dict[str, str]
) -> None:
    sandbox.plan({"kind": "error", "action": "DeleteMessageBatch", "times": 1, "status": 403, "code": "AccessDenied"})
    deleted = sqs.delete(address, handles, threads=1)
    assert set(deleted.failed) == set(list(handles)[:10])
    assert deleted.gone == set(list(handles)[10:])
    (why,) = set(deleted.failed.values())
    assert "Allow sqs:DeleteMessage on it" in why
    assert len(sandbox.calls(action="DeleteMessageBatch", queue=queue.name)) == 3  # nothing was tried twice


def test_a_lost_answer_confirms_nothing(address: QueueAddress, sandbox: Sandbox, handles: dict[str, str]) -> None:
    sandbox.plan({"kind": "drop"})
    assert set(sqs.delete(address, handles).failed) == set(handles)
    assert set(sqs.extend(address, handles, 60).failed) == set(handles)


def test_after_a_request_without_an_answer_no_other_is_sent(
    address: QueueAddress, queue: Queue, sandbox: Sandbox, handles: dict[str, str]
) -> None:
    """Each request to a region that does not answer takes seconds."""
    sandbox.plan({"kind": "drop", "times": 1})
    assert set(sqs.delete(address, handles, threads=1).failed) == set(handles)
    assert len(sandbox.calls(action="DeleteMessageBatch", queue=queue.name)) == 1


def test_a_copy_that_is_no_longer_held_cannot_be_extended(
    address: QueueAddress, queue: Queue, handles: dict[str, str]
) -> None:
    (gone, handle), *_ = handles.items()
    assert sqs.release(address, {gone: handle}) == Extended(held={gone}, failed={})
    assert queue.counts().in_flight == 24
    assert sqs.extend(address, {gone: handle}, 60).failed == {gone: "SQS refused it: MessageNotInflight"}


def test_a_reason_shows_no_handle(address: QueueAddress) -> None:
    deleted = sqs.delete(address, {"m": "no-handle-of-ours"})
    assert deleted.failed == {"m": "SQS refused it: ReceiptHandleIsInvalid"}


def test_an_id_that_the_answer_leaves_out_is_not_gone(address: QueueAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    class Client:
        @staticmethod
        def delete_message_batch(**_: object) -> dict[str, object]:
            return {"Successful": [{"Id": "1"}, {"Id": "77"}], "Failed": []}

    monkeypatch.setattr("reprocessing.gateways.sqs.received_handles.client", lambda region, role: Client())
    assert sqs.delete(address, {"a": "x", "b": "y"}) == Deleted({"b"}, {"a": "the answer of SQS does not name it"})


def test_nothing_to_do_asks_nothing(address: QueueAddress, queue: Queue, sandbox: Sandbox) -> None:
    assert sqs.delete(address, {}) == Deleted(set(), {})
    assert sqs.send(address, [], may_start=lambda: True) == {}
    assert [call["action"] for call in sandbox.calls(queue=queue.name)] == ["CreateQueue"]
