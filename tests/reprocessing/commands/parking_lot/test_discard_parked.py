"""Parked letters are given up by a named person with a reason, and only they."""

from __future__ import annotations

import subprocess

import pytest

from reprocessing.models import AuditEntry
from reprocessing.pipeline.parking_lot import act_on_parked
from tests.reprocessing.commands.conftest import AddRow, Ask, AskJson
from tests.reprocessing.commands.parking import Lot, refusal
from tests.reprocessing.commands.stock import ago

pytestmark = pytest.mark.django_db
WHY = ("--reason", "too old to matter", "--by", "ann")


@pytest.fixture
def lot(add_row: AddRow) -> Lot:
    return Lot(add_row("orders"))


def test_a_dry_run_gives_nothing_up_and_says_how_to(lot: Lot, ask: Ask) -> None:
    said = ask("discard_parked", "orders", "--older-than", "60m", *WHY)
    assert "This was a dry run: none of them is discarded." in said
    assert said.splitlines()[-1].startswith("manage.py discard_parked orders --older-than 3600s --by ann")
    assert lot.states() == ["parked"] * 3


def test_a_key_that_would_act_on_a_terminal_is_printed_as_numbers_that_a_shell_reads(lot: Lot, ask: Ask) -> None:
    word = r"$'--key=a\x1b[2J\'\\'"
    assert f"matches {word}. Parked there" in refusal("discard_parked", "orders", *WHY, "--key", "a\x1b[2J'\\")
    lot.park("a\x1b[2J'\\", "refused", since=ago(hours=1))
    said = ask("discard_parked", "orders", *WHY, "--key", "a\x1b[2J'\\")
    assert ("\x1b" in said, said.splitlines()[-1].startswith(f"manage.py discard_parked orders {word} ")) == (
        False,
        True,
    )
    read = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True).stdout
    assert read == b"--key=a\x1b[2J'\\"


def test_confirmed_they_are_given_up_and_it_is_written_down(lot: Lot, ask_json: AskJson) -> None:
    told = ask_json("discard_parked", "orders", "--parked-for", "refused", *WHY, "--confirm")
    assert (told["discarded"], told["reasons"]) == (2, {"refused": 2})
    assert lot.states() == ["discarded", "discarded", "parked"]
    assert set(AuditEntry.objects.values_list("act", "by", "reason")) == {("discarded", "ann", "too old to matter")}


def test_what_was_released_since_the_dry_run_is_not_given_up(lot: Lot, ask_json: AskJson) -> None:
    mark = ask_json("discard_parked", "orders", *WHY)["selection"]
    act_on_parked.release([lot.old.pk], by="bob", reason="mended")
    said = refusal("discard_parked", "orders", *WHY, "--selection", mark, "--confirm")
    assert "some messages of the dry run are no longer parked" in said
    assert lot.states() == ["waiting", "parked", "parked"]
