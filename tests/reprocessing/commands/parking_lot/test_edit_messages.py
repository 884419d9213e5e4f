"""edit_messages edits the messages that a dry run showed, each once, also if the command is run again."""

from __future__ import annotations

import shlex
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from reprocessing.domain.lifecycle import LetterState
from reprocessing.models import AuditEntry, BulkAction, DeadLetterQueue, Letter, Revision
from reprocessing.pipeline.parking_lot import run_bulk_actions
from reprocessing.store.parking_lot import bulk_actions
from tests.reprocessing.commands.conftest import AddRow, Ask, AskJson
from tests.reprocessing.commands.refusals import refusal
from tests.reprocessing.commands.stock import add_lane, add_letter, add_source, ago
from tests.reprocessing.pipeline.bench import Killed

pytestmark = pytest.mark.django_db
PATCH = '[{"op": "add", "path": "/notes/-", "value": "it\'s seen"}]'
WHY = ("--patch", PATCH, "--reason", "the shop was mended", "--by", "ann")


@pytest.fixture
def lot(add_row: AddRow) -> list[Letter]:
    source = add_source(add_row("orders"))
    values = {"planned": True, "sequence": "1", "reason": "refused"}
    return [
        add_letter(
            source, LetterState.PARKED, finished_at=ago(hours=5 - number), lane=add_lane(source), ordering_key=key,
            body=body, **values,
        )
        for number, (key, body) in enumerate((("a", b'{"notes":[]}'), ("a", b'{"notes":[]}'), ("b", b"<secret/>")))
    ]  # fmt: skip


def _bodies() -> list[bytes]:
    return [bytes(revision.body) for revision in Revision.objects.order_by("letter", "no")]


def _acting(said: str) -> list[str]:
    """The command line that a dry run shows."""
    words = shlex.split(said.strip().splitlines()[-1])
    return words[words.index("edit_messages") :]


def test_a_dry_run_says_what_fits_and_what_does_not_and_edits_nothing(lot: list[Letter], ask: Ask) -> None:
    said = ask("edit_messages", "orders", *WHY)
    assert "add /notes/-" in said
    assert "The patch fits 2 of 3 messages. Edited messages stay parked." in said
    assert f"  1 not changed, since it is not JSON: {lot[2].message_id}" in said
    assert "secret" not in said
    assert (Revision.objects.count(), BulkAction.objects.count(), AuditEntry.objects.count()) == (0, 0, 0)


def test_the_line_that_a_dry_run_shows_edits_exactly_these(lot: list[Letter], ask: Ask) -> None:
    line = _acting(ask("edit_messages", "orders", "--key", "a", *WHY))
    assert "2 of 2 are edited." in ask(*line)
    assert _bodies() == [b'{"notes":["it\'s seen"]}'] * 2
    assert set(AuditEntry.objects.exclude(letter=None).values_list("act", "by")) == {("edited", "ann")}


def test_messages_that_are_not_edited_fail_the_command_with_the_reason(lot: list[Letter], ask: Ask) -> None:
    line = _acting(ask("edit_messages", "orders", *WHY))
    out = StringIO()
    with pytest.raises(CommandError, match="1 of 3 are not edited: reasons above"):
        call_command(*line, stdout=out)
    assert "1 skipped, since it is not JSON" in out.getvalue()
    assert len(_bodies()) == 2


def test_a_killed_command_is_run_again_and_edits_no_message_twice(
    lot: list[Letter], ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = _acting(ask("edit_messages", "orders", "--key", "a", *WHY))
    with monkeypatch.context() as patched:
        patched.setattr(bulk_actions, "BATCH_LETTERS", 1)
        begun = run_bulk_actions.run_bulk_action

        def dies(operation: int, *, seconds: float) -> bool:
            begun(operation, seconds=0)
            raise Killed

        patched.setattr(run_bulk_actions, "run_bulk_action", dies)
        with pytest.raises(Killed):
            ask(*line)
    assert len(_bodies()) == 1
    assert "2 of 2 are edited." in ask(*line)
    assert "2 of 2 are edited." in ask(*line)
    assert (_bodies(), BulkAction.objects.count()) == ([b'{"notes":["it\'s seen"]}'] * 2, 1)


def test_what_changed_after_the_dry_run_is_not_edited(lot: list[Letter], ask: Ask) -> None:
    line = _acting(ask("edit_messages", "orders", "--key", "a", *WHY))
    ask(*_acting(ask("edit_messages", "orders", "--key", "a", "--release", *WHY)))
    said = refusal(*line)
    assert "some messages of the dry run are no longer parked, or were edited or parked again" in said


def test_an_edited_message_is_another_selection(lot: list[Letter], ask: Ask, ask_json: AskJson) -> None:
    line = _acting(ask("edit_messages", "orders", "--key", "a", *WHY))
    first = ask_json("edit_messages", "orders", "--key", "a", *WHY)["selection"]
    ask(*line)
    again = ask_json("edit_messages", "orders", "--key", "a", *WHY)
    assert (again["fits"], again["selection"] != first) == (2, True)


def test_a_selection_of_some_is_edited_as_chosen(lot: list[Letter], ask: Ask) -> None:
    ask(*_acting(ask("edit_messages", "orders", "--limit", "1", *WHY)))
    assert list(Revision.objects.values_list("letter", flat=True)) == [lot[0].pk]
    ask(*_acting(ask("edit_messages", "orders", "--message-id", lot[1].message_id, *WHY)))
    ask(*_acting(ask("edit_messages", "orders", "--older-than", "270m", "--key", "a", *WHY)))
    assert list(Revision.objects.order_by("letter", "no").values_list("letter", "no")) == [
        (lot[0].pk, 1), (lot[0].pk, 2), (lot[1].pk, 1),
    ]  # fmt: skip


def test_a_file_is_read_and_edited_messages_are_released(lot: list[Letter], ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "patch.json"
    file.write_text(PATCH)
    said = ask("edit_messages", "orders", "--key", "a", "--patch", str(file), "--release", "--reason", "mended")
    assert "Edited messages are released." in said
    ask(*_acting(said))
    assert set(Letter.objects.filter(ordering_key="a").values_list("state", flat=True)) == {"waiting"}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("--patch", "nowhere.json"), "cannot be read: No such file or directory. Give a file, or a JSON Patch"),
        (("--patch", "[]"), "not a list of operations"),
        (("--patch", PATCH, "--confirm"), "--confirm needs --selection"),
        (("--patch", PATCH, "--key", "z"), "No parked message of orders matches --key=z"),
        (("--patch", PATCH, "--selection", "1-0123456789abcdef", "--confirm"), "some messages of the dry run"),
    ],
    ids=["file", "patch", "selection", "nothing", "mark"],
)  # fmt: skip
def test_what_is_not_possible_says_why_and_what_to_type(
    lot: list[Letter], ask: Ask, given: tuple[str, ...], why: str
) -> None:
    with pytest.raises(CommandError) as refused:
        ask("edit_messages", "orders", "--reason", "mended", *given)
    assert why in str(refused.value)


def test_above_the_limit_an_approval_is_requested(lot: list[Letter], ask: Ask) -> None:
    DeadLetterQueue.objects.update(approval_above=1)
    said = ask("edit_messages", "orders", "--key", "a", *WHY)
    assert "second person" in said
    with pytest.raises(CommandError, match="needs a second person") as refused:
        ask(*_acting(said))
    assert (refused.value.returncode, Revision.objects.count()) == (3, 0)
