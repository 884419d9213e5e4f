"""Every block of docs/consumers.md is run, and does what the manual says."""

from __future__ import annotations

import json
import logging
import re
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import boto3
import pytest
from django.contrib.auth.models import Group
from django.core.management import get_commands

from reprocessing.idempotency import InProgress, PayloadConflict, conf
from reprocessing.idempotency.models import Claim
from tests.reprocessing.reasons.stub import Stub, listening, unhooked

MANUAL = Path(__file__).parents[2] / "docs/consumers.md"

pytestmark = pytest.mark.django_db


class Shop:
    """What the manual takes for granted of whoever reads it, and what was asked of it."""

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.down = False

    def charge(self, card: str, cents: int) -> str:
        self.asked.append((card, cents))
        if self.down:
            raise ConnectionError("the gateway is down")
        return "ch_1"

    def put(self, page: int) -> None:
        self.asked.append(page)

    def ship(self, order: int) -> str:
        self.asked.append(order)
        return f"parcel of {order}"

    def create(self, order: int, cents: int) -> None:
        Group.objects.create(name=f"invoice {order} {cents}")


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def stub() -> Iterator[Stub]:
    with listening() as one:
        yield one


@pytest.fixture
def manual(shop: Shop, stub: Stub) -> Iterator[Any]:
    """A module that holds the blocks of the manual, run from the first to the last."""
    module: Any = ModuleType("manual")
    invoices = ModuleType("invoices")
    invoices.objects = shop  # type: ignore[attr-defined]  # a model's manager
    vars(module).update(
        INSTALLED_APPS=[], timedelta=timedelta, json=json, logger=logging.getLogger("manual"), gateway=shop,
        archive=shop, pages_of=lambda _: [1, 2, 3], Invoice=invoices, warehouse=shop, REPORTS_URL=stub.url,
        REPORTS_TOKEN="redrive-token", BROKER_URL="memory://", QUEUE_URL="http://127.0.0.1:9/0/shop",
    )  # fmt: skip
    with unhooked():
        for block in re.findall(r"^```python\n(.*?)^```", MANUAL.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
            exec(compile(block, str(MANUAL), "exec"), vars(module))
        yield module


def test_its_settings_are_those_by_default(manual: Any) -> None:  # noqa: ANN401
    assert manual.INSTALLED_APPS == ["reprocessing.idempotency"]
    assert conf.read_settings(manual.REDRIVE_IDEMPOTENCY) == conf.Conf()


def test_its_commands_exist() -> None:
    named = set(re.findall(r"manage\.py (\w+)", MANUAL.read_text(encoding="utf-8")))

    assert named == {"migrate", "check", "add_reporter", "add_dlq", "purge_idempotency"}
    assert named <= set(get_commands())


def test_its_consumer_charges_once_and_says_what_became_of_each(manual: Any, shop: Shop, stub: Stub) -> None:  # noqa: ANN401
    sqs = boto3.client("sqs")
    queue = sqs.create_queue(QueueName=f"shop-{uuid.uuid4().hex[:8]}", Attributes={"VisibilityTimeout": "0"})[
        "QueueUrl"
    ]
    order = json.dumps({"card": "card_1", "cents": 1250})
    first = sqs.send_message(QueueUrl=queue, MessageBody=order)["MessageId"]

    shop.down = True
    manual.consume(sqs, queue)  # fails, and stays
    shop.down = False
    manual.consume(sqs, queue)  # comes again, and works
    mark = f"{uuid.uuid4()}:1"
    names = {"IdempotencyKey": first, "RedriveId": mark}
    attributes: Any = {name: {"DataType": "String", "StringValue": value} for name, value in names.items()}
    replay = sqs.send_message(QueueUrl=queue, MessageBody=order, MessageAttributes=attributes)["MessageId"]
    manual.consume(sqs, queue)  # is the same work
    manual.reporter.close(within=10)

    assert shop.asked == [("card_1", 1250)] * 2
    assert [(one["message_id"], one.get("redrive_id"), one["verdict"], one.get("type")) for one in stub.reports] == [
        (first, None, "retrying", "ConnectionError"),
        (first, None, "delivered", None),
        (replay, mark, "delivered", None),
    ]
    assert (Claim.objects.get().attempts, Claim.objects.get().failures) == (2, 1)
    assert "Messages" not in sqs.receive_message(QueueUrl=queue)
    with pytest.raises(PayloadConflict):
        manual.charge({"MessageId": first, "Body": "another order"})


def test_its_consumer_leaves_alone_what_another_works_on(manual: Any, shop: Shop) -> None:  # noqa: ANN401
    message = {"MessageId": "m-1", "Body": json.dumps({"card": "card_1", "cents": 1})}

    with manual.once("m-1", space="charge"), pytest.raises(InProgress):
        manual.charge(message)
    assert shop.asked == []


def test_its_report_is_made_once(manual: Any, shop: Shop) -> None:  # noqa: ANN401
    assert [manual.report("monday"), manual.report("monday")] == [{"pages": 3}] * 2
    assert shop.asked == [1, 2, 3]


def test_its_booking_is_committed_with_its_claim(manual: Any) -> None:  # noqa: ANN401
    assert [manual.book(7, 1250), manual.book(7, cents=1250)] == [1250, 1250]
    assert list(Group.objects.values_list("name", flat=True)) == ["invoice 7 1250"]


def test_its_task_ships_once_whichever_copy_comes(manual: Any, shop: Shop) -> None:  # noqa: ANN401
    given: list[dict[str, Any]] = [{"args": [17]}, {"kwargs": {"order": 17}}]
    results = [manual.ship.apply(**one, task_id="task-1").get() for one in given]

    assert results == ["parcel of 17"] * 2
    assert shop.asked == [17]


def test_its_task_with_the_key_of_its_message_does_so_too(manual: Any, shop: Shop) -> None:  # noqa: ANN401
    task = manual.app.tasks[manual.invoice.name]
    marked = {"MessageId": "m-2", "MessageAttributes": {"IdempotencyKey": {"StringValue": "m-1"}}}
    for message in ({"MessageId": "m-1"}, marked):
        task.push_request(id=str(uuid.uuid4()), properties={"delivery_info": {"sqs_message": message}})
        assert task(17) == "parcel of 17"
        task.pop_request()

    assert shop.asked == [17]
