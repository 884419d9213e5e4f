"""An event is read with all that is needed to put it again, or there is a reason."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.sources import eventbridge_event
from reprocessing.domain.sources.eventbridge_event import Event
from tests.reprocessing.domain.dead import EVENT, PAYLOAD

NO_EVENT = Unreadable("it is not an EventBridge event: it lacks a source, a detail-type or a detail")
NO_LIST = Unreadable("it is not an EventBridge event: its resources are no list of texts, or its time is not valid")


def test_an_event_is_read_with_its_detail_byte_for_byte() -> None:
    assert eventbridge_event.read(EVENT, attempt=3, trace_header="Root=1") == Event(
        attempt=3, source="shop.orders", detail_type="order.paid", detail=PAYLOAD, resources=("arn:aws:s3:::a",),
        time=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), trace_header="Root=1",
    )  # fmt: skip


def test_the_size_is_counted_as_by_aws() -> None:
    read = eventbridge_event.read(EVENT, attempt=1)
    assert isinstance(read, Event)
    assert read.size == 14 + len("shop.orders") + len("order.paid") + len(PAYLOAD) + len("arn:aws:s3:::a")
    assert Event(attempt=1, source="ä", detail_type="b", detail=b"{}").size == 5


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b'"source"', b'"origin"', NO_EVENT),
        (b'"order.paid"', b'""', NO_EVENT),
        (b'"detail":' + PAYLOAD, b'"detail":"x"', NO_EVENT),
        (b'"detail":' + PAYLOAD, b'"x":1', NO_EVENT),
        (b'["arn:aws:s3:::a"]', b"[1]", NO_LIST),
        (b'["arn:aws:s3:::a"]', b"[" + b"9" * 5_000 + b"]", Unreadable(NO_LIST.why)),
        (b'["arn:aws:s3:::a"]', b'["\\ud800"]', NO_LIST),
        (b'["arn:aws:s3:::a"]', b'"a"', NO_LIST),
        (b'"2026-01-02T03:04:05Z"', b'"yesterday"', NO_LIST),
        (b'"2026-01-02T03:04:05Z"', b'"0001-01-01T00:00:00+14:00"', NO_LIST),  # no request could be written with it
        (b'"2026-01-02T03:04:05Z"', b'"9999-12-31T23:59:59-14:00"', NO_LIST),
        (b'"2026-01-02T03:04:05Z"', b'"1969-12-31T23:59:59Z"', NO_LIST),
    ],
)
def test_other_bodies_are_no_event_with_a_reason(old: bytes, new: bytes, why: Unreadable) -> None:
    assert eventbridge_event.read(EVENT.replace(old, new), attempt=1) == why


@given(st.binary())
def test_no_bytes_make_reading_raise(body: bytes) -> None:
    eventbridge_event.read(body, attempt=1)
