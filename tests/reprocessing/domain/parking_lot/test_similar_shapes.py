"""Bodies with similar keys: which groups they join."""

from __future__ import annotations

from itertools import permutations
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.parking_lot import similar_shapes
from reprocessing.domain.parking_lot.similar_shapes import Shape, leaders


def shape(keys: str, *, n: int = 1, place: int = 0, leads: bool = True) -> Shape:
    return Shape(keys.encode(), tuple(keys.split()), n=n, place=place, leads=leads)


def joined(known: list[Shape], *new: Shape) -> dict[str, str]:
    return {one.decode(): other.decode() for one, other in leaders(known, new).items()}


def test_a_shape_that_differs_in_few_keys_joins_the_one_with_the_most_messages() -> None:
    assert joined([], shape("a b c d"), shape("a b c", n=9), shape("x y z")) == {"a b c d": "a b c"}
    assert joined([], shape("a"), shape("a b")) == {}


def test_a_key_that_all_shapes_have_says_less_than_a_rare_one() -> None:
    """Plain Jaccard finds 6 of 8 keys common in both pairs."""
    events = [shape(f"action enterprise installation organization repository sender {key}") for key in "ijklmnop"]
    assert joined([], *events) == {}
    assert joined(events, shape("action installation repository sender i")) == {
        "action installation repository sender i": "action enterprise installation organization repository sender i"
    }


def test_a_known_shape_comes_before_a_new_one_and_the_older_before_the_newer() -> None:
    known = [shape("a b c e", place=2), shape("a b c d", place=1)]
    assert joined(known, shape("a b c", n=9)) == {"a b c": "a b c d"}


def test_no_shape_joins_one_that_does_not_lead() -> None:
    assert joined([shape("a b c d", leads=False)], shape("a b c")) == {}


def test_the_order_in_which_shapes_are_read_changes_nothing() -> None:
    some = [shape("a b c d"), shape("a b c"), shape("b c d e"), shape("a c d e"), shape("x y")]
    assert len({str(sorted(joined([], *order).items())) for order in permutations(some)}) == 1


@pytest.mark.soak
@given(
    st.lists(st.frozensets(st.sampled_from("abcdef"), min_size=1).map(lambda keys: " ".join(sorted(keys))), unique=True)
)
def test_each_shape_leads_or_joins_one_that_leads(some: list[str]) -> None:
    found = joined([], *map(shape, some))
    assert set(found.values()) & set(found) == set()
    assert set(found) | set(found.values()) <= set(some)


def test_a_thousand_new_shapes_are_compared_only_with_shapes_that_have_many_of_their_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = Mock(wraps=similar_shapes._similarity)
    monkeypatch.setattr(similar_shapes, "_similarity", compared)
    known = [shape(" ".join(f"k{(no * step) % 997}" for step in range(1, 9)), place=no) for no in range(1, 997)]
    new = [shape(" ".join(f"k{(no * step) % 997}" for step in range(11, 19))) for no in range(1, 997)]
    leaders(known, new)
    assert compared.call_count < 2 * len(new)
