"""What every command refuses before it does anything, and what a person cannot take from beat."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from reprocessing.domain.lifecycle import LetterState
from reprocessing.management.commands import release_parked
from reprocessing.management.parking import Decided
from reprocessing.models import Halt, Review
from reprocessing.pipeline import gather
from tests.reprocessing.commands.conftest import AddRow, Ask
from tests.reprocessing.commands.stock import add_letter, add_origin

pytestmark = pytest.mark.django_db

#: What Python makes of a byte that is not UTF-8; and what no text in PostgreSQL holds.
BYTE, ZERO = "b\udcff", "b\0"
COMMANDS = [
    ("add_dlq", "orders", "--by", "?"),
    ("add_dlq", "orders", "--reason", "?"),
    ("add_dlq", "orders", "--url", "?"),
    ("add_dlq", "orders", "--origin", "?"),
    ("add_dlq", "orders", "--parking-url", "?"),
    ("peek_dlq", "?"),
    ("drain_dlq", "?"),
    ("drain_dlq", "orders", "--by", "?"),
    ("redrive_status", "?"),
    ("rerun", "?"),
    ("stop_redrive", "?", "--reason", "why"),
    ("stop_redrive", "--all", "--reason", "?"),
    ("stop_redrive", "--all", "--reason", "why", "--by", "?", "--confirm"),
    ("stop_redrive", "orders", "--reason", "?", "--confirm"),
    ("resume_redrive", "orders", "--reason", "?"),
]


@pytest.mark.parametrize("bad", [BYTE, ZERO])
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_text_is_refused_in_a_sentence(command: tuple[str, ...], bad: str, add_row: AddRow) -> None:
    row = add_row("orders")
    with pytest.raises(
        CommandError, match=r"Nothing was done: what was given as .*is no text.*Say it in UTF-8"
    ) as told:
        call_command(*(bad if one == "?" else one for one in command))
    assert str(told.value).isascii()
    row.refresh_from_db()
    assert (row.stopped_at, Halt.objects.count(), Review.objects.count()) == (None, 0, 0)


@pytest.mark.parametrize("age", ["1e300", "nan", "-1", "soon"])
def test_a_pulse_is_as_old_as_a_number_says(age: str) -> None:
    with pytest.raises(CommandError, match="is not a number of at least 0 and at most 1,209,600"):
        call_command("check_pulse", f"--max-age={age}")


def test_no_person_can_take_the_id_of_a_standing_run(add_row: AddRow) -> None:
    row = add_row("orders")
    run = gather.standing_run(row)
    assert run.name == f"standing:{row.pk}"
    with pytest.raises(CommandError, match="is no run's id"):
        call_command("drain_dlq", "orders", "--run", run.name)


def test_dlqs_with_long_names_have_standing_runs_of_their_own(add_row: AddRow) -> None:
    rows = [add_row("n" * 95 + last) for last in "ab"]
    assert {gather.standing_run(one).dlq_id for one in rows} == {one.pk for one in rows}


def test_a_standing_run_is_told_of_in_words(add_row: AddRow, ask: Ask) -> None:
    row = add_row("orders")
    run = gather.standing_run(row)
    assert "run       standing is running: 0 letters unfinished" in ask("redrive_status", "orders")
    with pytest.raises(CommandError, match="This is the standing run of orders"):
        ask("rerun", run.name)
    letter = add_letter(add_origin(row), LetterState.PARKED, run=run)
    assert list(release_parked.Command().after(Decided([letter.pk]))) == [
        "They are of the standing run: workers replay them."
    ]
