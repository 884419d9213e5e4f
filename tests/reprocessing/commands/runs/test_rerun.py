"""A run is repeated as it was asked for: what is done stays done, what is left is gone on with."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reprocessing.models import Lane, Letter, Run
from reprocessing.store.ordering import lanes
from reprocessing.store.safety import stops
from tests.reprocessing.commands.conftest import Ask, AskJson
from tests.reprocessing.commands.refusals import refusal
from tests.reprocessing.pipeline.bench import Clock, Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def test_without_confirm_it_tells_what_is_left_and_how_to_go_on(bench: Workbench, ask: Ask, ask_json: AskJson) -> None:
    said = ask("rerun", "monday")
    assert "monday: 2 messages: 2 queued." in said
    assert said.splitlines()[-1] == "manage.py rerun monday --confirm"
    told = ask_json("rerun", "monday")
    assert (told["captured"], told["waiting"], told["dry_run"]) == (2, 2, True)
    assert bench.arrivals() == []


def test_it_goes_on_with_what_is_left_and_does_nothing_twice(
    bench: Workbench, ask: Ask, ask_json: AskJson, clock: Clock
) -> None:
    bench.replay_and_die(sent=False)
    clock.advance(bench.conf.lease.total_seconds())
    Letter.objects.filter(payload__body=b"1").update(due_at=None)
    told = ask_json("rerun", "monday", "--confirm")
    assert (told["delivered"], told["waiting"]) == (2, 0)
    assert len(bench.arrivals()) == 2
    again = ask_json("rerun", "monday", "--confirm")
    assert again == told
    assert "Nothing is left to do." in ask("rerun", "monday")
    assert len(bench.arrivals()) == 2
    assert Run.objects.get().state == "finished"


@pytest.mark.soak
def test_what_is_left_of_another_run_is_told_with_the_command_that_goes_on(bench: Workbench, ask: Ask) -> None:
    bench.bury("later")
    ask("drain_dlq", bench.name, "--run", "tuesday", "--enqueue", "--confirm")
    Lane.objects.filter(letters__run__name="tuesday").update(due_at=lanes.database_now() + timedelta(hours=1))
    said = ask("rerun", "monday", "--confirm")
    assert "Run tuesday: 1 message unfinished (1 queued)." in said
    assert "manage.py rerun tuesday --confirm" in said


@pytest.mark.soak
def test_what_came_back_after_its_end_is_gone_on_with(bench: Workbench, ask_json: AskJson) -> None:
    ask_json("rerun", "monday", "--confirm")
    bench.come_back(bench.delivered()[0])
    bench.capture()
    assert (ask_json("rerun", "monday")["waiting"], Run.objects.get().state) == (1, "finished")
    told = ask_json("rerun", "monday", "--confirm")
    assert (told["delivered"], told["failed_attempts"], told["waiting"]) == (2, 1, 0)


def test_enqueued_it_is_left_to_the_workers(bench: Workbench, ask: Ask) -> None:
    Run.objects.update(state="planned")
    said = ask("rerun", "monday", "--enqueue", "--confirm")
    assert f"redrive_status {bench.name} --watch" in said
    assert (Run.objects.get().state, bench.arrivals()) == ("running", [])


def test_a_stopped_dlq_is_not_gone_on_with(bench: Workbench) -> None:
    stops.stop(bench.dlq.pk, by="ann", reason="the shop is down")
    assert "is stopped since" in refusal("rerun", "monday", "--confirm")
    assert bench.arrivals() == []
