"""What SQS charges is within the stated bounds, however messages are batched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.aws import pricing
from reprocessing.domain.aws.pricing import (
    BYTES_PER_CALL,
    BYTES_PER_REQUEST,
    MARKS_BYTES,
    MESSAGES_PER_CALL,
    Cost,
    IdleLoad,
    Prices,
)

SIZES = st.lists(st.integers(min_value=1, max_value=BYTES_PER_CALL - MARKS_BYTES), max_size=60)


def packed(sizes: list[int], cuts: list[bool]) -> list[list[int]]:
    """Calls of ten and a mebibyte at most, and shorter ones where a cut says so."""
    calls: list[list[int]] = []
    for number, size in enumerate(sizes):
        cut = number < len(cuts) and cuts[number]
        if not calls or cut or len(calls[-1]) == MESSAGES_PER_CALL or sum(calls[-1]) + size > BYTES_PER_CALL:
            calls.append([])
        calls[-1].append(size)
    return calls


@pytest.mark.soak
@given(SIZES, st.lists(st.booleans(), max_size=60), st.integers(0, MARKS_BYTES))
def test_sends_are_charged_within_their_bounds(sizes: list[int], cuts: list[bool], added: int) -> None:
    calls = packed([size + added for size in sizes], cuts)
    found = pricing.cost_of_sends(len(sizes), sum(sizes), longest=0, each=1)
    assert found.least <= sum(pricing.charged_requests(sum(call)) for call in calls) <= found.most


@given(SIZES, st.lists(st.booleans(), max_size=60))
def test_receives_are_charged_within_their_bounds(sizes: list[int], cuts: list[bool]) -> None:
    calls = packed(sizes, cuts)
    found = pricing.cost_of_capture(len(sizes), sum(sizes), receivers=2, each=1)
    asked = 1 + sum(pricing.charged_requests(sum(call)) for call in calls) + pricing.EMPTY_RECEIVES * 2
    assert found.least <= asked <= found.most


@given(st.integers(0, 10_000), st.lists(st.booleans(), max_size=60))
def test_deletes_are_charged_within_their_bounds(copies: int, cuts: list[bool]) -> None:
    found = pricing.cost_of_deletes(copies, each=1)
    assert found.least <= len(packed([1] * copies, cuts)) <= found.most


@pytest.mark.parametrize(
    ("size", "units"), [(0, 1), (1, 1), (BYTES_PER_REQUEST, 1), (BYTES_PER_REQUEST + 1, 2), (BYTES_PER_CALL, 16)]
)
def test_every_64_kib_that_are_begun_are_one_request(size: int, units: int) -> None:
    assert pricing.charged_requests(size) == units


def test_letters_of_one_lane_are_sent_in_separate_calls() -> None:
    assert pricing.cost_of_sends(100, 100, longest=1, each=0).least == 10
    assert pricing.cost_of_sends(100, 100, longest=40, each=0).least == 40


def test_prices_are_per_million_requests_with_an_own_price_for_fifo() -> None:
    assert Prices().of(fifo=False) * 1e6 == pytest.approx(0.40)
    assert Prices().of(fifo=True) * 1e6 == pytest.approx(0.50)
    words = "1,000,000 to 2,000,000 AWS requests, $0.40 to $0.80"
    assert pricing.in_words(Cost.of(1_000_000, 2_000_000, each=0.4e-6)) == words
    assert pricing.in_words(Cost.of(1, 1, each=0.4e-6)) == "1 AWS request, less than $0.01"
    assert pricing.in_words(Cost.of(3, 30, each=0.4e-6)) == "3 to 30 AWS requests, less than $0.01"


def test_polling_costs_a_request_a_turn_and_three_a_task() -> None:
    nothing = IdleLoad(0.0)
    assert nothing.requests == pytest.approx(3 * 0.6 + 3 / 20)
    assert IdleLoad(5.0).requests - nothing.requests == pytest.approx(5.0 + 3 * 0.5)
    assert IdleLoad(0.1).requests - nothing.requests == pytest.approx(0.1 + 3 * 0.1)
    assert IdleLoad(100.0).requests - nothing.requests == pytest.approx(100.0 + 3 * 5.0)
    assert nothing.cost_of_day(each=1).least == round(nothing.requests * 86_400)


def test_costs_of_25_messages_of_100_kib() -> None:
    size = 25 * 102_400
    assert pricing.cost_of_sends(25, size, longest=1, each=2.0) == Cost(40, 64, 80.0, 128.0)
    assert pricing.cost_of_capture(25, size, receivers=2, each=1.0) == Cost(47, 78, 47.0, 78.0)
    assert pricing.cost_of_native_redrive(25, each=1.0) == Cost(10, 76, 10.0, 76.0)
    assert pricing.cost_of_deletes(25, each=1.0) == Cost(3, 25, 3.0, 25.0)
    assert pricing.cost_of_sends(0, 0, longest=0, each=1.0) == Cost()
    assert Cost(1, 2, 3.0, 4.0) + Cost(10, 20, 30.0, 40.0) == Cost(11, 22, 33.0, 44.0)
