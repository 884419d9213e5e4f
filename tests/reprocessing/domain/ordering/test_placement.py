"""Every letter has one place: a lane, and a position in it."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.errors import InvalidSelector
from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.message.identity import LetterFacts, TooLong, key_hash
from reprocessing.domain.ordering.placement import (
    SORT_KEY_LENGTH,
    KeyPolicy,
    LetterPlace,
    choose_place,
    read_sort_key,
    sort_key,
)
from reprocessing.domain.replay.verdicts import Park


def key(text: str) -> bytes:
    made = sort_key(text)
    assert isinstance(made, str)
    return made.encode()


def placed(policy: KeyPolicy, facts: LetterFacts) -> LetterPlace:
    found = choose_place(policy, facts)
    assert isinstance(found, LetterPlace)
    return found


exponents = st.integers(-400, 400).map(lambda power: f"e{power}") | st.just("")
numbers = st.builds(
    "{}{}{}{}".format, st.sampled_from(["", "-", "+", "00", "-0"]), st.integers(0, 10**40) | st.integers(0, 30),
    st.just("") | st.integers(0, 10**20).map(lambda digits: f".{digits}"), exponents,
)  # fmt: skip


@given(numbers, numbers)
def test_numbers_stand_in_the_order_of_their_values(one: str, other: str) -> None:
    assert (key(one) < key(other)) == (Decimal(one) < Decimal(other))
    assert (key(one) == key(other)) == (Decimal(one) == Decimal(other))


not_numbers = st.text(max_size=100).filter(lambda text: not any(char.isdigit() for char in text))


@pytest.mark.soak
@given(numbers, not_numbers, not_numbers)
def test_texts_are_sorted_after_numbers(number: str, one: str, other: str) -> None:
    assert key(number) < key(one)
    assert (key(one) < key(other)) == (one.encode() < other.encode())


@pytest.mark.soak
@given(numbers)
def test_a_numbers_key_is_read_back_as_that_number(number: str) -> None:
    read = read_sort_key(key(number).decode())
    assert Decimal(read) == Decimal(number)
    assert key(read) == key(number)


@given(not_numbers)
def test_a_texts_key_is_read_back_as_that_text(text: str) -> None:
    assert read_sort_key(key(text).decode()) == text


@pytest.mark.parametrize("told", ["1", "-1.5", "0", "1700000000000", "0.5", "0.005", "2026-01-01", "1.5e99", "-2e-400"])
def test_a_key_is_read_back_as_people_write_it(told: str) -> None:
    assert read_sort_key(key(told).decode()) == told


@pytest.mark.parametrize("other", ["", "000000005", "2", "0~", "x", "25000000000000001~"])
def test_a_text_that_is_no_sort_key_is_returned_unchanged(other: str) -> None:
    assert read_sort_key(other) == other


def test_examples_of_all_kinds_are_sorted() -> None:
    texts = ["-1e3", "-2", "-1.5", "-1", "0", "1e-9", "0.5", "1", "9", "10", "1e3", "2026-01-01", "2026-02-01", "a"]
    assert all(key(one) < key(other) for one, other in pairwise(texts))


@pytest.mark.parametrize(("one", "other"), [("1", "1.0"), ("007", "7"), ("-0", "0"), ("1e3", "1000"), ("+5", "5")])
def test_equal_numbers_have_equal_keys(one: str, other: str) -> None:
    assert key(one) == key(other)


def test_a_key_that_is_too_long_is_refused() -> None:
    assert sort_key("x" * (SORT_KEY_LENGTH - 1)) == "3" + "x" * (SORT_KEY_LENGTH - 1)
    assert sort_key("x" * SORT_KEY_LENGTH) == TooLong(SORT_KEY_LENGTH, SORT_KEY_LENGTH)
    assert sort_key("9" * SORT_KEY_LENGTH) == TooLong(SORT_KEY_LENGTH, SORT_KEY_LENGTH)
    assert sort_key("9" * 10_000 + "e" + "9" * 10_000) == TooLong(20_001, SORT_KEY_LENGTH)


def letter(*, body: bytes = b"{}", system: dict[str, str] | None = None, **attributes: str) -> LetterFacts:
    given = {name: Attribute("String", text) for name, text in attributes.items()}
    return LetterFacts("m-1", body, given, {"SentTimestamp": "17"} if system is None else system)


def test_letters_of_a_standard_dlq_are_single_unless_a_key_is_named() -> None:
    found = placed(KeyPolicy.of(fifo=False), letter())
    assert (found.key, found.single, found.sequence, found.idempotency_key) == (None, True, sort_key("17"), "m-1")


def test_letters_of_a_fifo_dlq_are_ordered_by_sequence_number_in_their_group() -> None:
    system = {"MessageGroupId": "g", "SequenceNumber": "18849496460467696128", "SentTimestamp": "17"}
    assert choose_place(KeyPolicy.of(fifo=True), letter(system=system)) == LetterPlace(
        "g", key_hash("g"), single=False, sequence=key("18849496460467696128").decode(), idempotency_key="m-1"
    )


def test_the_keys_that_a_dlq_names_are_read() -> None:
    policy = KeyPolicy.of(fifo=False, ordering="attribute:account", sequence="body:no", idempotency="attribute:event")
    assert choose_place(policy, letter(body=b'{"no": 12}', account="a", event="e")) == LetterPlace(
        "a", key_hash("a"), single=False, sequence=key("12").decode(), idempotency_key="e"
    )


KEYED = KeyPolicy.of(fifo=False, ordering="attribute:account")
LANED = KeyPolicy.of(fifo=False, ordering="attribute:account", missing_key="lane")
BY_BODY = KeyPolicy.of(fifo=False, ordering="body:account", missing_key="lane")
LONG = Park(ParkedReason.NO_ORDERING_KEY, "The value of attribute:account is 1025 characters long; the limit is 1024.")
NUL = Park(
    ParkedReason.NO_ORDERING_KEY, "attribute:account cannot be read: the key holds a NUL or half a surrogate pair."
)


@pytest.mark.parametrize(
    ("policy", "facts", "parked"),
    [
        (KEYED, letter(), Park(ParkedReason.NO_ORDERING_KEY, "attribute:account finds no key.")),
        (KEYED, letter(account="x" * 1025), LONG),
        (LANED, letter(account="x" * 1025), LONG),
        (KEYED, letter(account="a\0"), NUL),
        (
            BY_BODY, letter(body=b"[NaN]"),
            Park(ParkedReason.UNREADABLE_BODY, "body:account cannot be read: NaN is not a JSON number."),
        ),
        (KEYED, letter(account="a", system={}), Park(ParkedReason.NO_SEQUENCE, "system:SentTimestamp finds no key.")),
        (
            KeyPolicy.of(fifo=False, ordering="attribute:account", sequence="attribute:at"),
            letter(account="a", at="x" * 301),
            Park(ParkedReason.NO_SEQUENCE, "The value of attribute:at is 301 characters long; the limit is 300."),
        ),
        (
            KeyPolicy.of(fifo=False, idempotency="attribute:event", missing_key="lane"), letter(),
            Park(ParkedReason.NO_IDEMPOTENCY_KEY, "attribute:event finds no key."),
        ),
    ],
)  # fmt: skip
def test_a_letter_whose_place_is_not_known_is_parked_with_the_reason(
    policy: KeyPolicy, facts: LetterFacts, parked: Park
) -> None:
    assert choose_place(policy, facts) == parked


def test_a_letter_without_its_key_gets_its_own_lane_if_the_dlq_says_so() -> None:
    alone, keyed = placed(LANED, letter()), placed(LANED, letter(account="a"))
    assert (alone.key, alone.single, keyed.key, keyed.single) == (None, True, "a", False)


def test_a_single_letter_needs_no_sequence() -> None:
    assert placed(KeyPolicy.of(fifo=False), letter(system={})).sequence == ""


def test_a_single_lane_is_never_a_keyed_one() -> None:
    alone = placed(LANED, letter())
    for forged in ("m-1", "single:m-1", "\0single\0m-1"):
        keyed = choose_place(LANED, letter(account=forged))
        assert not isinstance(keyed, LetterPlace) or keyed.key_hash != alone.key_hash
    assert placed(LANED, LetterFacts("m-2", b"", {}, {})).key_hash != alone.key_hash


@pytest.mark.parametrize("word", ["sequence", "idempotency"])
def test_only_the_ordering_key_can_be_none(word: str) -> None:
    with pytest.raises(InvalidSelector, match="is always needed"):
        KeyPolicy.of(fifo=False, **{word: "none"})
