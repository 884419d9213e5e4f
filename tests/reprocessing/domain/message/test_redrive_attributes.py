"""Marks are added where there is room, and what the letter had stays as it was."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.message.redrive_attributes import (
    Mark,
    MarkNames,
    addressed,
    earlier_attempts,
    is_name,
    marks,
    read_mark,
    size,
)

NAMES = MarkNames()
MARK = Mark(UUID(int=7), 2)
MARKS = marks(NAMES, MARK, idempotency_key="k", message_id="m", reprocessed_from="shop-dlq")
ROOMY = 1_048_576


def own(count: int) -> dict[str, Attribute]:
    return {f"a{number}": Attribute("String", "x") for number in range(count)}


def test_the_marks_come_in_the_order_of_their_need() -> None:
    assert {name: one.value for name, one in MARKS.items()} == {
        "RedriveId": "00000000-0000-0000-0000-000000000007:2",
        "IdempotencyKey": "k",
        "OriginalMessageId": "m",
        "ReprocessedFrom": "shop-dlq",
    }
    assert list(MARKS) == ["RedriveId", "IdempotencyKey", "OriginalMessageId", "ReprocessedFrom"]


def test_a_mark_that_is_switched_off_is_not_made() -> None:
    names = MarkNames(redrive=None, idempotency_key="key")
    made = marks(names, MARK, idempotency_key="k", message_id="m", reprocessed_from="d")
    assert list(made) == ["key", "OriginalMessageId", "ReprocessedFrom"]


@pytest.mark.parametrize(("had", "put"), [(0, 4), (6, 4), (8, 2), (9, 1), (10, 0)])
def test_ten_attributes_are_the_most(had: int, put: int) -> None:
    leaving, names = addressed(own(had), MARKS, NAMES, space=ROOMY)
    assert names == list(MARKS)[:put]
    assert leaving == own(had) | {name: MARKS[name] for name in names}


def test_a_mark_that_does_not_fit_is_left_out_and_a_smaller_one_is_not() -> None:
    had = own(1)
    space = size(had) + size({"ReprocessedFrom": MARKS["ReprocessedFrom"]})
    leaving, names = addressed(had, MARKS, NAMES, space=space)
    assert names == ["IdempotencyKey"]
    assert size(leaving) <= space


@given(st.integers(0, 300), st.integers(0, 12))
def test_no_letter_outgrows_its_space_or_loses_anything(space: int, had: int) -> None:
    leaving, names = addressed(own(had), MARKS, NAMES, space=space)
    assert leaving == own(had) | {name: MARKS[name] for name in names}
    assert not names or (size(leaving) <= space and len(leaving) <= 10)


def test_what_the_user_gave_is_never_overwritten() -> None:
    had = {name: Attribute("String", "mine") for name in MARKS}
    assert addressed(had, MARKS, NAMES, space=ROOMY) == (had, [])


def test_a_mark_of_an_earlier_redrive_gives_way() -> None:
    had = {"RedriveId": Attribute("String", str(Mark(UUID(int=1), 1)))} | own(9)
    leaving, names = addressed(had, MARKS, NAMES, space=ROOMY)
    assert (read_mark(leaving, NAMES), names, len(leaving)) == (MARK, ["RedriveId"], 10)


def test_bytes_are_counted_as_sqs_counts_them() -> None:
    assert size({"é": Attribute("String", "ü"), "b": Attribute("Binary.x", b"\x00\xff")}) == 2 + 6 + 2 + 1 + 8 + 2


@pytest.mark.parametrize(
    "attribute",
    [
        Attribute("String", "somebody's"),
        Attribute("String", str(UUID(int=7))),
        Attribute("String", f"{UUID(int=7)}:0"),
        Attribute("String", f"{UUID(int=7)}:-1"),
        Attribute("String", f"{UUID(int=7)}:9999999999"),
        Attribute("String", f"{UUID(int=7)}:2\n"),
        Attribute("Binary", f"{UUID(int=7)}:2".encode()),
    ],
)
def test_only_a_mark_of_ours_is_read(attribute: Attribute) -> None:
    assert read_mark({"RedriveId": attribute}, NAMES) is None


def test_a_mark_is_read_under_the_name_it_has() -> None:
    assert read_mark(MARKS, NAMES) == MARK
    assert read_mark(MARKS, MarkNames(redrive="Other")) is None
    assert read_mark(MARKS, MarkNames(redrive=None)) is None


@pytest.mark.parametrize(
    ("texts", "attempts"),
    [
        ({}, 0),
        ({"redrive_attempt": "2"}, 2),
        ({"sqs-dlq-replay-nb": "3"}, 3),
        ({"redrive_attempt": "2", "sqs-dlq-replay-nb": "3"}, 5),
        ({"redrive_attempt": "-1", "sqs-dlq-replay-nb": "1.5"}, 0),
        ({"redrive_attempt": "٣"}, 0),
        ({"redrive_attempt": "9" * 5_000}, 0),
        ({"redrive_attempt": "999999999"}, 1_000),
    ],
)
def test_the_counters_of_earlier_tools_count(texts: dict[str, str], attempts: int) -> None:
    assert earlier_attempts({name: Attribute("Number", text) for name, text in texts.items()}) == attempts


def test_a_binary_counter_counts_nothing() -> None:
    assert earlier_attempts({"redrive_attempt": Attribute("Binary", b"2")}) == 0


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("Redrive-Id_1.x", True),
        ("a" * 256, True),
        ("a" * 257, False),
        ("", False),
        (".a", False),
        ("a.", False),
        ("a..b", False),
        ("AWS.a", False),
        ("amazon.a", False),
        ("a b", False),
    ],
)
def test_a_marks_name_is_one_that_sqs_takes(text: str, good: bool) -> None:
    assert is_name(text) is good
