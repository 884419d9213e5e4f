"""The list of runs reads the messages and the minutes of its runs, and of no others."""

from __future__ import annotations

from typing import Final

import pytest

from reprocessing.models import Run
from reprocessing.store.runs import run_list
from tests.reprocessing.store.explained import explained
from tests.reprocessing.store.seeded_letters import nothing_is_vacuumed, with_statistics
from tests.reprocessing.store.stock import NOW, Stock

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]

#: Letters of another run, in about 100 pages; and buffers that the statement may read.
LETTERS: Final = 3_000
MOST: Final = 20


@pytest.mark.parametrize("known", [True, False], ids=["with statistics", "without"])
def test_messages_of_other_runs_are_not_read(*, known: bool) -> None:
    with nothing_is_vacuumed():
        stock = Stock()
        other = Run.objects.create(name="other", dlq=stock.dlq, state="running", asked_by="a test", started_at=NOW)
        stock.more_letters(3)
        stock.more_letters(LETTERS, run=other)
        if known:
            with_statistics()
        with explained() as found:
            figures = run_list.figures_of([stock.run.pk])
    assert [(one.unfinished, one.parked) for one in figures.values()] == [(4, 0)]
    assert [(one.scanned, one.buffers <= MOST) for one in found] == [(frozenset(), True)], found
