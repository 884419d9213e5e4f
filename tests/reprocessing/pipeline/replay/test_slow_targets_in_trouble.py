"""What is open at slow targets while connections are lost, SQS is slow, and turns follow one another."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection

from reprocessing.domain.replay.verdicts import Taken
from reprocessing.gateways.sqs import Deleted, QueueAddress, delete
from reprocessing.pipeline.capture import delete_copies
from reprocessing.pipeline.replay import late_answers, send, settle, slow_targets, take_tokens
from reprocessing.pipeline.replay.send import Wire
from reprocessing.pipeline.replay.slow_targets import Stream
from reprocessing.store.ordering import lanes
from tests.conditions import eventually
from tests.reprocessing.pipeline.bench import BRISK, Clock
from tests.reprocessing.pipeline.slow import Endpoint, bench_with, delivered, due

pytestmark = pytest.mark.django_db(transaction=True)


def fails_once(where: object, name: str, error: Exception) -> None:
    """The next call of it fails."""
    patch = pytest.MonkeyPatch()

    def broken(*_: object, **__: object) -> None:
        patch.undo()
        raise error

    patch.setattr(where, name, broken)


def test_leases_are_renewed_over_a_new_connection(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_with(keys=1, letters=1)
    endpoint.answer = lambda _: None
    left: list[Stream] = []
    monkeypatch.setattr(late_answers, "follow", lambda one, *_, **__: left.append(one))
    bench.replay(0.2)
    before = due(bench)
    connection.connection.close()
    left[0].renew(lease=0.0)
    assert due(bench) < before


def test_an_outcome_that_a_turn_could_not_record_is_recorded_after_it(endpoint: Endpoint) -> None:
    bench = bench_with(keys=1, letters=1)
    fails_once(settle, "attempts", OperationalError())
    with pytest.raises(OperationalError):
        bench.replay(1)
    eventually(lambda: delivered(bench) == {"0-0"}, within=10)
    assert (bench.history(), endpoint.begun) == ([(1, "accepted", 0)], ["0-0"])


def test_a_late_outcome_is_recorded_over_a_new_connection(endpoint: Endpoint) -> None:
    bench = bench_with(keys=1, letters=1)
    endpoint.answer = lambda _: None
    bench.replay(0.2)
    fails_once(settle, "attempts", OperationalError())
    endpoint.answer = lambda _: Taken()
    assert late_answers.wait(10)
    assert (bench.history(), endpoint.begun) == ([(1, "accepted", 0)], ["0-0"])


def test_late_outcomes_are_recorded_though_deleting_fails(endpoint: Endpoint) -> None:
    bench = bench_with(keys=2, letters=1)
    endpoint.answer = lambda _: None
    bench.replay(0.2)
    fails_once(delete_copies, "everywhere", ValueError())
    endpoint.answer = lambda body: Taken() if body == "1-0" else None
    eventually(lambda: delivered(bench) == {"1-0"}, within=10)
    endpoint.answer = lambda _: Taken()
    eventually(lambda: delivered(bench) == {"0-0", "1-0"}, within=10)


@pytest.mark.soak
@pytest.mark.parametrize("outlasting", [False, True])
def test_leases_are_renewed_while_sqs_deletes_slowly(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, *, outlasting: bool
) -> None:
    bench = bench_with(keys=3, letters=1, conf=replace(BRISK, lease=timedelta(seconds=3), intent_size=1))
    renewed = threading.Event()
    renew = Stream.renew
    seen: list[bool] = []

    def noted(self: Stream, *, lease: float) -> None:
        renewed.set()
        renew(self, lease=lease)

    def slow(address: QueueAddress, handles: Mapping[str, str], **_: Any) -> Deleted:  # noqa: ANN401
        if not seen:
            renewed.clear()
            seen.append(renewed.wait(2.5))
        return delete(address, handles)

    monkeypatch.setattr(Stream, "renew", noted)
    monkeypatch.setattr(send, "delete", slow)
    answers = not outlasting
    endpoint.answer = lambda body: Taken() if answers and body != "0-0" else None
    bench.replay(30, stop=lambda: len(endpoint.begun) == 3)
    answers = True
    eventually(lambda: seen, within=10)
    assert seen[0]


def test_a_target_has_its_share_of_open_requests_over_all_turns(endpoint: Endpoint, clock: Clock) -> None:
    bench = bench_with(keys=10, letters=1, conf=replace(BRISK, open_requests=5, lease=timedelta(minutes=1)))
    endpoint.answer = lambda _: None
    for _ in range(2):
        bench.replay(0.2)
        clock.advance(5)
    assert len(endpoint.begun) == 4


def test_spare_streams_are_closed(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    some = [slow_targets.borrow(BRISK.outbound_hosts, 5) for _ in range(3)]
    closed: list[Stream] = []

    def close(one: Stream) -> None:
        closed.append(one)

    monkeypatch.setattr(Stream, "close", close)
    for one in some:
        slow_targets.give_back(one)
    assert [id(one) for one in closed] == [id(some[2])]


def test_no_wait_is_longer_than_the_leases_allow(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    def ended(_: Stream, *, within: float) -> list[object]:
        waits.append(within)
        return []

    monkeypatch.setattr(Stream, "ended", ended)
    Wire(BRISK, lambda: 0.0).hear(60)
    assert waits == [BRISK.lease.total_seconds() / 3]


def test_no_letter_is_sent_on_a_lease_that_ends_before_its_renewal(
    endpoint: Endpoint, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = bench_with(keys=1, letters=1)
    heads = take_tokens.heads

    def late(*every: Any, **options: Any) -> take_tokens.Metered:  # noqa: ANN401
        monkeypatch.setattr(take_tokens, "heads", heads)
        clock.advance(BRISK.lease.total_seconds() - 2.5)
        return heads(*every, **options)

    monkeypatch.setattr(take_tokens, "heads", late)
    left: list[timedelta] = []

    def answer(_: str) -> Taken:
        left.append(due(bench) - lanes.clock())
        return Taken()

    endpoint.answer = answer
    bench.replay(60)
    assert min(left) > BRISK.lease / 3
