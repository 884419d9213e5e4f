"""Who puts a DLQ into mode automatic is told who redrives it, from when on, and who of those is missing."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from reprocessing.domain.lifecycle import LetterState
from reprocessing.models import DeadLetterQueue, Heartbeat, Source
from reprocessing.pipeline.runs import feed_run
from reprocessing.store.dlqs import automatic_redrive
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.ordering.stalled_lanes import TICK_TASK
from reprocessing.store.safety import stops
from tests.contract.queues import Queue, redrive_policy
from tests.reprocessing.commands.conftest import AddRow, Ask, AskJson
from tests.reprocessing.commands.stock import add_lane, add_letter
from tests.reprocessing.gateways.aws_endpoint import MakeQueue

pytestmark = pytest.mark.django_db
BY_THEMSELVES = "Beat and a worker redrive it automatically, from the next poll on (as soon as beat sends a tick)."
WATCH = "manage.py redrive_status orders --watch shows it."
START = "Start one: celery -A redrive_service {} (with the environment of this command)."
NO_BEAT = f"No beat was seen in this database yet: nothing is polled. {START.format('beat')}"
NO_WORKER = (
    "No worker was seen in this database yet: nothing is sent. Workers are seen only while beat runs. "
    f"If no worker runs: {START.format('worker')}"
)


@pytest.fixture
def watched(make_queue: MakeQueue) -> Queue:
    """A dlq that one queue names in its redrive policy."""
    found = make_queue(MessageRetentionPeriod="1209600")
    make_queue(RedrivePolicy=redrive_policy(found, 3))
    return found


def see_beat(**ago: float) -> None:
    every, _ = IntervalSchedule.objects.get_or_create(every=2, period=IntervalSchedule.SECONDS)
    made, _ = PeriodicTask.objects.update_or_create(name="tick", defaults={"task": TICK_TASK, "interval": every})
    PeriodicTask.objects.filter(pk=made.pk).update(last_run_at=database_now() - timedelta(**ago))


def see_worker(**ago: float) -> None:
    Heartbeat.objects.update_or_create(
        queue="redrive-control", defaults={"consumed_at": database_now() - timedelta(**ago)}
    )


def added(ask: Ask, watched: Queue, *arguments: str) -> str:
    """The last line of what is said when it is added."""
    return ask("add_dlq", "orders", "--url", watched.url, *arguments, "--confirm").splitlines()[-1]


def test_one_that_is_added_as_automatic_is_redriven_without_a_command(ask: Ask, watched: Queue) -> None:
    see_beat(seconds=2)
    see_worker(seconds=2)
    assert added(ask, watched, "--mode", "automatic") == f"orders is added. {BY_THEMSELVES} {WATCH}"


def test_who_was_not_seen_yet_is_named_and_how_to_start_it(ask: Ask, watched: Queue) -> None:
    told = f"orders is added. {BY_THEMSELVES} {WATCH} {NO_BEAT} {NO_WORKER}"
    assert added(ask, watched, "--mode", "automatic") == told


def test_a_crontab_says_when_it_is_polled_first_and_a_stop_that_nothing_is_sent(ask: Ask, watched: Queue) -> None:
    see_beat(seconds=2)
    see_worker(seconds=2)
    stops.stop(None, by="ann", reason="rain")
    said = added(ask, watched, "--mode", "automatic", "--crontab", "0 0 1 1 *")
    assert f"from the next poll on ({database_now().year + 1}-01-01 00:00:00 UTC)" in said
    assert said.endswith('Everything is stopped by ann ("rain"): nothing is sent until somebody resumes it.')


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("manual", "automatic"), BY_THEMSELVES),
        (("observe", "manual"), "Nothing is redriven yet. manage.py peek_dlq orders --confirm shows"),
        (
            ("automatic", "manual"),
            "New messages are no longer redriven automatically. manage.py peek_dlq orders --confirm shows",
        ),
    ],
)
def test_a_change_of_mode_says_who_redrives_it_from_now_on(
    ask: Ask, watched: Queue, change: tuple[str, str], told: str
) -> None:
    ask("add_dlq", "orders", "--url", watched.url, "--mode", change[0], "--confirm")
    said = ask("add_dlq", "orders", "--mode", change[1], "--confirm")
    assert said.splitlines()[-1].startswith(f"orders is changed. {told}")


def test_a_run_that_still_sends_after_the_change_to_manual_is_named_with_the_command_that_pauses_it(
    ask: Ask, watched: Queue
) -> None:
    ask("add_dlq", "orders", "--url", watched.url, "--mode", "automatic", "--confirm")
    run = feed_run.automatic_run(DeadLetterQueue.objects.get(name="orders"))
    source = Source.objects.get()
    for _ in range(2):
        add_letter(source, LetterState.WAITING, run=run, lane=add_lane(source, run=run))
    said = ask("add_dlq", "orders", "--mode", "manual", "--confirm").splitlines()[-1]
    pause = f"manage.py pause_run {run.name} --reason WHY --confirm"
    assert said.endswith(f"The run {run.name} still redrives the 2 messages that it has. To pause it: {pause}")
    ask(*pause.replace("WHY", "tests").split()[1:])
    assert automatic_redrive.describe_still_sending("orders") == ""


def test_one_that_is_only_observed_says_how_it_can_be_redriven(ask: Ask, watched: Queue) -> None:
    assert added(ask, watched, "--mode", "observe") == (
        "orders is added. It is in mode observe: nothing is received from it. "
        "To receive messages: manage.py add_dlq orders --mode manual --confirm"
    )


def test_the_status_of_an_automatic_dlq_says_who_is_missing(ask: Ask, ask_json: AskJson, add_row: AddRow) -> None:
    add_row("orders", mode="automatic")
    see_beat(minutes=5)
    assert ask_json("redrive_status", "orders")["missing"] == [
        f"No beat was seen for about 5 minutes: nothing is polled. {START.format('beat')}", NO_WORKER,
    ]  # fmt: skip
    add_row("zoo", mode="manual")
    orders, _, zoo = ask("redrive_status").partition("zoo  (manual")
    assert (f"  MISSING   {NO_WORKER}\n" in orders, "MISSING" in zoo) == (True, False)


def test_a_tick_of_the_future_does_not_say_that_the_workers_are_the_ones_that_are_missing(
    ask_json: AskJson, add_row: AddRow
) -> None:
    add_row("orders", mode="automatic")
    see_beat(hours=-1)
    see_worker(minutes=5)
    (told,) = ask_json("redrive_status", "orders")["missing"]
    assert told == (
        "No worker took a tick for about 5 minutes: nothing is sent. The last tick of beat has a time in the future, "
        "so it is not known whether beat runs. Check both: manage.py redrive_doctor"
    )


@pytest.mark.parametrize("behind", [-20, 20])
def test_nobody_is_missing_where_workers_take_the_ticks_of_a_beat_with_a_wrong_clock(
    ask_json: AskJson, add_row: AddRow, behind: int
) -> None:
    add_row("orders", mode="automatic")
    see_beat(minutes=behind)
    see_worker(seconds=2)
    assert ask_json("redrive_status", "orders")["missing"] == []


@pytest.mark.parametrize("mode", ["manual", "automatic"])
def test_nobody_is_missing_where_all_are_seen_or_none_is_needed(
    ask: Ask, ask_json: AskJson, add_row: AddRow, mode: str
) -> None:
    add_row("orders", mode=mode)
    if mode == "automatic":
        see_beat(seconds=2)
        see_worker(seconds=2)
    assert ask_json("redrive_status", "orders")["missing"] == []
    assert "MISSING" not in ask("redrive_status")
