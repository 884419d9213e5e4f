"""Looking into a dlq takes nothing out of it, and makes no letter look absent."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest
from django.core.management.base import CommandError

from reprocessing.domain.lifecycle import LetterState
from reprocessing.models import DeadLetterQueue, Target
from reprocessing.store.capture import capture_lease
from reprocessing.store.capture.capture_lease import CaptureLease
from reprocessing.store.ordering.lanes import database_now
from tests import envelopes
from tests.contract.endpoints import Sandbox
from tests.contract.queues import Queue, redrive_policy
from tests.reprocessing.commands.conftest import AddRow, Ask, AskJson
from tests.reprocessing.commands.refusals import refusal
from tests.reprocessing.commands.stock import add_letter, add_source
from tests.reprocessing.gateways.aws_endpoint import MakeQueue

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reprocessing.pipeline.capture.peek.WAIT", 0)


@pytest.fixture
def queue(make_queue: MakeQueue) -> Queue:
    return make_queue()


@pytest.fixture
def orders(add_row: AddRow, queue: Queue) -> DeadLetterQueue:
    return add_row("orders", url=queue.url, arn=queue.arn)


@pytest.fixture
def soon_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reprocessing.gateways.aws.clients.READ_SECONDS", 1.0)


def lease(dlq: DeadLetterQueue) -> CaptureLease | None:
    return capture_lease.lease(dlq.pk, lease=60, dirty=60)


def test_without_confirm_nothing_is_received(ask_json: AskJson, orders: DeadLetterQueue, queue: Queue) -> None:
    queue.send()
    assert ask_json("peek_dlq", "orders") == {
        "dlq": "orders",
        "dry_run": True,
        "depth": {"visible": 1, "in_flight": 0, "delayed": 0},
        "messages": None,
    }
    assert queue.receive_one()["Attributes"]["ApproximateReceiveCount"] == "1"
    orders.refresh_from_db()
    assert orders.depth_visible == 1


def test_what_is_looked_at_is_visible_again(ask_json: AskJson, orders: DeadLetterQueue, queue: Queue) -> None:
    for number in range(25):
        queue.send(str(number))
    seen = ask_json("peek_dlq", "orders", "--confirm", "--limit", "12")["messages"]
    assert len({one["message_id"] for one in seen}) == 12
    assert queue.counts().visible == 25
    assert lease(orders) is not None


def test_each_message_tells_where_it_would_stand(
    ask: Ask, ask_json: AskJson, orders: DeadLetterQueue, queue: Queue
) -> None:
    DeadLetterQueue.objects.update(ordering_key="attribute:account")
    account = {"account": {"DataType": "String", "StringValue": "a\u00e9"}}
    ids = [queue.send("x", MessageAttributes=account)["MessageId"], queue.send("y")["MessageId"]]
    add_letter(add_source(orders), LetterState.CAPTURED, message_id=ids[1])
    seen = {one["message_id"]: one for one in ask_json("peek_dlq", "orders", "--confirm")["messages"]}
    assert (seen[ids[0]]["ordering_key"], seen[ids[0]]["state"]) == ("a\u00e9", None)
    assert seen[ids[1]]["would_be_parked"]["reason"] == "no_ordering_key"
    assert seen[ids[1]]["state"] == "captured"
    said = ask("peek_dlq", "orders", "--confirm")
    assert 'ordering key "a\u00e9"' in said
    assert "would be parked: It has no ordering key" in said


def test_bodies_are_shown_on_request_and_a_terminal_obeys_nothing_in_them(
    ask: Ask, orders: DeadLetterQueue, queue: Queue
) -> None:
    queue.send("secret\x85\n" + "z" * 400)
    assert "secret" not in ask("peek_dlq", "orders", "--confirm")
    said = ask("peek_dlq", "orders", "--confirm", "--bodies")
    assert "secret\\x85\\n" + "z" * 392 + "…" in said


def test_nothing_in_a_key_reaches_the_terminal_as_it_is(ask: Ask, orders: DeadLetterQueue, queue: Queue) -> None:
    orders.ordering_key, orders.idempotency_key = "body:key", "body:idem"
    orders.save()
    queue.send('{"key": "k\x9b2J", "idem": "i\u202e\x9d0;x\x9c' + "z" * 500 + '"}')
    said = ask("peek_dlq", "orders", "--confirm")
    assert 'ordering key "k\\x9b2J", idempotency key i\\u202e\\x9d0;x\\x9c' in said
    assert [one for one in said if not one.isprintable() and one != "\n"] == []
    assert max(map(len, said.splitlines())) < 1_000


def test_one_that_is_observed_captured_or_would_push_messages_on_is_not_received_from(
    ask: Ask, orders: DeadLetterQueue, queue: Queue, make_queue: MakeQueue
) -> None:
    DeadLetterQueue.objects.update(mode="observe")
    assert "about 0 messages visible" in ask("peek_dlq", "orders")
    assert "in mode observe: nothing is received from it" in refusal("peek_dlq", "orders", "--confirm")
    DeadLetterQueue.objects.update(mode="manual")
    assert lease(orders) is not None
    assert "is being captured at this moment" in refusal("peek_dlq", "orders", "--confirm")
    queue.set(RedrivePolicy=redrive_policy(make_queue(), 1))
    assert "has a redrive policy of its own" in refusal("peek_dlq", "orders", "--confirm")


@pytest.mark.soak
@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "accept_then_timeout", "action": "ReceiveMessage", "times": 1},
        {"kind": "error", "status": 500, "code": "InternalError", "action": "ChangeMessageVisibilityBatch"},
    ],
)
@pytest.mark.usefixtures("soon_given_up")
def test_what_could_not_be_given_back_makes_no_letter_absent(
    ask: Ask, orders: DeadLetterQueue, queue: Queue, sandbox: Sandbox, fault: dict[str, object]
) -> None:
    """While messages are out of sight, a capture that finds nothing proves nothing."""
    queue.send()
    sandbox.plan(fault)
    with suppress(CommandError):
        ask("peek_dlq", "orders", "--confirm")
    capturing = lease(orders)
    assert capturing is not None
    assert not capturing.clean


def test_what_an_earlier_capture_hid_stays_hidden(ask: Ask, orders: DeadLetterQueue) -> None:
    DeadLetterQueue.objects.update(orphans_hidden_until=database_now() + timedelta(hours=1))
    ask("peek_dlq", "orders", "--confirm")
    capturing = lease(orders)
    assert capturing is not None
    assert not capturing.clean


def test_a_task_is_told_as_one_and_what_it_is_called_with_only_where_bodies_are_asked_for(
    ask: Ask, ask_json: AskJson, orders: DeadLetterQueue, queue: Queue
) -> None:
    add_source(orders)
    queue.send(envelopes.task("shop.charge", "4111-canary", task_id="t-1", retries=3).decode())
    (seen,) = ask_json("peek_dlq", "orders", "--confirm")["messages"]
    assert seen["task"] == {
        "name": "shop.charge", "id": "t-1", "retries": 3, "eta": None, "expires": None, "group": None,
        "not_shown": None,
    }  # fmt: skip
    assert [one.partition(":")[0] for one in seen["causes"]] == [
        "It had been retried 3 times",
        "It was received once and never acknowledged",
    ]
    told, more = ask("peek_dlq", "orders", "--confirm"), ask("peek_dlq", "orders", "--confirm", "--bodies")
    assert "  task shop.charge, retried 3 times, id t-1\n" in told
    assert ("4111-canary" in told, '  called with ["4111-canary"] {}\n' in more) == (False, True)
    (seen,) = ask_json("peek_dlq", "orders", "--confirm", "--bodies")["messages"]
    assert seen["task"]["called_with"] == '["4111-canary"] {}'


def test_what_is_no_task_has_a_cause_only_where_workers_were_to_take_it(
    ask_json: AskJson, orders: DeadLetterQueue, queue: Queue
) -> None:
    source = add_source(orders)
    queue.send("hello")
    why = "Not a Celery task: it is not a kombu message. No worker can run it, so it came to the DLQ."
    for kind, causes in (("sqs", []), ("celery", [why])):
        Target.objects.filter(sources=source).update(kind=kind)
        (seen,) = ask_json("peek_dlq", "orders", "--confirm")["messages"]
        assert (seen["task"], seen["causes"]) == (None, causes)


def test_nothing_in_a_task_reaches_the_terminal_as_it_is(ask: Ask, orders: DeadLetterQueue, queue: Queue) -> None:
    queue.send(envelopes.task("shop\x1b[2Jcharge", "\x1b]0;x", task_id="t\x07").decode())
    assert "\x1b" not in ask("peek_dlq", "orders", "--confirm", "--bodies")
