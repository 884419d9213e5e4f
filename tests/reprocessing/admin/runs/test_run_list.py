"""The list of runs: what each row says, and its filters."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from reprocessing.domain.lifecycle import LetterState
from reprocessing.models import Letter, Run, RunMinute, Source
from reprocessing.pipeline.runs import feed_run
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.runs import run_list
from reprocessing.store.safety import stops
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked, person
from tests.reprocessing.commands.stock import add_letter

pytestmark = pytest.mark.django_db
ADDRESS = "/admin/reprocessing/run/"


@pytest.fixture
def source() -> Source:
    return dlq()


@pytest.fixture
def ann() -> Client:
    return person("ann", "view_run")


def _rows(client: Client, query: str = "") -> dict[str, list[str]]:
    """The cells of each row, by the run's name."""
    page = client.get(f"{ADDRESS}{query}").content.decode()
    found = {}
    for row in re.findall(r'<tr class="run-row">(.*?)</tr>', page, re.DOTALL):
        cells = [re.sub(r"<[^>]*>", "", cell).split() for cell in re.findall(r"<td.*?</td>", row, re.DOTALL)]
        found[re.findall(r"<a href=[^>]*>([^<]*)</a>", row)[0]] = [" ".join(words) for words in cells[:7]]
    return found


def test_each_row_says_state_messages_progress_rate_failures_and_person(source: Source, ann: Client) -> None:
    now = database_now()
    begun = {"dlq": source.dlq, "asked_by": "ann", "selected": 4, "started_at": now - timedelta(seconds=20)}
    running = Run.objects.create(name="running", state="running", **begun)
    Run.objects.create(name="finished", state="finished", finished_at=now, **begun)
    Run.objects.create(name="planned", dlq=source.dlq, asked_by="ben")
    Run.objects.create(name="aborted", state="aborted", why="it burns", stopped_by="ben", finished_at=now, **begun)
    add_letter(source, LetterState.WAITING, run=running)
    Letter.objects.filter(pk=parked(source).pk).update(run=running)
    minute = now.replace(second=0, microsecond=0)
    RunMinute.objects.create(run_id=running.pk, minute=minute, sent=90)
    RunMinute.objects.create(run_id=running.pk, minute=minute - timedelta(minutes=2), sent=1_000)
    found = _rows(ann)
    rate = found["running"].pop(4)
    assert found == {
        "aborted": ["aborted", "shop-dlq", "4", "", "", "", "ann"],
        "planned": ["planned", "shop-dlq", "not selected yet", "", "", "", "ben"],
        "finished": ["finished", "shop-dlq", "4", "100 %", "0.2/s on average", "", "ann"],
        "running": ["running", "shop-dlq", "4", "75 %, 1 unfinished", "1", "ann"],
    }
    assert 0.75 <= float(rate.removesuffix("/s")) <= 1.5  # 90 in 60 to 120 seconds


def test_a_running_run_of_what_is_stopped_is_not_just_called_running(
    source: Source, ann: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    Run.objects.create(name="monday", dlq=source.dlq, state="running", started_at=database_now())
    Run.objects.create(name="tuesday", dlq=source.dlq)
    stops.stop(source.dlq_id, by="ann", reason="it burns")
    assert _rows(ann)["monday"][0] == "running, DLQ stopped"
    stops.stop(None, by="ann", reason="it burns")
    with django_assert_num_queries(6):
        found = _rows(ann)
    assert (found["monday"][0], found["tuesday"][0]) == ("running, stopped everywhere", "planned")


def test_the_automatic_run_is_started_by_the_scheduler(source: Source, ann: Client) -> None:
    run = feed_run.automatic_run(source.dlq)
    assert _rows(ann)[run.name][-1] == "the scheduler"
    page = ann.get(f"{ADDRESS}{run.pk}/change/").content.decode()
    assert f"Automatic run of shop-dlq <small>{run.name}</small></h1>" in page
    assert "<dt>Selection</dt><dd>all new messages of shop-dlq</dd>" in page
    assert ("<dt>Started by</dt><dd>the scheduler</dd>" in page, "Requested by" in page) == (True, False)


def test_runs_are_filtered_by_state_dlq_and_person(source: Source, ann: Client) -> None:
    other = dlq("other-dlq")
    for name, by, state, where in (
        ("a", "ann", "running", source), ("b", "ben", "running", other), ("c", "ben", "planned", source),
    ):  # fmt: skip
        Run.objects.create(name=name, asked_by=by, state=state, dlq=where.dlq)
    of_dlq = f"?dlq={source.dlq_id}"
    queries = ["?state=running", of_dlq, "?by=ben", "?by=ben&state=running", "?by=be", "?by=%00ben", "?by=+"]
    assert [sorted(_rows(ann, query)) for query in queries] == [
        ["a", "b"], ["a", "c"], ["b", "c"], ["b"], [], ["b", "c"], ["a", "b", "c"],
    ]  # fmt: skip


def test_counts_of_large_runs_are_limits(source: Source, ann: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_list, "_MOST_OPEN", 2)
    monkeypatch.setattr(run_list, "_LEAST_OPEN", 2)
    run = Run.objects.create(name="large", dlq=source.dlq, state="running", selected=4)
    for _ in range(3):
        add_letter(source, LetterState.WAITING, run=run)
    assert _rows(ann)["large"][3] == "under 50 %, 2+ unfinished"
