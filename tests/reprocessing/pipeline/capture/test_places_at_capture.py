"""A letter is placed by the statement that writes it, by the keys that are in force then."""

from __future__ import annotations

from typing import Any

import pytest

from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.runs import plan
from reprocessing.store.capture import received_copies
from reprocessing.store.ordering import placement
from tests.reprocessing.pipeline.bench import Workbench
from tests.reprocessing.pipeline.interposed import happens_before

pytestmark = pytest.mark.django_db(transaction=True)


def _bench(**fields: Any) -> Workbench:  # noqa: ANN401  those of a dlq
    bench = Workbench(fields={"ordering_key": "attribute:key", **fields})
    bench.bury("{}", key="k", other="o")
    return bench


def test_a_letter_is_placed_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = _bench()
    monkeypatch.setattr(plan, "place_captured", lambda _, stop: plan.PlaceResult())
    bench.capture()
    letter = bench.letter()
    assert (letter.planned, letter.ordering_key, letter.blocked_reason, letter.single) == (True, "k", "", False)


def test_a_letter_is_placed_by_keys_that_changed_while_its_capture_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = _bench()

    def change_keys() -> None:
        DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(ordering_key="attribute:other")
        placement.place_again(bench.dlq.pk)

    happens_before(monkeypatch, received_copies, "admit", change_keys, once=True)
    bench.capture()
    assert (bench.letter().planned, bench.letter().ordering_key) == (True, "o")


def test_a_letter_from_an_unknown_source_is_blocked_after_its_capture() -> None:
    bench = _bench()
    bench.source.delete()
    bench.capture()
    assert (bench.letter().planned, bench.letter().blocked_reason) == (True, "unknown_source")
