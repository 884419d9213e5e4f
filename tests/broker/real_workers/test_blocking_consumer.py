"""A consumer without an event loop, as gevent's workers are: the same faults, the same queue, the same consumer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kombu import Connection, Consumer, Message, Queue

from tests.broker.local_sqs import LocalSqs
from tests.broker.real_workers.test_workers_against_faults import FAULTS as FAULTS_OF_WORKERS
from tests.broker.real_workers.workers import IMPATIENT
from tests.conditions import eventually

FAULTS = {
    name: fault | {"times": 3 if name == "throttling" else 1}
    for name, fault in FAULTS_OF_WORKERS.items()
    if name in {"throttling", "throttling by KMS", "an internal error", "a dropped connection", "a receive that hangs"}
}


@pytest.fixture(scope="module")
def sqs() -> Iterator[LocalSqs]:
    with LocalSqs() as sqs:
        yield sqs


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, marks=pytest.mark.soak if name == "throttling by KMS" else (), id=name)
        for name, fault in FAULTS.items()
    ],
)
def test_a_blocking_consumer_receives_again_after(
    fault: dict[str, object], sqs: LocalSqs, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in sqs.environment.items():
        monkeypatch.setenv(name, value)
    options = {
        "predefined_queues": {"blocking": {"url": sqs.make_queue("blocking")}},
        "wait_time_seconds": 1,
        "polling_interval": 0.1,
        "timeouts": IMPATIENT,
    }
    transport = "redrive_service.broker.transport:Transport"
    received: list[Message] = []
    with (
        Connection("sqs://", transport=transport, transport_options=options) as connection,
        Consumer(connection, [Queue("blocking")], on_message=received.append),
    ):
        sqs.plan({**fault, "action": "ReceiveMessage", "queue": "blocking"})
        connection.Producer().publish({}, routing_key="blocking")
        eventually(lambda: _drained(connection), within=20)
        assert sqs.fired() == [fault["times"]]
        assert len(received) == 1
        received[0].ack()


def _drained(connection: Connection) -> bool:
    try:
        connection.drain_events(timeout=0.5)
    except TimeoutError:
        return False
    return True
