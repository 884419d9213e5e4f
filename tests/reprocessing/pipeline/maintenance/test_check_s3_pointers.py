"""A plan names the letters whose body in S3 is gone."""

from __future__ import annotations

import json
from collections.abc import Collection

import pytest

from reprocessing.domain.message.s3_pointer import PointerToS3
from reprocessing.pipeline.maintenance import check_s3_pointers
from reprocessing.pipeline.maintenance.check_s3_pointers import CheckedPointers
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def pointing(key: str) -> str:
    where = {"s3BucketName": "large-bodies", "s3Key": key}
    return json.dumps(["software.amazon.payloadoffloading.PayloadS3Pointer", where])


def bury(bench: Workbench, body: str) -> str:
    size = {"ExtendedPayloadSize": {"DataType": "Number", "StringValue": "300000"}}
    return str(bench.sqs.send_message(QueueUrl=bench.dlq_url, MessageBody=body, MessageAttributes=size)["MessageId"])


def test_letters_whose_body_is_gone_are_named_and_s3_is_asked_about_pointers_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Workbench()
    bury(bench, pointing("there"))
    gone = bury(bench, pointing("gone"))
    bury(bench, "S3Pointer is a word of this letter")
    run = bench.ready()
    asked: list[set[PointerToS3]] = []

    def are_gone(pointers: Collection[PointerToS3], _region: str, _role: str) -> set[PointerToS3]:
        asked.append(set(pointers))
        return {pointer for pointer in pointers if pointer.key == "gone"}

    monkeypatch.setattr(check_s3_pointers, "are_gone", are_gone)
    assert check_s3_pointers.find_missing_bodies(run) == CheckedPointers(2, [gone])
    assert asked == [{PointerToS3("large-bodies", "there"), PointerToS3("large-bodies", "gone")}]


def test_s3_is_not_asked_where_nothing_points_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench()
    bench.bury("a letter")
    monkeypatch.delattr(check_s3_pointers, "are_gone")
    assert check_s3_pointers.find_missing_bodies(bench.ready()) == CheckedPointers(0, [])
