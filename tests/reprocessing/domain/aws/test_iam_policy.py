"""Policies allow the calls of each use, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reprocessing.domain.aws.iam_policy import Purpose, ResourceUse, kms_key_arn, policies, trust_policy

DLQ, BUS = "arn:aws:sqs:eu-west-1:1:orders-dlq", "arn:aws:events:eu-west-1:1:event-bus/main"
BUCKET, ROLE, KMS = "arn:aws:s3:::bodies", "arn:aws:iam::2:role/abroad", "arn:aws:kms:eu-west-1:1:"
ACTS = [
    ResourceUse(Purpose.TAKE, DLQ), ResourceUse(Purpose.TAKE, f"{DLQ}-2"), ResourceUse(Purpose.TAKE, DLQ),
    ResourceUse(Purpose.OBJECTS, BUCKET),
    ResourceUse(Purpose.ENCRYPT, f"{KMS}alias/redrive", within="eu-west-1", acting=True),
]  # fmt: skip
OBSERVES = [
    ResourceUse(Purpose.WATCH, DLQ, ROLE), ResourceUse(Purpose.RULES, BUS),
    ResourceUse(Purpose.DECRYPT, f"{KMS}key/1", within="eu-west-1"),
    ResourceUse(Purpose.METRICS, "*", within="Redrive"), ResourceUse(Purpose.AGES, "*", within="eu-west-1"),
    ResourceUse(Purpose.AGES, "*", within="us-east-1"),
]  # fmt: skip


def test_a_policy_allows_the_calls_of_each_use_and_an_observing_service_may_only_look() -> None:
    found = policies([*ACTS, *OBSERVES], acts=True)
    assert found == json.loads((Path(__file__).parent / "policies.json").read_text())
    acting = {"ReceiveAndDeleteFromDlqs", "ReadS3Objects", "EncryptWithKeys"}
    looks = [statement for statement in found[""]["Statement"] if statement["Sid"] not in acting]
    assert policies([*ACTS, *OBSERVES], acts=False) == {**found, "": {**found[""], "Statement": looks}}


def test_a_role_trusts_the_service_in_its_own_sessions() -> None:
    ((statement,), version) = trust_policy(ROLE)["Statement"], trust_policy(ROLE)["Version"]
    assert (statement["Sid"], statement["Effect"], version) == ("AllowServiceToAssumeRole", "Allow", "2012-10-17")
    assert (statement["Principal"], statement["Action"]) == ({"AWS": ROLE}, "sts:AssumeRole")
    assert statement["Condition"] == {"StringEquals": {"sts:RoleSessionName": "redrive"}}


@pytest.mark.parametrize(
    ("key", "arn"),
    [
        ("alias/aws/sqs", None), (f"{KMS}alias/aws/sqs", None), (f"{KMS}key/9", f"{KMS}key/9"),
        ("alias/redrive", "arn:aws:kms:eu-west-1:111122223333:alias/redrive"),
        ("1234-abcd", "arn:aws:kms:eu-west-1:111122223333:key/1234-abcd"),
    ],
)  # fmt: skip
def test_a_key_is_named_by_its_arn_unless_everybody_may_use_it(key: str, arn: str | None) -> None:
    assert kms_key_arn("arn:aws:sqs:eu-west-1:111122223333:orders", key) == arn
    assert kms_key_arn("no arn", key) is None
