"""Two enlistments of one DLQ: a letter belongs to the first run that took it, and lanes are locked in one order."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from django.db.models import F

from reprocessing.domain.runs.selection import ALL_LETTERS, Selection
from reprocessing.models import Lane, Letter, Run
from reprocessing.pipeline.runs import plan
from reprocessing.store.runs import selection
from tests.race.abreast import behind, elsewhere, waits_for_us
from tests.reprocessing.pipeline.bench import KEYED, Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_letter_belongs_to_the_run_that_took_it_first() -> None:
    bench = Workbench()
    bench.bury("letter")
    first, second = bench.ready(limit=0), bench.enlist(limit=0)
    taken, later = behind(lambda: plan.enlist(bench.dlq, first), lambda: plan.enlist(bench.dlq, second))
    assert (taken.letters, later.letters) == (1, 0)
    assert bench.letter().run_id == bench.lane().run_id == first.pk


def test_lanes_are_locked_in_the_order_of_their_ids_whatever_order_their_letters_failed_in() -> None:
    bench = Workbench(fields=KEYED)
    for key in ("a", "b"):
        bench.bury(f"{key}1", key=key, n="1")
    bench.ready()
    bench.replay()
    low, high = Lane.objects.order_by("id")
    for key in ("a", "b"):
        bench.bury(f"{key}2", key=key, n="2")
    run = bench.ready(limit=0)
    Letter.objects.filter(state="captured", ordering_key=high.key).update(
        first_sent_at=F("first_sent_at") - timedelta(hours=1)
    )
    with elsewhere() as begin:
        with transaction.atomic():
            Lane.objects.select_for_update().get(pk=low.pk)
            enlisting = begin(lambda: plan.enlist(bench.dlq, run))
            waits_for_us()
            assert list(Lane.objects.select_for_update(skip_locked=True).order_by("id")) == [low, high]
        assert enlisting.result(20).lanes == 2


def test_of_two_plans_at_once_neither_has_letters_behind_those_of_the_other() -> None:
    bench = Workbench(fields=KEYED)
    for number in "123":
        bench.bury(number, key="a", n=number)
    bench.ready(limit=0)
    first, second = (Run.objects.create(name=name, dlq=bench.dlq) for name in ("first", "second"))

    def select() -> selection.SelectedCount:
        with transaction.atomic():
            return selection.select_letters(bench.dlq.pk, second.pk, ALL_LETTERS)

    selected, later = behind(lambda: selection.select_letters(bench.dlq.pk, first.pk, Selection(limit=1)), select)
    assert (selected.selected, later) == (1, selection.SelectedCount(0, 2))
