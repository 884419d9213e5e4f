"""Purging: a letter's whole journey is forgotten in the end, however many there are."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reprocessing.models import Attempt, Custody, DeadLetter, Lane, Payload
from reprocessing.pipeline.maintenance import purge
from tests.reprocessing.pipeline.bench import Clock, Workbench

pytestmark = pytest.mark.django_db(transaction=True)

KEYED = {"ordering_key": "attribute:key"}


def _delivered(bench: Workbench, number: int = 1) -> None:
    for n in range(number):
        bench.bury(f"letter {n}", key="a")
    bench.ready()
    bench.replay()
    assert set(bench.states().values()) == {"delivered"}


def test_a_delivered_letter_is_purged_after_its_history_and_its_key_s_lane_stays(clock: Clock) -> None:
    bench = Workbench(fields=KEYED)
    _delivered(bench)
    clock.advance(bench.conf.history.total_seconds() - 60)
    assert purge.letters(conf=bench.conf) == 0
    clock.advance(61)
    assert purge.letters(conf=bench.conf) == 1
    there = [model.__name__ for model in (DeadLetter, Payload, Attempt, Custody) if model.objects.exists()]
    assert (there, Lane.objects.count(), bench.lane().passed_sequence is None) == ([], 1, False)


def test_a_letter_that_is_older_than_what_was_purged_is_still_known_as_stale(clock: Clock) -> None:
    bench = Workbench(fields={**KEYED, "sequence": "attribute:n"})
    bench.bury("second", key="a", n="2")
    bench.ready()
    bench.replay()
    clock.advance(bench.conf.history.total_seconds() + 1)
    assert purge.letters(conf=bench.conf) == 1
    bench.bury("first", key="a", n="1")
    bench.ready()
    bench.replay()
    assert (bench.letter().state, bench.letter().reason) == ("parked", "stale")


def test_however_short_history_is_a_copy_is_known_as_long_as_it_could_turn_up(clock: Clock) -> None:
    bench = Workbench()
    _delivered(bench)
    brief = replace(bench.conf, history=timedelta(days=1))
    clock.advance(bench.dlq.retention + 86_400 - 60)
    assert purge.letters(conf=brief) == 0
    clock.advance(61)
    assert purge.letters(conf=brief) == 1


def test_all_of_them_go_in_one_purge_group_by_group(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench(fields=KEYED)
    _delivered(bench, 5)
    monkeypatch.setattr(purge, "_GROUP", 2)
    clock.advance(bench.conf.history.total_seconds() + 1)
    assert (purge.letters(conf=bench.conf), DeadLetter.objects.count()) == (5, 0)


def test_a_purge_that_is_told_to_stop_ends_after_its_group(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench(fields=KEYED)
    _delivered(bench, 5)
    monkeypatch.setattr(purge, "_GROUP", 2)
    clock.advance(bench.conf.history.total_seconds() + 1)
    answers = iter([False, True])
    assert purge.letters(conf=bench.conf, stop=lambda: next(answers)) == 2
