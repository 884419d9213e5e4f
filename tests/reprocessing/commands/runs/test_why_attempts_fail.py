"""Status, runs and a drain's progress say what most of the attempts that failed lately were answered."""

from __future__ import annotations

import pytest

from reprocessing.domain.lifecycle import LanePhase, LetterState
from reprocessing.management.shared import drain_progress
from reprocessing.models import Attempt, Breaker, DeadLetterQueue, Run, Source
from reprocessing.store.runs import progress
from reprocessing.store.safety import failed_answers
from tests.reprocessing.commands.conftest import Ask, AskJson
from tests.reprocessing.commands.stock import add_lane, add_letter, add_source, ago

pytestmark = pytest.mark.django_db


@pytest.fixture
def source(orders: DeadLetterQueue) -> Source:
    return add_source(orders)


@pytest.fixture
def monday(orders: DeadLetterQueue) -> Run:
    return Run.objects.create(name="monday", dlq=orders, state="running", asked_by="ann", started_at=ago())


def fail(source: Source, run: Run, detail: str, *, outcome: str = "refused", many: int = 1, **fields: object) -> None:
    breaker, _ = Breaker.objects.get_or_create(target=source.target, rate_class=None)
    for _ in range(many):
        lane = add_lane(source, run=run)
        letter = add_letter(source, LetterState.WAITING, lane=lane, run=run, attempts=1)
        Attempt.objects.create(
            letter=letter, lane=lane, target=source.target, run=run, no=1, epoch=0, fence=1, opened_at=ago(),
            closed_at=ago(), outcome=outcome, detail=detail, holds_lane=False, breaker=breaker, **fields,
        )  # fmt: skip


def test_the_most_frequent_answer_is_told_with_its_status_and_nothing_that_was_written_beside_it(
    ask: Ask, ask_json: AskJson, source: Source, monday: Run
) -> None:
    answer = "503 Service Unavailable"
    fail(source, monday, "503: it answered 503", many=3)
    fail(source, monday, "InvalidMessageContents: 4111 1111 1111 1111 is no text", many=2)
    assert ask_json("redrive_status", "orders")["dlqs"][0]["failing"] == {"answer": answer, "attempts": 3}
    line = f"  failing   {answer}, 3 attempts recently\n"
    assert (line in ask("redrive_status"), line in ask("show_runs", "orders")) == (True, True)
    told = drain_progress.progress_line(monday.dlq, progress.count_letters(monday.pk))
    assert f"Attempts fail: {answer}, 3 attempts recently." in told
    fail(source, monday, "InvalidMessageContents: 4111 1111 1111 1111 is no text", many=2)
    assert "  failing   InvalidMessageContents, 4 attempts recently\n" in ask("redrive_status")
    fail(source, monday, "4111 1111 1111 1111", many=5)
    assert "  failing   their target refused them, 5 attempts recently\n" in ask("redrive_status")


@pytest.mark.parametrize(
    ("failed", "told"),
    [
        (("not_sent", "it answered 429: try again later"), "429 Too Many Requests"),
        (("unknown", "SQS did not answer: it was closed"), "SQS did not answer: it was closed"),
        (("returned", ""), "they came back to the DLQ"),
        (("failed", ""), "their consumer reported that they failed"),
        (("silent", ""), "their consumer did not report in time"),
        (("refused", "599: it answered 599"), "599"),
    ],
)
def test_every_way_to_fail_has_its_words(
    ask_json: AskJson, source: Source, monday: Run, failed: tuple[str, str], told: str
) -> None:
    fail(source, monday, failed[1], outcome=failed[0])
    assert ask_json("show_runs", "orders")["runs"][0]["failing"] == {"answer": told, "attempts": 1}


@pytest.mark.parametrize("outcome", ["accepted", "absent", "acknowledged", "not_sent"])
def test_what_went_well_or_never_left_for_want_of_time_has_not_failed(
    ask: Ask, ask_json: AskJson, source: Source, monday: Run, outcome: str
) -> None:
    fail(source, monday, "no time was left to begin its request", outcome=outcome)
    assert ask_json("show_runs", "orders")["runs"][0]["failing"] is None
    assert "failing" not in ask("redrive_status")


def test_each_run_tells_of_its_own_and_a_status_of_those_that_go_on(
    ask_json: AskJson, orders: DeadLetterQueue, source: Source, monday: Run
) -> None:
    ended = Run.objects.create(name="sunday", dlq=orders, state="finished", finished_at=ago())
    fail(source, ended, "404: it answered 404", many=2)
    fail(source, monday, "503: it answered 503")
    assert {one["run"]: one["failing"]["answer"] for one in ask_json("show_runs", "orders")["runs"]} == {
        "monday": "503 Service Unavailable",
        "sunday": "404 Not Found",
    }
    assert ask_json("redrive_status", "orders")["dlqs"][0]["failing"]["attempts"] == 1


def test_no_more_attempts_are_read_than_the_newest_of_each_breaker(
    source: Source, monday: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failed_answers, "DEPTH", 2)
    fail(source, monday, "404: it answered 404", many=3)
    fail(source, monday, "503: it answered 503", many=2)
    assert failed_answers.of_run(monday.pk, monday.dlq_id) == failed_answers.CommonFailure("503 Service Unavailable", 2)


def test_what_holds_lanes_back_is_told_once_due_or_not(orders: DeadLetterQueue, source: Source) -> None:
    run = Run.objects.create(name="monday", dlq=orders, state="paused", stopped_by="ann", why="rain")
    for due in (ago(hours=1), ago(hours=-1)):
        add_letter(source, LetterState.WAITING, lane=add_lane(source, LanePhase.READY, run=run, due_at=due), run=run)
    told = drain_progress.progress_line(orders, progress.count_letters(run.pk))
    assert told.count("the run monday is paused") == 1
    assert "2 messages wait: the run monday is paused." in told
