"""A plan of a hundred thousand letters is killed in the middle: it has all of them or none, and can be finished."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.db import connection

from reprocessing.models import Lane, Letter, Run
from reprocessing.pipeline.runs import plan
from reprocessing.store.runs import plans, run_transitions
from reprocessing.store.runs.plans import RunRequest
from tests.conditions import eventually
from tests.faults import LONG
from tests.faults.fleet import ROOT, environment
from tests.reprocessing.store.stock import Stock

pytestmark = [*LONG, pytest.mark.alone, pytest.mark.timeout(600)]

LETTERS, LANES = 100_000, 5_000
A_REQUEST = 5.0  # seconds, on a busy machine

_CAPTURE = """
INSERT INTO redrive_letter (public_id, dlq_id, message_id, source_id, target_id, state, planned, ordering_key, key_hash,
                            single, sequence, body_hash, size, first_sent_at)
SELECT gen_random_uuid(), %s, 'm-' || n, %s, %s, 'captured', true, 'key-' || n %% %s, int4send((n %% %s)::int), false,
       lpad(n::text, 9, '0'), '\\x00', 1, now() - make_interval(secs => n)
  FROM generate_series(1, %s) n
"""

_SELECT = """
import django; django.setup()
from reprocessing.store.runs import plans
plans.select_letters({run}, by="ann", reason="a test")
"""


@pytest.fixture
def stock() -> Stock:
    stock = Stock()
    with connection.cursor() as cursor:
        cursor.execute(_CAPTURE, [stock.dlq.pk, stock.source.pk, stock.target.pk, LANES, LANES, LETTERS])
        cursor.execute("ANALYZE redrive_letter")
    return stock


def _selecting() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND state = 'active' "
            "AND query LIKE '%WITH captured AS%' AND clock_timestamp() - query_start > interval '0.3 s')"
        )
        return bool(cursor.fetchone()[0])


def _idle() -> bool:
    """Whether Postgres has noticed that nobody is there any more, and rolled it back."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT NOT EXISTS (SELECT FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND query LIKE '%WITH captured AS%')"
        )
        return bool(cursor.fetchone()[0])


def test_a_plan_that_is_killed_while_it_selects_has_nothing_and_is_finished_with_the_exact_count(
    stock: Stock, tmp_path: Path
) -> None:
    run = plans.create_plan(stock.dlq, RunRequest("monday", "ann"))
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", _SELECT.format(run=run.pk)], cwd=ROOT, env=environment(), stdout=log, stderr=log
        )
        try:
            eventually(_selecting, within=60)
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait(timeout=10)
    eventually(_idle, within=120)
    run.refresh_from_db()
    selected = Letter.objects.filter(run=run).count()
    assert (run.state, run.selected, selected) in {("planned", None, 0), ("planned", LETTERS, LETTERS)}
    began = time.monotonic()
    plans.select_letters(run.pk, by="ann", reason="again")
    took = time.monotonic() - began
    run.refresh_from_db()
    assert (run.selected, run.behind, Letter.objects.filter(run=run).count()) == (LETTERS, 0, LETTERS)
    print(f"{LETTERS:,} letters on {LANES:,} lanes: selected in {took:.1f} s; after the kill {selected:,} had been")  # noqa: T201
    began = time.monotonic()
    assert run_transitions.start(Run.objects.get(pk=run.pk), by="ann", reason="a test") is not None
    assert time.monotonic() - began < A_REQUEST
    assert plan.enlist_started_plans(stop=lambda: False) == LETTERS
    assert Lane.objects.filter(run=run).count() == LANES
    print(f"enlisted in {time.monotonic() - began:.1f} s")  # noqa: T201
