"""Whatever is to be sent, every load is one that SQS takes, nothing is left out, and groups keep their order."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.message.envelope import Attribute, OutgoingMessage
from reprocessing.gateways.sqs.batches import LARGEST, PackedMessage, batch_chains, size_of

_SIZES = st.one_of(st.integers(1, 300), st.integers(90_000, 300_000), st.integers(LARGEST - 2, LARGEST))
_LETTERS = st.lists(st.tuples(_SIZES, st.sampled_from(["a", "b", "c", "d", "e"])), max_size=60)


def parcels(letters: list[tuple[int, str]]) -> list[PackedMessage]:
    return [
        PackedMessage(OutgoingMessage(attempt=number, body=b"", attributes={}, group_id=group), "", size)
        for number, (size, group) in enumerate(letters)
    ]


@given(letters=_LETTERS, largest=st.sampled_from([1_024, 262_144, LARGEST]))
def test_loads_of_a_standard_queue_fit_and_hold_everything_once(letters: list[tuple[int, str]], largest: int) -> None:
    made = batch_chains(parcels(letters), fifo=False, largest=largest)
    loads = [load for chain in made for load in chain]
    assert all(len(chain) == 1 for chain in made)  # nothing waits for anything
    assert [one.message.attempt for load in loads for one in load] == list(range(len(letters)))
    for load in loads:
        assert 1 <= len(load) <= 10
        assert sum(one.size for one in load) <= LARGEST
        assert len(load) == 1 or all(one.size <= largest for one in load)


@given(letters=_LETTERS, largest=st.sampled_from([1_024, 262_144, LARGEST]))
def test_loads_of_a_fifo_queue_keep_each_group_in_one_chain_and_in_order(
    letters: list[tuple[int, str]], largest: int
) -> None:
    made = batch_chains(parcels(letters), fifo=True, largest=largest)
    orders = [[one.message for load in chain for one in load] for chain in made]
    assert Counter(one.attempt for order in orders for one in order) == Counter(range(len(letters)))
    for group in "abcde":
        chains_of_group = [[one.attempt for one in order if one.group_id == group] for order in orders]
        assert [one for one in chains_of_group if one] in ([], [[n for n, (_, g) in enumerate(letters) if g == group]])
    for load in [load for chain in made for load in chain]:
        assert 1 <= len(load) <= 10
        assert sum(one.size for one in load) <= LARGEST


def test_loads_are_filled_to_the_last_letter_and_the_last_byte() -> None:
    by_number = batch_chains(parcels([(1, "a")] * 20), fifo=False)
    assert [len(load) for chain in by_number for load in chain] == [10, 10]
    by_bytes = batch_chains(parcels([(LARGEST // 4, "a")] * 8), fifo=True)
    assert [[len(load) for load in chain] for chain in by_bytes] == [[4, 4]]
    small_groups = batch_chains(parcels([(1, f"group-{number // 2}") for number in range(20)]), fifo=True)
    assert [len(load) for chain in small_groups for load in chain] == [10, 10]


def test_the_size_is_what_sqs_counts() -> None:
    attributes = {"ké": Attribute("String.é", "ü"), "b": Attribute("Binary", b"\xff\x00")}
    assert size_of("ä".encode(), attributes) == 2 + (3 + 9 - 1 + 1 + 2) + (1 + 6 + 2)
