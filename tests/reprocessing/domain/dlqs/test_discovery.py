"""A discovery covers the queues of one account and region that have its prefix and its tags."""

from __future__ import annotations

from typing import Any

import pytest

from reprocessing.domain.dlqs.discovery import Scope

ARN = "arn:aws:sqs:eu-west-1:111122223333:orders-dlq"
ROLE = "arn:aws:iam::111122223333:role/redrive"
OTHER_ROLE = "arn:aws:iam::444455556666:role/redrive"


@pytest.mark.parametrize(
    ("scope", "queue", "covers"),
    [
        ({}, {}, True),
        ({"region": "us-east-1"}, {}, False),
        ({"prefix": "orders"}, {}, True),
        ({"prefix": "shop"}, {}, False),
        ({"role": ROLE}, {}, True),
        ({"role": ROLE}, {"found_with": OTHER_ROLE}, True),
        ({"role": OTHER_ROLE}, {}, False),
        ({}, {"found_with": ROLE}, False),
        ({"tags": {"team": "a"}}, {"tags": {"team": "a", "x": "1"}}, True),
        ({"tags": {"team": "a"}}, {"tags": {"team": "b"}}, False),
        ({"tags": {"team": "a"}}, {"tags": None}, False),
        ({}, {"tags": {"team": "a"}}, True),
        ({}, {"arn": "https://sqs.eu-west-1.amazonaws.com/1/orders-dlq"}, False),
    ],
    ids=[
        "all", "other region", "prefix", "other prefix", "role of the account", "found with another role",
        "role of another account", "own account and found with a role", "tags", "other tags", "tags not read",
        "tags are not asked for", "no ARN",
    ],
)  # fmt: skip
def test_a_queue_belongs_to_a_scope_by_account_region_name_and_tags(
    scope: dict[str, Any], queue: dict[str, Any], *, covers: bool
) -> None:
    asked = {"arn": ARN, "tags": {}} | queue
    assert Scope(**{"region": "eu-west-1"} | scope).covers(**asked) is covers
