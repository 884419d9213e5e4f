"""Marks are added where there is room, and the letter's own attributes stay unchanged."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.message.redrive_attributes import (
    Mark,
    MarkNames,
    attributes_size,
    attributes_to_send,
    earlier_attempts,
    is_name,
    marks,
    read_mark,
    with_trace,
)  # fmt: skip

NAMES = MarkNames()
MARK = Mark(UUID(int=7), 2)
MARKS = marks(NAMES, MARK, idempotency_key="k", message_id="m", reprocessed_from="shop-dlq")
ROOMY = 1_048_576


def own(count: int) -> dict[str, Attribute]:
    return {f"a{number}": Attribute("String", "x") for number in range(count)}


def test_marks_are_made_in_the_order_of_their_importance() -> None:
    assert [(name, one.value) for name, one in MARKS.items()] == [
        ("RedriveId", "00000000-0000-0000-0000-000000000007:2"), ("IdempotencyKey", "k"), ("OriginalMessageId", "m"),
        ("ReprocessedFrom", "shop-dlq"),
    ]  # fmt: skip
    names = MarkNames(redrive=None, idempotency_key="key")
    made = marks(names, MARK, idempotency_key="k", message_id="m", reprocessed_from="d")
    assert list(made) == ["key", "OriginalMessageId", "ReprocessedFrom"]


@pytest.mark.parametrize(("had", "put"), [(0, 4), (6, 4), (8, 2), (9, 1), (10, 0)])
def test_a_message_has_at_most_ten_attributes(had: int, put: int) -> None:
    leaving, names = attributes_to_send(own(had), MARKS, NAMES, space=ROOMY)
    assert names == list(MARKS)[:put]
    assert leaving == own(had) | {name: MARKS[name] for name in names}


def test_a_mark_without_room_is_left_out_and_a_smaller_one_is_not() -> None:
    had = own(1)
    space = attributes_size(had) + attributes_size({"ReprocessedFrom": MARKS["ReprocessedFrom"]})
    leaving, names = attributes_to_send(had, MARKS, NAMES, space=space)
    assert names == ["IdempotencyKey"]
    assert attributes_size(leaving) <= space


@given(st.integers(0, 300), st.integers(0, 12))
def test_no_letter_outgrows_its_space_or_loses_anything(space: int, had: int) -> None:
    leaving, names = attributes_to_send(own(had), MARKS, NAMES, space=space)
    assert leaving == own(had) | {name: MARKS[name] for name in names}
    assert not names or (attributes_size(leaving) <= space and len(leaving) <= 10)


def test_what_the_user_gave_is_never_overwritten() -> None:
    had = {name: Attribute("String", "mine") for name in MARKS}
    assert attributes_to_send(had, MARKS, NAMES, space=ROOMY) == (had, [])


def test_a_mark_of_an_earlier_redrive_is_replaced() -> None:
    had = {"RedriveId": Attribute("String", str(Mark(UUID(int=1), 1)))} | own(9)
    leaving, names = attributes_to_send(had, MARKS, NAMES, space=ROOMY)
    assert (read_mark(leaving, NAMES), names, len(leaving)) == (MARK, ["RedriveId"], 10)


def test_bytes_are_counted_as_in_sqs() -> None:
    assert (
        attributes_size({"é": Attribute("String", "ü"), "b": Attribute("Binary.x", b"\x00\xff")})
        == 2 + 6 + 2 + 1 + 8 + 2
    )


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("String", "somebody's"), ("String", f"{UUID(int=7)}"), ("String", f"{UUID(int=7)}:0"),
        ("String", f"{UUID(int=7)}:-1"), ("String", f"{UUID(int=7)}:9999999999"), ("String", f"{UUID(int=7)}:2\n"),
        ("Binary", f"{UUID(int=7)}:2".encode()),
    ],
)  # fmt: skip
def test_only_a_mark_of_this_service_is_read(kind: str, value: str | bytes) -> None:
    assert read_mark({"RedriveId": Attribute(kind, value)}, NAMES) is None


def test_marks_are_texts_and_an_empty_one_is_left_out() -> None:
    made = marks(NAMES, MARK, idempotency_key="", message_id="m", reprocessed_from="shop-dlq")
    texts = {"RedriveId": f"{UUID(int=7)}:2", "OriginalMessageId": "m", "ReprocessedFrom": "shop-dlq"}
    assert made == {name: Attribute("String", text) for name, text in texts.items()}
    assert list(made) == list(texts)


def test_a_mark_is_read_under_its_configured_name() -> None:
    assert read_mark(MARKS, NAMES) == MARK
    assert read_mark(MARKS, MarkNames(redrive="Other")) is None
    assert read_mark(MARKS, MarkNames(redrive=None)) is None


@pytest.mark.parametrize(
    ("texts", "attempts"),
    [
        ({}, 0), ({"redrive_attempt": "2"}, 2), ({"sqs-dlq-replay-nb": "3"}, 3),
        ({"redrive_attempt": "2", "sqs-dlq-replay-nb": "3"}, 5),
        ({"redrive_attempt": "-1", "sqs-dlq-replay-nb": "1.5"}, 0), ({"redrive_attempt": "٣"}, 0),
        ({"redrive_attempt": "9" * 5_000}, 0), ({"redrive_attempt": "999999999"}, 1_000),
        ({"redrive_attempt": b"2"}, 0),
    ],
)  # fmt: skip
def test_the_counters_of_earlier_tools_are_added(texts: dict[str, str | bytes], attempts: int) -> None:
    assert earlier_attempts({name: Attribute("Number", text) for name, text in texts.items()}) == attempts


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("Redrive-Id_1.x", True), ("a" * 256, True), ("a" * 257, False), ("", False), (".a", False), ("a.", False),
        ("a..b", False), ("AWS.a", False), ("amazon.a", False), ("a b", False),
    ],
)  # fmt: skip
def test_a_marks_name_is_one_that_sqs_accepts(text: str, good: bool) -> None:
    assert is_name(text) is good


NINE = {f"a{n}": "1" for n in range(9)}


@pytest.mark.parametrize(
    ("own", "trace", "space", "sent"),
    [
        ({"a": "1"}, {"traceparent": "p"}, 100, {"a": "1", "traceparent": "p"}),
        ({"TraceParent": "o", "tracestate": "o", "a": "1"}, {"traceparent": "p"}, 99, {"a": "1", "traceparent": "p"}),
        ({f"a{n}": "1" for n in range(10)}, {"traceparent": "p"}, 1_000, {f"a{n}": "1" for n in range(10)}),
        (NINE, {"traceparent": "p", "tracestate": "s"}, 999, NINE),
        ({"traceparent": "old"}, {"traceparent": "new"}, 19, {"traceparent": "old"}),
        ({"traceparent": "old"}, {"traceparent": "new"}, 20, {"traceparent": "new"}),
    ],
)  # fmt: skip
def test_a_trace_replaces_the_messages_own_if_it_fits(
    own: dict[str, str], trace: dict[str, str], space: int, sent: dict[str, str]
) -> None:
    found = with_trace({name: Attribute("String", text) for name, text in own.items()}, trace, space=space)
    assert {name: attribute.value for name, attribute in found.items()} == sent
