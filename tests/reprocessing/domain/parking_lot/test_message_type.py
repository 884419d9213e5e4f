"""The type of a message: where producers write it, and what is no type."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.message.identity import LetterFacts
from reprocessing.domain.parking_lot.message_type import LONGEST, message_type, type_value
from tests.reprocessing.domain.dead import texts


def found(body: Any = None, **attributes: str) -> str:  # noqa: ANN401  JSON
    return message_type(LetterFacts("m", json.dumps(body or {}).encode(), texts(**attributes), {}))


@pytest.mark.parametrize(
    "text",
    [
        "order.paid", "v1", "S3:ObjectCreated:Put", "EC2 Instance State-change Notification", "Merge Request Hook",
        "com.example.v2.OrderPlaced", "OrderPlacedV2", "customer.subscription.trial_will_end", "orders/create",
        "shop.tasks.ship", "ModifyDBInstanceAttribute", "AWSAccountIDUpdated", "iotJobOnDeviceDone", "INSERT",
        "user_2fa_enabled", "pull_request_review_comment",
    ],
)  # fmt: skip
def test_a_name_is_a_type(text: str) -> None:
    assert type_value(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "", "4711", "2026-01-02", "at 10:30", "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324", "aZ8kQ2mP9xL4", "ann@example.com",
        "cus_9s6XKzkNRiz8i3", "evt_1NG8Du2eZvKYlo2CUI79vXWy", "eyJhbGciOiJIUzI1NiJ9", "abcdefghijklmnopqrstuvwxyz",
        "user 4711222", "order 12 of 345", "of ann's", "one two three four five six", "a\u202eb", "a\nb", "Zoë",
        "<script>", "KtwtwKsxVbJTtnXolA", "zwx2bhkjktivwmin", "HH60ERFHNHGPDQQKERYZ", "key e8aafaed",
        "a." * (LONGEST // 2) + "a",
    ],
    ids=str.encode,
)  # fmt: skip
def test_an_id_a_date_or_a_sentence_is_no_type(text: str) -> None:
    assert type_value(text) == ""


@pytest.mark.parametrize(
    ("body", "attributes", "kind"),
    [
        ({"type": "b"}, {"event_type": "a"}, "a"),
        ({"event": "b"}, {"X-GitHub-Event": "issues", "type": "x"}, "issues"),
        ({}, {"ce-type": "com.shop.paid", "X-Event-Key": "x"}, "com.shop.paid"),
        ({}, {"x-shopify-topic": "a/b"}, "a/b"),
        ({"type": "b", "detail-type": "a"}, {}, "a"), ({"type": "b", "eventType": "a"}, {}, "a"),
        ({"__typename": "b", "type": "a"}, {}, "a"), ({"task": "b", "__typename": "a"}, {}, "a"),
        ({"type": "4711222", "task": "a"}, {"event": "2026-01-02"}, "a"), ({"event": {"type": "a"}}, {}, "a"),
        ({"headers": {"X-Gitlab-Event": "Push Hook"}, "body": "{}"}, {}, "Push Hook"),
        ({"Type": "Notification", "TopicArn": "t", "Message": '{"type": "a"}'}, {}, "a"),
        (
            {"Type": "Notification", "TopicArn": "t", "Message": "x", "MessageAttributes": {"event": {"Value": "a"}}},
            {}, "a",
        ),
        ({"Type": "Notification", "TopicArn": "t", "Message": "text"}, {}, ""), ({"kind": "a", "name": "b"}, {}, ""),
        (["type"], {}, ""), ({"type": ["a"], "event": 5}, {}, ""),
    ],
    ids=range(17),
)  # fmt: skip
def test_the_first_usual_name_with_a_type_is_read(body: Any, attributes: dict[str, str], kind: str) -> None:  # noqa: ANN401  JSON
    assert found(body, **attributes) == kind


@given(st.text(max_size=120), st.sampled_from(["type", "event", "X-A-Event"]))
def test_any_value_is_a_short_readable_type_or_none(text: str, name: str) -> None:
    kind = found({name: text})
    assert kind in {"", text}
    assert kind.isascii()
    assert kind.isprintable()
    assert len(kind) <= LONGEST
