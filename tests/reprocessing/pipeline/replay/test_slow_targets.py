"""Targets that answer one by one: many requests are open, each lane in order, and none waits for a slow one."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from django.db import OperationalError, connection

from reprocessing.domain.replay.verdicts import Refused, Taken
from reprocessing.gateways.sqs import Deleted, QueueAddress, delete
from reprocessing.pipeline.capture import delete_copies
from reprocessing.pipeline.replay import copy_deletion, late_answers, send, settle, slow_targets, take_tokens
from reprocessing.pipeline.replay.send import Sender
from reprocessing.pipeline.replay.slow_targets import Stream
from reprocessing.store.ordering import lanes
from tests.conditions import eventually
from tests.reprocessing.pipeline.bench import BRISK, Clock
from tests.reprocessing.pipeline.interposed import happens_after, happens_before
from tests.reprocessing.pipeline.slow import Endpoint, bench_with, delivered, due, hanging

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.soak
def test_lanes_are_sent_side_by_side_and_each_in_order(endpoint: Endpoint) -> None:
    bench = bench_with(keys=5, letters=4)
    bench.replay(60)
    assert endpoint.most == 5
    for key in range(5):
        assert [body for body in endpoint.begun if body.startswith(f"{key}-")] == [f"{key}-{n}" for n in range(4)]
    assert len(delivered(bench)) == len(endpoint.begun) == 20


def test_a_request_that_hangs_delays_no_other_lane(endpoint: Endpoint) -> None:
    bench = bench_with(keys=4, letters=3)
    endpoint.answer = lambda body: None if body == "0-0" else Taken()
    bench.replay(600, stop=lambda: len(delivered(bench)) == 9)
    assert delivered(bench) == {f"{key}-{n}" for key in range(1, 4) for n in range(3)}
    assert endpoint.begun.count("0-0") == 1
    assert "0-1" not in endpoint.begun


@pytest.mark.soak
def test_a_target_that_hangs_leaves_room_for_another(endpoint: Endpoint) -> None:
    conf = replace(BRISK, open_requests=5)
    hanging = bench_with(keys=8, letters=1, name="hangs ", conf=conf)
    well = bench_with(keys=3, letters=2, conf=conf)
    endpoint.answer = lambda body: None if body.startswith("hangs") else Taken()
    hanging.replay(60, stop=lambda: len(delivered(well)) == 6)
    assert delivered(well) == {f"{key}-{n}" for key in range(3) for n in range(2)}
    assert sum(body.startswith("hangs") for body in endpoint.begun) == 4


def test_requests_that_cannot_be_started_are_unknown(endpoint: Endpoint) -> None:
    bench = bench_with(keys=2, letters=1)
    fails_once(endpoint, "start", RuntimeError())
    bench.replay(60)
    assert bench.history() == [(1, "unknown", 0), (1, "unknown", 0), (2, "accepted", 0), (2, "accepted", 0)]


def test_a_request_without_outcome_is_given_up(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_with(keys=1, letters=1)
    monkeypatch.setattr(slow_targets, "GIVE_UP_AFTER", -30.0)
    endpoint.answer = lambda _: None
    bench.replay(0.1)
    assert late_answers.wait_for_all(5)
    assert [outcome for _, outcome, _ in bench.history()][:1] == ["unknown"]


@pytest.mark.soak
def test_a_request_that_outlasts_its_turn_is_settled_when_it_ends(endpoint: Endpoint) -> None:
    bench = bench_with(keys=1, letters=2)
    hangs = True
    endpoint.answer = lambda _: None if hangs else Taken()
    bench.replay(0.2)
    assert bench.states() == {"0-0": "sending", "0-1": "waiting"}
    assert bench.replay(0.2).taken == 0  # its lane is leased
    hangs = False
    eventually(lambda: bench.states()["0-0"] == "delivered", within=10)
    bench.replay(1)
    assert (bench.states(), endpoint.begun) == ({"0-0": "delivered", "0-1": "delivered"}, ["0-0", "0-1"])


@pytest.mark.soak
def test_lanes_of_open_requests_stay_leased_after_the_turn(endpoint: Endpoint, clock: Clock) -> None:
    bench = hanging(endpoint)
    clock.advance(bench.conf.lease.total_seconds() - 1)
    before = due(bench)
    eventually(lambda: due(bench) > before, within=10)
    assert bench.replay(0.2).taken == 0
    assert endpoint.begun == ["0-0"]


def test_a_retry_after_is_respected(endpoint: Endpoint) -> None:
    bench = bench_with(keys=1, letters=1)
    endpoint.answer = lambda _: Refused("503", "it answered 503", after=timedelta(seconds=90))
    bench.replay(0.5)
    assert (bench.letter().state, endpoint.begun) == ("waiting", ["0-0"])
    assert bench.history() == [(1, "refused", 0)]
    assert timedelta(seconds=80) < due(bench) - lanes.database_now() <= timedelta(seconds=90)


@pytest.mark.soak
def test_a_hundred_answers_are_recorded_in_few_commits(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_with(keys=100, letters=1)
    commits: list[int] = []
    happens_after(monkeypatch, settle, "attempts", lambda: commits.append(1))
    bench.replay(60)
    assert len(delivered(bench)) == 100
    assert len(commits) <= 10


@pytest.mark.soak
def test_an_outcome_that_was_not_recorded_is_unknown_after_the_lease(
    endpoint: Endpoint, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = hanging(endpoint)
    broken = Mock(side_effect=OperationalError)
    with monkeypatch.context() as patch:
        patch.setattr(settle, "attempts", broken)
        endpoint.answer = lambda _: Taken()
        assert late_answers.wait_for_all(10)
    clock.advance(bench.conf.lease.total_seconds() + 1)
    bench.replay(1)
    assert bench.history() == [(1, "unknown", 0), (2, "accepted", 0)]
    assert delivered(bench) == {"0-0"}


def fails_once(where: object, name: str, error: Exception) -> None:
    patch = pytest.MonkeyPatch()

    def broken(*_: object, **__: object) -> None:
        patch.undo()
        raise error

    patch.setattr(where, name, broken)


@pytest.mark.soak
def test_leases_are_renewed_over_a_new_connection(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_with(keys=1, letters=1)
    endpoint.answer = lambda _: None
    left: list[Stream] = []
    monkeypatch.setattr(late_answers, "follow_stream", lambda stream, *_, **__: left.append(stream))
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


@pytest.mark.soak
def test_a_late_outcome_is_recorded_over_a_new_connection(endpoint: Endpoint) -> None:
    bench = hanging(endpoint)
    fails_once(settle, "attempts", OperationalError())
    endpoint.answer = lambda _: Taken()
    assert late_answers.wait_for_all(10)
    assert (bench.history(), endpoint.begun) == ([(1, "accepted", 0)], ["0-0"])


@pytest.mark.soak
def test_late_outcomes_are_recorded_though_deleting_fails(endpoint: Endpoint) -> None:
    bench = hanging(endpoint, keys=2)
    fails_once(delete_copies, "delete_from_dlqs", ValueError())
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
    seen: list[bool] = []

    def slow(address: QueueAddress, handles: Mapping[str, str], **_: Any) -> Deleted:  # noqa: ANN401
        if not seen:
            renewed.clear()
            seen.append(renewed.wait(2.5))
        return delete(address, handles)

    happens_before(monkeypatch, Stream, "renew", renewed.set)
    for module in (copy_deletion, send):
        monkeypatch.setattr(module, "delete", slow)
    answers = not outlasting
    endpoint.answer = lambda body: Taken() if answers and body != "0-0" else None
    bench.replay(30, stop=lambda: len(endpoint.begun) == 3)
    answers = True
    eventually(lambda: seen, within=10)
    assert seen[0]


@pytest.mark.soak
def test_a_target_has_its_share_of_open_requests_over_all_turns(endpoint: Endpoint, clock: Clock) -> None:
    bench = bench_with(keys=10, letters=1, conf=replace(BRISK, open_requests=5, lease=timedelta(minutes=1)))
    endpoint.answer = lambda _: None
    for _ in range(2):
        bench.replay(0.2)
        clock.advance(5)
    assert len(endpoint.begun) == 4


def test_spare_streams_are_closed(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    some = [slow_targets.borrow_stream(BRISK.outbound_hosts, 5) for _ in range(3)]
    closed: list[Stream] = []

    def close(stream: Stream) -> None:
        closed.append(stream)

    monkeypatch.setattr(Stream, "close", close)
    for stream in some:
        slow_targets.give_back_stream(stream)
    assert [id(stream) for stream in closed] == [id(some[2])]


def test_no_wait_is_longer_than_the_leases_allow(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    def ended(_: Stream, *, within: float) -> list[object]:
        waits.append(within)
        return []

    monkeypatch.setattr(Stream, "take_ended", ended)
    Sender(BRISK, lambda: 0.0).record_answers(60)
    assert waits == [BRISK.lease.total_seconds() / 3]


def test_no_letter_is_sent_on_a_lease_that_ends_before_its_renewal(
    endpoint: Endpoint, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = bench_with(keys=1, letters=1)
    almost = BRISK.lease.total_seconds() - 2.5
    happens_before(monkeypatch, take_tokens, "take_for_heads", lambda: clock.advance(almost), once=True)
    left: list[timedelta] = []

    def answer(_: str) -> Taken:
        left.append(due(bench) - lanes.database_now())
        return Taken()

    endpoint.answer = answer
    bench.replay(60)
    assert min(left) > BRISK.lease / 3
