"""The trace of a message is found wherever its producer put it, and the producer's own context comes first."""

from __future__ import annotations

import json

import pytest

from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.sources.message_trace import contexts
from tests import envelopes

SPAN = "00f067aa0ba902b7"
OWN, NOTIFIED, OF_TASK, XRAY = (f"{n}{'a' * 31}" for n in (1, 2, 3, 4))


def parent(trace: str) -> str:
    return f"00-{trace}-{SPAN}-01"


def attributes(trace: str, name: str = "traceparent") -> dict[str, Attribute]:
    return {name: Attribute("String", parent(trace)), "tracestate": Attribute("String", "a=1")}


def system(trace: str) -> dict[str, str]:
    return {"AWSTraceHeader": f"Root=1-{trace[:8]}-{trace[8:]};Parent={SPAN};Sampled=1"}


def notification() -> bytes:
    fields = {
        "Type": "Notification", "MessageId": "m-1", "TopicArn": "arn:aws:sns:eu-west-1:111122223333:orders",
        "Message": "hello", "Timestamp": "2026-01-01T00:00:00.000Z",
        "MessageAttributes": {"traceparent": {"Type": "String", "Value": parent(NOTIFIED)}},
    }  # fmt: skip
    return json.dumps(fields).encode()


def task() -> bytes:
    made = envelopes.opened(envelopes.task())
    made["headers"]["traceparent"] = parent(OF_TASK)
    return envelopes.written(made)


@pytest.mark.parametrize(
    ("body", "named", "traced_by_aws", "is_task", "found"),
    [
        (b"hello", OWN, "", False, [OWN]),
        (b"hello", OWN, XRAY, False, [OWN, XRAY]),
        (b"hello", OWN, OWN, False, [OWN]),
        (b"hello", "", XRAY, False, [XRAY]),
        (notification(), "", XRAY, False, [NOTIFIED, XRAY]),
        (notification(), OWN, "", False, [OWN]),
        (task(), "", "", True, [OF_TASK]),
        (task(), OWN, "", True, [OWN]),
        (b"traceparent", "", "", False, []),
        (b"\xff", "", "", True, []),
    ],
)
def test_the_first_context_is_the_producers(
    body: bytes, named: str, traced_by_aws: str, is_task: bool, found: list[str]
) -> None:
    own, aws = attributes(named) if named else {}, system(traced_by_aws) if traced_by_aws else {}
    assert [f"{one.trace_id:032x}" for one in contexts(body, own, aws, is_task=is_task)] == found


def test_the_case_of_an_attributes_name_is_ignored() -> None:
    (found,) = contexts(b"", attributes(OWN, "TraceParent"), {}, is_task=False)
    assert (f"{found.trace_id:032x}", found.state) == (OWN, (("a", "1"),))
