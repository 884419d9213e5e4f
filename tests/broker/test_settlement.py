"""How messages end: what is done is deleted, what is refused is left to SQS, and no error of SQS ends a worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from botocore.exceptions import ReadTimeoutError
from kombu.transport import SQS

from redrive_service.broker.clients import ClientsChannel
from tests.broker.benches import URL, Bench, bench, message, refusal

ADDRESS = {"QueueUrl": URL, "ReceiptHandle": "receipt-1"}
ERRORS = [refusal("AccessDenied"), refusal("ServiceUnavailable", 503), ReadTimeoutError(endpoint_url="any")]


@pytest.fixture
def on_bench() -> Iterator[Bench]:
    with bench() as made:
        made.consume()
        made.wire.answer({"Messages": [message(1)]})
        yield made


@pytest.mark.parametrize(
    ("end", "calls"),
    [
        ("ack", [("delete_message", ADDRESS)]),
        ("reject", []),  # whether or not its queue has a redrive policy
        ("requeue", [("change_message_visibility", {**ADDRESS, "VisibilityTimeout": 20})]),
    ],
)
def test_what_is_done_is_deleted_and_what_is_refused_is_left_to_sqs(
    on_bench: Bench, end: str, calls: list[object]
) -> None:
    getattr(on_bench.received[0], end)()
    assert on_bench.sqs.calls == calls
    assert on_bench.free_slots() == 3


def test_kombu_itself_deletes_what_is_rejected(on_bench: Bench) -> None:
    SQS.Channel.basic_reject(on_bench.channel, "receipt-1")
    assert [action for action, _ in on_bench.sqs.calls] == ["get_queue_attributes", "delete_message"]


def test_what_was_not_begun_reappears_at_once_when_the_worker_stops(on_bench: Bench) -> None:
    on_bench.channel.qos.restore_unacked_once()
    assert on_bench.sqs.calls == [("change_message_visibility", {**ADDRESS, "VisibilityTimeout": 0})]


@pytest.mark.parametrize("error", ERRORS, ids=["denied", "unavailable", "silent"])
@pytest.mark.parametrize("settle", ["ack", "requeue"])
def test_an_error_in_settling_takes_no_slot_and_is_not_raised(on_bench: Bench, settle: str, error: Exception) -> None:
    on_bench.sqs.error = error
    getattr(on_bench.received[0], settle)()
    assert on_bench.free_slots() == 3


def test_settling_what_was_never_received_is_harmless(on_bench: Bench) -> None:
    on_bench.channel.basic_ack("unknown")
    on_bench.channel.basic_reject("unknown", requeue=True)
    assert on_bench.sqs.calls == []
    assert on_bench.free_slots() == 2


def test_a_message_that_names_another_queue_is_settled_with_the_queue_it_came_from(on_bench: Bench) -> None:
    on_bench.wire.waiting.clear()
    on_bench.loop.happen("_schedule_queue")
    on_bench.wire.answer({"Messages": [message(1, routing_key="somewhere-else")]})
    on_bench.channel.sqs = lambda queue=None: ClientsChannel.sqs(on_bench.channel, queue)  # type: ignore[method-assign]  # kombu's own look-up
    on_bench.channel._predefined_queue_clients["redrive-control"] = on_bench.sqs
    on_bench.received[-1].ack()
    assert on_bench.sqs.calls == [("delete_message", ADDRESS)]
