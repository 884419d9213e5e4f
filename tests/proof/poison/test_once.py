"""Every payload once: it arrives byte for byte, or waits with its reason, and its batch-mates arrive."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from tests.proof.poison import cycle
from tests.proof.poison.corpus import CORPUS
from tests.proof.poison.station import STANDARD

pytestmark = pytest.mark.django_db(transaction=True)


def test_every_payload_arrives_as_it_was_or_is_held_by_the_rule_that_cannot_read_it(
    transactional_db: None, caplog: pytest.LogCaptureFixture
) -> None:
    done = cycle.run(STANDARD, cycle.batches(STANDARD, zip(CORPUS.values(), _places(), strict=False)), caplog)
    assert done.problems == {}
    held = sum(one.guarded for one in CORPUS.values())
    assert sum(len(one) for one in done.trips) == len(done.buried) - held - sum(one.spent for one in CORPUS.values())
    cycle.without_rules(done)
    assert done.problems == {}


def test_no_two_payloads_are_one() -> None:
    told = {(one.body, repr(sorted(one.attributes.items())), one.group, one.trace) for one in CORPUS.values()}
    assert (len(told), len(CORPUS) >= 260) == (len(CORPUS), True)


def _places() -> Iterator[int]:
    """Eight of each batch are poison; the two mates are somewhere else each time."""
    for turn in count():
        yield from (place for place in range(cycle.TEN) if place % 5 != turn % 5)
