"""A plan says which letters point to bodies that are gone from S3."""

from __future__ import annotations

import json
from collections.abc import Collection

import pytest

from reprocessing.domain.message.s3_pointer import Pointer
from reprocessing.pipeline.maintenance import check_s3_pointers
from reprocessing.pipeline.maintenance.check_s3_pointers import Verified
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def pointing(key: str) -> str:
    where = {"s3BucketName": "large-bodies", "s3Key": key}
    return json.dumps(["software.amazon.payloadoffloading.PayloadS3Pointer", where])


def bury(bench: Workbench, body: str) -> str:
    size = {"ExtendedPayloadSize": {"DataType": "Number", "StringValue": "300000"}}
    return str(bench.sqs.send_message(QueueUrl=bench.dlq_url, MessageBody=body, MessageAttributes=size)["MessageId"])


def test_letters_whose_bodies_are_gone_are_named_and_others_are_not_asked_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Workbench()
    there, gone = bury(bench, pointing("there")), bury(bench, pointing("gone"))
    bury(bench, "S3Pointer is a word of this letter")
    run = bench.ready()
    asked: list[set[Pointer]] = []

    def are_gone(pointers: Collection[Pointer], _region: str, _role: str) -> set[Pointer]:
        asked.append(set(pointers))
        return {one for one in pointers if one.key == "gone"}

    monkeypatch.setattr(check_s3_pointers, "are_gone", are_gone)
    assert check_s3_pointers.pointers(run) == Verified(2, [gone])
    assert asked == [{Pointer("large-bodies", "there"), Pointer("large-bodies", "gone")}]
    assert there != gone


def test_s3_is_not_asked_where_nothing_points_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench()
    bench.bury("a letter")
    monkeypatch.delattr(check_s3_pointers, "are_gone")
    assert check_s3_pointers.pointers(bench.ready()) == Verified(0, [])


def test_the_body_of_a_pointer_goes_back_untouched() -> None:
    bench = Workbench()
    body = pointing("a b") + " \n"
    bury(bench, body)
    bench.ready()
    bench.replay()
    (sent,) = bench.delivered()
    assert (sent["Body"], sent["MessageAttributes"]["ExtendedPayloadSize"]["DataType"]) == (body, "Number")
