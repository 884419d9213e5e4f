"""Parked messages for the screenshots."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import timedelta

import boto3
from django.db import transaction

from reprocessing.domain.message.envelope import Attribute
from reprocessing.models import Attempt, DeadLetterQueue, Letter, Report, Source, Target
from reprocessing.store.ordering.lanes import database_now
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked


def parked_letters(causes: Sequence[tuple[int, str, str]]) -> int:
    """So many letters of each cause, which their consumer has reported; the id of one."""
    sqs = boto3.client("sqs")
    urls = {name: sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("orders-dlq", "orders")}
    with transaction.atomic():  # the demo's workers see to whatever they see
        source = dlq("orders-dlq")
        DeadLetterQueue.objects.filter(pk=source.dlq_id).update(url=urls["orders-dlq"])
        Target.objects.filter(pk=source.target_id).update(url=urls["orders"])
        letters = [_letter(source, kind, body, 48_200 + n) for many, kind, body in causes for n in range(many)]
    return letters[0]


def _letter(source: Source, kind: str, body: str, number: int) -> int:
    letter = parked(
        source, key=f"customer-{number % 9}", body=body.format(n=number).encode(),
        attributes={"tenant": Attribute("String", "acme"), "type": Attribute("String", "order.paid")},
    )  # fmt: skip
    _told(letter, kind, number)
    return letter.pk


def _told(letter: Letter, kind: str, number: int) -> None:
    """What makes a letter look like one of AWS, that came back after a minute and whose consumer said why."""
    since = database_now() - timedelta(seconds=37 * (number % 60))
    Letter.objects.filter(pk=letter.pk).update(message_id=str(uuid.uuid4()), finished_at=since)
    assert letter.lane
    assert letter.target
    Attempt.objects.filter(letter=letter).delete()
    Attempt.objects.create(
        letter=letter, lane=letter.lane, target=letter.target, no=1, epoch=0, fence=1, holds_lane=False,
        opened_at=since - timedelta(seconds=61), taken_at=since - timedelta(seconds=60), closed_at=since,
        returned_at=since, outcome="returned", sent_message_id=str(uuid.uuid4()),
    )  # fmt: skip
    Report.objects.create(
        public_id=letter.public_id, attempt_no=1, verdict="failed", type=kind, message=f"{kind}: order {number}",
        happened_at=since, received_at=since, digest=f"{kind} {number}".encode(),
    )  # fmt: skip
