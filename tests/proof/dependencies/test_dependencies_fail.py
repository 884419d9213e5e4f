"""The short form: the pipeline's own turns, whose connection is ended, and whose SQS throttles, fails and forgets."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import psycopg
import pytest
from django.db import OperationalError, connection

from redrive_service.sandbox.judge import Offence
from reprocessing.gateways.aws import clients
from reprocessing.models import Attempt, Breaker, Letter
from reprocessing.pipeline.maintenance import recover
from tests.broker.local_sqs import LocalSqs
from tests.conditions import eventually
from tests.faults import outage
from tests.reprocessing.pipeline.bench import Clock, Workbench
from tests.stories.scene import Witness

pytestmark = pytest.mark.django_db(transaction=True)

LETTERS, KEYS = 60, 20
POLICY = {"ordering_key": "attribute:key", "sequence": "attribute:n", "max_attempts": 50}
PROMISED = {"identity": "event", "ordering": "key", "sequence": "n", "advance": "accepted", "max_attempts": 50}


@pytest.fixture
def sqs(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalSqs]:
    with LocalSqs() as one:
        for name, value in one.environment.items():
            monkeypatch.setenv(name, value)
        clients.forget_clients()
        yield one
        clients.forget_clients()


@pytest.mark.soak
def test_a_drain_whose_connections_are_ended_repeats_what_it_could_not_record_and_nothing_else(clock: Clock) -> None:
    witness, bench = Witness(), Workbench(fields=POLICY)
    outage.bury(bench, range(LETTERS), keys=KEYS)
    bench.ready()
    ended = _backend()
    with bench.meanwhile(lambda: _end(ended)), pytest.raises(OperationalError):
        bench.replay()
    assert ended != _backend()
    assert bench.replay().taken == 0  # the lanes are leased, and stay so until it is known that nobody answers for them
    clock.advance(bench.conf.lease.total_seconds() + 1)
    bench.replay()
    assert bench.states() == {f"{number}": "delivered" for number in range(LETTERS)}
    judgement = witness.judges(bench, **PROMISED)
    repeated = {one.event for one in judgement.found(Offence.DUPLICATE)}
    assert len(repeated) == len(judgement.findings) == KEYS
    unknown = Attempt.objects.filter(letter__dlq=bench.dlq, outcome="unknown").values_list("letter__payload__body")
    assert {bytes(body).decode() for (body,) in unknown} == repeated
    assert {len(ids) for ids in _redrive_ids(bench).values()} == {1}


@pytest.mark.soak
def test_a_drain_finishes_in_order_and_repeats_nothing_while_sqs_throttles_fails_and_loses_handles(
    sqs: LocalSqs,
) -> None:
    witness, bench = Witness(), Workbench(fields=POLICY)
    Breaker.objects.filter(target=bench.target).update(threshold=1_000, at_least=1_000)
    outage.bury(bench, range(LETTERS), keys=KEYS)
    dlq, source = (url.rpartition("/")[2] for url in (bench.dlq_url, bench.source_url))
    sqs.plan(
        _error("ReceiveMessage", dlq, 400, "ThrottlingException"),
        _error("ReceiveMessage", dlq, 403, "RequestThrottled", after=2),
        _error("ReceiveMessage", dlq, 400, "KmsThrottled", after=3),
        {"kind": "duplicate", "action": "ReceiveMessage", "queue": dlq, "times": 2},
        _error("SendMessageBatch", source, 400, "ThrottlingException"),
        _error("SendMessageBatch", source, 503, "ServiceUnavailable"),
        {**_partial("SendMessageBatch", source, "InternalError"), "times": 3},
        {**_partial("SendMessageBatch", source, "RequestThrottled"), "times": 3},
        {"kind": "drop", "action": "SendMessageBatch", "queue": source, "times": 1},
        _error("DeleteMessageBatch", dlq, 500, "InternalError"),
        {**_partial("DeleteMessageBatch", dlq, "ReceiptHandleIsInvalid"), "times": 2},
    )
    eventually(lambda: _captured(bench) == LETTERS, within=30)
    bench.enlist()
    eventually(lambda: _delivered(bench) == LETTERS, within=30)
    eventually(lambda: _left(bench) == 0, within=30)
    assert all(sqs.fired()), sqs.fired()
    judgement = witness.judges(bench, **PROMISED)
    assert (judgement.findings, judgement.counts()["delivered"]) == ((), LETTERS)


def _error(action: str, queue: str, status: int, code: str, after: int = 0) -> dict[str, object]:
    fault = {"kind": "error", "action": action, "queue": queue, "status": status, "code": code}
    return {**fault, "times": 1, "after": after}


def _partial(action: str, queue: str, code: str) -> dict[str, object]:
    return {"kind": "partial", "action": action, "queue": queue, "code": code, "positions": [0, 2]}


def _backend() -> int:
    connection.ensure_connection()
    return int(connection.connection.info.backend_pid)


def _end(backend: int) -> None:
    with psycopg.connect(**connection.get_connection_params()) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [backend])


def _captured(bench: Workbench) -> int:
    bench.capture()
    return Letter.objects.filter(dlq=bench.dlq).count()


def _delivered(bench: Workbench) -> int:
    bench.replay(2)
    return Counter(bench.states().values())["delivered"]


def _left(bench: Workbench) -> int:
    recover.sweep_all(conf=bench.conf)
    return bench.left()


def _redrive_ids(bench: Workbench) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for one in bench.arrivals():
        found[one["attributes"]["event"]].add(one["attributes"]["RedriveId"].rpartition(":")[0])
    return found
