"""A run that waits for a run which sends nothing names that run, and the command that helps."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reprocessing.models import Run
from tests.reprocessing.commands.conftest import Ask, AskJson
from tests.reprocessing.pipeline.blocked_runs import (
    Runs,
    behind_a_late_return,
    behind_a_paused_run,
    behind_an_aborted_run,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("runs", "state", "helps"),
    [
        (behind_a_late_return, "finished", "To continue that run: manage.py rerun {first} --confirm"),
        (behind_a_paused_run, "paused", "To resume that run: manage.py resume_run {first} --reason WHY --confirm"),
        (behind_an_aborted_run, "aborted", "To send them in a new run: manage.py drain_dlq {dlq} --confirm"),
    ],
)
def test_a_blocked_run_names_the_run_ahead_and_the_command_after_which_it_is_sent(
    runs: Callable[[], Runs], state: str, helps: str, ask: Ask, ask_json: AskJson
) -> None:
    bench, first, second = runs()
    helps = helps.format(first=first.name, dlq=bench.name)
    said = f"Queued behind earlier messages of the run {first.name}, which is {state}: 1 message of {second.name}."
    for told in (
        ask("rerun", second.name, "--confirm"), ask("rerun", second.name), ask("show_runs", "--run", second.name),
    ):  # fmt: skip
        assert f"{said} {helps}" in told
    found = ask_json("rerun", second.name, "--confirm")
    assert (found["waiting"], found["held"], found["blocked"]) == (1, 0, 1)
    assert bench.delivered() == []
    ask(*helps.partition("manage.py ")[2].split())
    ask("rerun", second.name, "--confirm")
    if Run.objects.get(pk=first.pk).state == "running":
        ask("rerun", first.name, "--confirm")
    assert bench.delivered_bodies() == ["1", "2"]
    assert Run.objects.get(pk=second.pk).state == "finished"
