"""Letters are published again, in order where there is an order, and each one's fate is told. Against moto."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.replay.verdicts import NotSent, Outcome, Refused, Taken, Unknown
from reprocessing.domain.sources.eventbridge_event import Event
from reprocessing.domain.sources.sns_notification import Publication
from reprocessing.gateways.aws_services import sns_eventbridge_publish
from tests.reprocessing.gateways.aws_stand_in import Aws
from tests.reprocessing.gateways.letters import kinds

TOPIC = "arn:aws:sns:us-east-1:123456789012:t"
BUS = "arn:aws:events:us-east-1:123456789012:event-bus/shop"
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def yes() -> bool:
    return True


def publish(topic: str, *some: Publication, may_start: Callable[[], bool] = yes) -> dict[int, Outcome]:
    return sns_eventbridge_publish.publish(topic, some, may_start=may_start)


def put(bus: str, *some: Event, may_start: Callable[[], bool] = yes) -> dict[int, Outcome]:
    return sns_eventbridge_publish.put(bus, some, may_start=may_start)


def message(attempt: int, text: str | None = None, group: str | None = None) -> Publication:
    named = None if group is None else f"attempt-{attempt}"
    return Publication(attempt=attempt, message=(text or str(attempt)).encode(), group_id=group, deduplication_id=named)


def event(attempt: int, detail: bytes = b"{}", **rest: Any) -> Event:  # noqa: ANN401
    return Event(attempt=attempt, **{"source": "shop.orders", "detail_type": "paid", **rest}, detail=detail)


class Asked:
    def __init__(self, answer: Callable[[list[dict[str, Any]]], dict[str, Any]]) -> None:
        self._answer = answer
        self.entries: list[list[dict[str, Any]]] = []

    def publish_batch(self, **asked: Any) -> dict[str, Any]:  # noqa: ANN401
        return self._said(asked["PublishBatchRequestEntries"])

    def put_events(self, **asked: Any) -> dict[str, Any]:  # noqa: ANN401
        return self._said(asked["Entries"])

    def _said(self, entries: list[dict[str, Any]]) -> dict[str, Any]:
        self.entries.append(entries)
        return self._answer(entries)


def all_published(entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {"Successful": [{"Id": one["Id"], "MessageId": one["Message"][:9]} for one in entries], "Failed": []}


def all_put(entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {"Entries": [{"EventId": str(number)} for number in range(len(entries))]}


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[list[dict[str, Any]]], dict[str, Any]]], Asked]:
    def ours(answer: Callable[[list[dict[str, Any]]], dict[str, Any]]) -> Asked:
        made = Asked(answer)
        monkeypatch.setattr("reprocessing.gateways.aws_services.sns_eventbridge_publish.sns_client", lambda *_: made)
        monkeypatch.setattr(
            "reprocessing.gateways.aws_services.sns_eventbridge_publish.eventbridge_client", lambda *_: made
        )
        return made

    return ours


def test_attributes_of_every_type_are_published_byte_for_byte(answering: Any) -> None:  # noqa: ANN401
    asked = answering(all_published)
    attributes = {"raw": Attribute("Binary", b"\2\xff"), "tags": Attribute("String.Array", '["a"]')}
    publish(TOPIC, Publication(attempt=1, message=b"m", attributes=attributes))
    assert asked.entries[0][0]["MessageAttributes"] == {
        "raw": {"DataType": "Binary", "BinaryValue": b"\2\xff"},
        "tags": {"DataType": "String.Array", "StringValue": '["a"]'},
    }


def test_a_subject_goes_along(aws: Aws) -> None:
    topic, queue = aws.topic(), aws.queue()
    aws.subscribe(topic, queue, raw=False)
    publish(topic, Publication(attempt=1, message=b"m", subject="About it"))
    [heard] = aws.heard(queue)
    assert {name: json.loads(heard["Body"])[name] for name in ("Message", "Subject")} == {
        "Message": "m", "Subject": "About it",
    }  # fmt: skip


def test_ten_messages_and_256_kib_travel_in_one_request(answering: Any) -> None:  # noqa: ANN401
    asked = answering(all_published)
    publish(TOPIC, *[message(number) for number in range(25)])
    assert sorted(len(entries) for entries in asked.entries) == [5, 10, 10]
    asked.entries.clear()
    publish(TOPIC, *[message(number, "x" * 100_000) for number in range(4)], message(5, "x" * 300_000))
    assert sorted(len(entries) for entries in asked.entries) == [1, 2, 2]


def test_only_a_fifo_topic_is_told_groups(answering: Any) -> None:  # noqa: ANN401
    asked = answering(all_published)
    publish(TOPIC, message(1, group="g"))
    publish(f"{TOPIC}.fifo", message(1, group="g"), message(2))
    assert asked.entries == [
        [{"Id": "0", "Message": "1"}],
        [{"Id": "0", "Message": "1", "MessageGroupId": "g", "MessageDeduplicationId": "attempt-1"}],
    ]


def test_each_entry_has_a_fate_of_its_own(answering: Any) -> None:  # noqa: ANN401
    def answer(_: object) -> dict[str, Any]:
        failed = [("1", "InvalidParameter"), ("2", "InternalError"), ("3", "Throttled"), ("0", "InternalError")]
        return {
            "Successful": [{"Id": "0", "MessageId": "a"}, {"Id": "4", "MessageId": "b"}],
            "Failed": [{"Id": one, "Code": code, "Message": "m", "SenderFault": True} for one, code in failed],
        }

    answering(answer)
    assert publish(TOPIC, *[message(number) for number in range(6)]) == {
        0: Unknown("SNS names it as taken and as failed"),
        1: Refused("InvalidParameter", "m", poison=True, quotes=True),
        2: Unknown("SNS failed: InternalError"),
        3: Refused("Throttled", "m"),
        4: Taken("b"),
        5: Unknown("the answer of SNS does not name it"),
    }


def test_what_may_not_start_is_not_sent(answering: Any) -> None:  # noqa: ANN401
    asked = answering(all_published)
    late = NotSent("no time was left to begin its request")
    assert publish(TOPIC, message(1), may_start=lambda: False) == {1: late}
    assert put(BUS, event(1), may_start=lambda: False) == {1: late}
    assert asked.entries == []


def test_what_is_no_text_or_lacks_a_group_is_refused_before_anything_is_sent(answering: Any) -> None:  # noqa: ANN401
    asked = answering(all_published)
    outcomes = publish(f"{TOPIC}.fifo", Publication(attempt=1, message=b"\xff"), message(2))
    assert [isinstance(one, Refused) and one.poison for one in outcomes.values()] == [True, False]
    assert asked.entries == []


def test_an_event_is_put_and_has_an_id(aws: Aws) -> None:
    """What it is put with is tested below: to hand events on, moto wants a package that nothing else needs."""
    outcomes = put(aws.bus(), event(5, b'{"total": 12}', resources=("arn:aws:s3:::a",), time=NOON), event(6))
    assert [isinstance(one, Taken) and bool(one.message_id) for one in outcomes.values()] == [True, True]


def test_ten_events_and_256_kb_travel_in_one_request_with_all_that_they_had(answering: Any) -> None:  # noqa: ANN401
    asked = answering(all_put)
    put(BUS, *[event(number) for number in range(25)])
    assert sorted(len(entries) for entries in asked.entries) == [5, 10, 10]
    asked.entries.clear()
    put(BUS, *[event(number, b'{"a":"' + b"x" * 100_000 + b'"}') for number in range(3)])
    assert sorted(len(entries) for entries in asked.entries) == [1, 2]
    asked.entries.clear()
    put(BUS, event(1, b'{"n": 1.00}', resources=("a",), time=NOON, trace_header="Root=1"), event(2))
    plain = {"EventBusName": BUS, "Source": "shop.orders", "DetailType": "paid", "Detail": "{}", "Resources": []}
    full = plain | {"Detail": '{"n": 1.00}', "Resources": ["a"], "Time": NOON, "TraceHeader": "Root=1"}
    assert asked.entries == [[full, plain]]


def test_each_event_has_a_fate_of_its_own_by_its_place(answering: Any) -> None:  # noqa: ANN401
    codes = ["NotAuthorizedForSourceException", "InternalFailure", "ThrottlingException", "MalformedDetail", ""]

    def answer(_: object) -> dict[str, Any]:
        failed = [{"ErrorCode": code, "ErrorMessage": "m"} for code in codes]
        return {"Entries": [{"EventId": "e"}, *failed]}

    answering(answer)
    assert put(BUS, *[event(number) for number in range(6)]) == {
        0: Taken("e"),
        1: Refused("NotAuthorizedForSourceException", "m", poison=True),
        2: Unknown("EventBridge failed: InternalFailure"),
        3: Refused("ThrottlingException", "m"),
        4: Refused("MalformedDetail", "m", poison=True, quotes=True),
        5: Refused("", "m", quotes=True),
    }
    answering(lambda _: {"Entries": [{"EventId": "e"}]})
    assert kinds(put(BUS, event(1), event(2))) == {1: "Unknown", 2: "Unknown"}
