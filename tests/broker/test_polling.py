"""The poll of a queue goes on, whatever becomes of one receive."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from queue import Empty

import pytest
from botocore.exceptions import EndpointConnectionError, NoCredentialsError

from redrive_service.broker.failure import ReceiveFailure
from redrive_service.broker.version import KombuValue
from tests.broker.benches import QUEUE, Bench, bench, message, refusal

THROTTLED = ReceiveFailure(status=403, code="RequestThrottled")


@pytest.fixture
def on_bench() -> Iterator[Bench]:
    with bench() as made:
        yield made


def _polls_after(seconds: float) -> list[tuple[float, str]]:
    return [(seconds, "_schedule_queue")]


def test_pauses_grow_with_failures_in_a_row_and_begin_anew_after_an_answer(on_bench: Bench) -> None:
    on_bench.consume()
    pauses = []
    for outcome in (*[THROTTLED] * 6, {}, THROTTLED):
        on_bench.wire.answer(outcome)
        pauses += [delay for delay, _ in on_bench.loop.planned()]
        on_bench.loop.happen("_schedule_queue")
    assert pauses == [0.5, 1, 2, 4, 8, 10, 0.1, 0.5]


def test_a_receive_that_cannot_even_be_sent_is_a_failure(on_bench: Bench) -> None:
    on_bench.wire.error = NoCredentialsError()
    on_bench.consume()
    assert on_bench.loop.planned() == _polls_after(0.5)


def test_a_message_that_cannot_be_read_does_not_keep_its_mates_back(on_bench: Bench) -> None:
    on_bench.consume()
    poison = message(2, body='{"properties": []}')
    on_bench.wire.answer({"Messages": [message(1), poison, message(3)]})
    assert [each.delivery_tag for each in on_bench.received] == ["receipt-1", "receipt-3"]
    assert on_bench.loop.planned() == _polls_after(0)


def test_a_message_that_its_consumer_chokes_on_takes_no_slot_and_ends_no_poll(on_bench: Bench) -> None:
    def choke(_: KombuValue) -> None:
        raise KeyError("id")

    on_bench.consume(choke)
    on_bench.wire.answer({"Messages": [message(1), message(2)]})
    assert on_bench.free_slots() == 3
    assert on_bench.loop.planned() == _polls_after(0)
    assert on_bench.sqs.calls == []


def test_a_worker_that_is_full_looks_again_and_asks_sqs_for_nothing(on_bench: Bench) -> None:
    on_bench.consume()
    on_bench.wire.answer({"Messages": [message(number) for number in (1, 2, 3)]})
    on_bench.loop.happen("_schedule_queue")
    assert on_bench.wire.waiting == []
    assert on_bench.loop.planned() == _polls_after(0.1)


def test_a_receive_whose_answer_never_comes_is_given_up_past_its_deadline(on_bench: Bench) -> None:
    on_bench.consume()
    assert on_bench.loop.planned() == [(35, "_end_poll")]
    on_bench.loop.happen("_end_poll")
    assert on_bench.loop.planned() == _polls_after(0.5)


def test_an_answer_that_comes_after_all_is_delivered_and_begins_no_second_poll(on_bench: Bench) -> None:
    on_bench.consume()
    on_bench.loop.happen("_end_poll")
    on_bench.loop.happen("_schedule_queue")
    on_bench.wire.answer({"Messages": [message(1)]}, number=0)
    assert [each.delivery_tag for each in on_bench.received] == ["receipt-1"]
    assert on_bench.loop.planned() == [(35, "_end_poll")]


def test_a_queue_is_polled_once_at_a_time(on_bench: Bench) -> None:
    on_bench.consume()
    on_bench.channel._schedule_queue(QUEUE)
    assert len(on_bench.wire.waiting) == 1


def test_a_queue_nobody_consumes_any_more_is_not_polled_and_its_messages_are_given_back(on_bench: Bench) -> None:
    on_bench.consume()
    on_bench.channel.basic_cancel("consumer")
    on_bench.channel._new_release_client = lambda client: client  # type: ignore[attr-defined]  # kombu's, on a real client
    on_bench.wire.answer({"Messages": [message(1)]})
    on_bench.loop.happen("_schedule_queue")
    assert on_bench.loop.planned() == []
    assert [action for action, _ in on_bench.sqs.calls] == ["change_message_visibility"]


def test_every_third_failure_in_a_row_makes_new_clients(on_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    renewed: list[str] = []
    monkeypatch.setattr(on_bench.channel, "_start_afresh", renewed.append)
    on_bench.consume()
    for _ in range(7):
        on_bench.wire.answer(THROTTLED)
        on_bench.loop.happen("_schedule_queue")
    assert renewed == [QUEUE, QUEUE]


def test_new_clients_are_made_of_credentials_that_are_read_again(on_bench: Bench) -> None:
    known = on_bench.channel._predefined_queue_clients, on_bench.channel._predefined_queue_async_clients
    for clients in known:
        clients[QUEUE] = object()
    on_bench.channel._start_afresh(QUEUE)
    assert known == ({}, {})


def test_a_failure_is_logged_without_payload_or_secret(on_bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    on_bench.consume()
    with caplog.at_level(logging.WARNING, logger="redrive.broker"):
        on_bench.wire.answer(THROTTLED)
    assert caplog.messages == [
        "redrive.broker.receive_failed queue=redrive-control status=403 code=RequestThrottled in_a_row=1 next_in=0.5s"
    ]


def test_a_worker_starts_though_sqs_is_away(on_bench: Bench) -> None:
    on_bench.sqs.error = refusal("ServiceUnavailable", 503)
    assert on_bench.channel.queue_declare(QUEUE).message_count == 0


# The blocking path, of gevent and of a plain `drain_events`.


@pytest.mark.parametrize(
    "error",
    [refusal("RequestThrottled"), refusal("QueueDoesNotExist", 400), EndpointConnectionError(endpoint_url="any")],
    ids=["throttled", "deleted", "unreachable"],
)
def test_a_blocking_receive_that_fails_brings_nothing_and_lets_the_queue_rest(
    on_bench: Bench, error: Exception
) -> None:
    now = 100.0
    on_bench.channel.clock = lambda: now
    on_bench.sqs.error = error
    asked = []
    for now in (100.0, 100.4, 100.5, 101.4, 101.5):  # noqa: B007  # read by the clock
        with pytest.raises(Empty):
            on_bench.channel._get_bulk(QUEUE)
        asked.append(len(on_bench.sqs.calls))
    assert asked == [1, 1, 2, 2, 3]


def test_a_blocking_receive_delivers_as_the_event_loop_does(on_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    on_bench.consume()
    poison = message(2, body='{"properties": []}')
    answer = {"Messages": [message(1), poison, message(3)]}
    monkeypatch.setattr(on_bench.channel, "_receive_message", lambda *_: answer)
    on_bench.channel._get_bulk(QUEUE)
    assert [each.delivery_tag for each in on_bench.received] == ["receipt-1", "receipt-3"]
