"""A body in S3 is shown on request, to who may see payloads, with masked values; it is recorded and not stored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import unescape
from uuid import uuid4

import pytest
from django.test import Client

from reprocessing.domain.message.envelope import Attribute
from reprocessing.gateways.aws_services.s3_get import Denied, NoAnswer, ReadObject
from reprocessing.models import AuditEntry, DeadLetterQueue, Letter, Payload
from reprocessing.pipeline.parking_lot import read_s3_body
from tests.reprocessing.admin.parking_lot.parked_messages import LOOKS, dlq, parked, person, post, revealed, token
from tests.reprocessing.gateways.aws_stand_in import Aws, amazon

pytestmark = pytest.mark.django_db

SEES = (*LOOKS, "view_payload")
SIZE = {"ExtendedPayloadSize": Attribute("Number", "30")}


@pytest.fixture(scope="module")
def aws() -> Iterator[Aws]:
    with amazon() as found:
        yield found


@pytest.fixture
def bucket(aws: Aws) -> str:
    name = f"bodies-{uuid4().hex[:12]}"
    aws.s3.create_bucket(Bucket=name)
    return name


@pytest.fixture
def ann() -> Client:
    return person("ann", *SEES)


def _pointing(bucket: str, key: str = "orders/1") -> Letter:
    where = {"s3BucketName": bucket, "s3Key": key}
    body = json.dumps(["software.amazon.payloadoffloading.PayloadS3Pointer", where])
    return parked(dlq(), body=body.encode(), attributes=SIZE)


def _shown(client: Client, letter: Letter, **given: object) -> str:
    return unescape(post(client, f"/admin/reprocessing/letter/{letter.pk}/s3", **given))


@pytest.mark.soak
def test_the_body_is_shown_on_request_recorded_and_not_stored(aws: Aws, bucket: str, ann: Client) -> None:
    aws.s3.put_object(Bucket=bucket, Key="orders/1", Body=b'{"total": 90817}')
    letter = _pointing(bucket)
    page = revealed(ann, letter)
    assert (f'action="/admin/reprocessing/letter/{letter.pk}/s3#in-s3"' in page, "90817" in page) == (True, False)
    shown = _shown(ann, letter)
    assert ('"total": 90817' in shown, "16 bytes from S3, shown as JSON" in shown) == (True, True)
    acts = AuditEntry.objects.filter(act="revealed").order_by("pk").values_list("by", "reason")
    assert list(acts)[-1] == ("ann", "Showed the body in S3.")
    assert b"90817" not in bytes(Payload.objects.get().body)


@pytest.mark.soak
def test_masked_fields_stay_masked_unless_they_are_revealed_with_a_reason(aws: Aws, bucket: str, ann: Client) -> None:
    aws.s3.put_object(Bucket=bucket, Key="orders/1", Body=b'{"card": "4111", "total": 1}')
    letter = _pointing(bucket)
    DeadLetterQueue.objects.update(masked_fields=["card"])
    shown = _shown(ann, letter, reveal_reason="I want to")
    assert ("4111" in shown, '"card": "[masked]"' in shown) == (False, True)
    zoe = person("zoe", *SEES, "reveal_payload")
    assert "4111" not in _shown(zoe, letter)
    assert '"card": "4111"' in _shown(zoe, letter, reveal_reason="a customer asked")
    last = AuditEntry.objects.latest("pk")
    assert (last.by, last.reason, last.after) == ("zoe", "a customer asked", {"revealed": True})


def test_what_is_too_large_is_not_shown_and_the_page_says_how_to_read_it(
    aws: Aws, bucket: str, ann: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_s3_body, "MOST", 10)
    aws.s3.put_object(Bucket=bucket, Key="o'1; rm", Body=b"x" * 11)
    shown = _shown(ann, _pointing(bucket, "o'1; rm"))
    told = f"The body in S3 has 11 bytes; at most 10 are shown. To read it: aws s3 cp 's3://{bucket}/o'\"'\"'1; rm' -"
    assert (told in shown, "x" * 11 in shown) == (True, False)


def test_an_object_that_is_gone_is_named(bucket: str, ann: Client) -> None:
    shown = _shown(ann, _pointing(bucket))
    assert f'S3 has no object "orders/1" in the bucket {bucket}. It may have been deleted' in shown


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Denied("AccessDenied"), "(AccessDenied). The role arn:aws:iam::1:role/r needs s3:GetObject for it"),
        (Denied("AccessDenied"), "To print the policy, use the command iam_policy with --bucket bodies"),
        (NoAnswer("Timeout"), 'S3 did not return object "orders/1" in the bucket bodies: Timeout. Try again.'),
    ],
    ids=["denied", "cure", "silent"],
)  # fmt: skip
def test_what_s3_refuses_is_said_with_what_is_missing(
    ann: Client, monkeypatch: pytest.MonkeyPatch, answer: ReadObject, why: str
) -> None:
    asked: list[tuple[str, str]] = []

    def refuses(_: object, region: str, role: str, *, most: int) -> ReadObject:
        asked.append((region, role))
        return answer

    monkeypatch.setattr(read_s3_body, "read_object", refuses)
    letter = _pointing("bodies")
    DeadLetterQueue.objects.update(role_arn="arn:aws:iam::1:role/r")
    assert why in _shown(ann, letter)
    assert asked == [("us-east-1", "arn:aws:iam::1:role/r")]


def test_it_takes_the_permission_to_see_payloads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(read_s3_body, "read_object")
    letter, client = _pointing("bodies"), person("ben", *LOOKS)
    given = {"csrfmiddlewaretoken": token(client, "/admin/password_change/")}
    assert client.post(f"/admin/reprocessing/letter/{letter.pk}/s3", given).status_code == 403


@pytest.mark.soak
def test_a_message_with_its_own_body_is_not_asked_about(ann: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(read_s3_body, "read_object")
    letter = parked(dlq(), body=b"{}")
    assert f"/letter/{letter.pk}/s3" not in revealed(ann, letter)
    assert "Body in S3" not in _shown(ann, letter)
