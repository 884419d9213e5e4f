"""What every command refuses before it does anything, and what a person cannot take from beat."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command, get_commands, load_command_class
from django.core.management.base import CommandError

from reprocessing.domain.lifecycle import LetterState
from reprocessing.gateways import aws
from reprocessing.management.commands import release_parked
from reprocessing.management.console import PIECES, Console
from reprocessing.management.shared.parking_command import Decisions
from reprocessing.models import AuditEntry, DeadLetterQueue, GlobalStop
from reprocessing.models.dlq import Mode
from reprocessing.pipeline.runs import feed_run
from reprocessing.store.dlqs import dlq_status
from reprocessing.store.rights import roles
from tests.reprocessing.commands.conftest import AddRow, Ask
from tests.reprocessing.commands.refusals import refusal
from tests.reprocessing.commands.stock import add_letter, add_source

pytestmark = pytest.mark.django_db

PROJECT = Path(__file__).parents[3]

#: What Python makes of a byte that is not UTF-8; and what no text in PostgreSQL holds.
BYTE, ZERO = "b\udcff", "b\0"
COMMANDS = [
    ("add_dlq", "orders", "--by", "?"),
    ("add_dlq", "orders", "--url", "?"),
    ("add_dlq", "orders", "--source", "?"),
    ("peek_dlq", "?"),
    ("redrive_status", "?"),
    ("rerun", "?"),
    ("stop_redrive", "--all", "--reason", "why", "--by", "?", "--confirm"),
    ("stop_redrive", "orders", "--reason", "?", "--confirm"),
]


@pytest.mark.parametrize(
    "given", [("--reason", "why", "--by=--"), ("--reason=--", "--confirm"), ("--reason", "why", "--json=--", "--", "x")]
)
def test_an_option_without_its_value_is_refused_in_a_sentence(
    given: tuple[str, ...], add_row: AddRow, capsys: pytest.CaptureFixture[str]
) -> None:
    add_row("orders")
    (wrong,) = [one[:-3] for one in given if one.endswith("=--")]
    with pytest.raises(SystemExit) as ended:
        load_command_class("reprocessing", "stop_redrive").run_from_argv(
            ["manage.py", "stop_redrive", "orders", *given]
        )
    told = capsys.readouterr()
    assert (ended.value.code, told.out, told.err) == (
        2, "", f"Nothing was done: {wrong} needs a value, and -- is not a value.\n",
    )  # fmt: skip
    assert not DeadLetterQueue.objects.exclude(stopped_at=None).exists()


@pytest.mark.parametrize("bad", [BYTE, ZERO])
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_text_is_refused_in_a_sentence(command: tuple[str, ...], bad: str, add_row: AddRow) -> None:
    row = add_row("orders")
    with pytest.raises(
        CommandError, match=r"Nothing was done: the value of .* has a zero byte, or bytes.*UTF-8 text"
    ) as told:
        call_command(*(bad if one == "?" else one for one in command))
    assert str(told.value).isascii()
    row.refresh_from_db()
    assert (row.stopped_at, GlobalStop.objects.count(), AuditEntry.objects.count()) == (None, 0, 0)


def test_hidden_characters_in_an_error_are_visible() -> None:
    with pytest.raises(CommandError, match=r'^No DLQ is named "a<U\+001B>\[31m<U\+202E>b"'):
        call_command("redrive_status", "a\x1b[31m\u202eb")


def test_ctrl_c_ends_a_command_in_a_sentence_with_the_status_of_a_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(roles, "role_differences", interrupted)
    with pytest.raises(CommandError, match=r"Interrupted\. Changes that were made before") as told:
        call_command("make_roles")
    assert told.value.returncode == 130


def test_the_manual_says_what_every_command_exits_with() -> None:
    manual = (PROJECT / "docs" / "production.md").read_text()
    table = manual.partition("## Exit statuses")[2].partition("\n## ")[0]
    ours = [name for name, app in get_commands().items() if app.startswith(("reprocessing", "redrive_service"))]
    cells = [row.split("|")[2] for row in table.splitlines() if row.startswith("|")]
    named = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(named) == sorted(ours)


@pytest.mark.parametrize(
    ("pieces", "told"),
    [
        ([[]], []), ([[], [1, 2], [], [3]], [1, 2, 3]), ([[1]], [1]), ([{}], {}),
        ([{"a": 1}, {"b": 2}], {"a": 1, "b": 2}),
    ],
)  # fmt: skip
def test_what_is_long_is_one_object_on_one_line(pieces: list[Any], told: object) -> None:
    out = StringIO()
    Console(stdout=out).report_in_pieces({"n": 3, "dlqs": [{"long": PIECES}]}, pieces)
    assert out.getvalue().count("\n") == 1
    assert json.loads(out.getvalue()) == {"n": 3, "dlqs": [{"long": told}]}


def test_of_what_is_long_each_piece_is_told_before_the_next_is_read() -> None:
    out, seen = StringIO(), []

    def pieces() -> Iterator[list[Any] | dict[str, Any]]:
        for number in range(3):
            yield [number]
            seen.append(out.getvalue())

    Console(stdout=out).report_in_pieces({"long": PIECES}, pieces())
    assert seen == ['{"long": [0', '{"long": [0, 1', '{"long": [0, 1, 2']


def test_the_states_of_letters_are_read_some_at_a_time_and_told_as_one_object(
    add_row: AddRow, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = add_source(add_row("orders"))
    letters = [add_letter(source, LetterState.PARKED) for _ in range(5)]
    states = {one.message_id: "parked" for one in letters}
    pages = list(dlq_status.letter_states(source.dlq_id, page=2))
    assert [len(one) for one in pages] == [2, 2, 1]
    assert {key: value for one in pages for key, value in one.items()} == states
    monkeypatch.setattr(dlq_status, "letter_states", partial(dlq_status.letter_states, page=2))
    assert json.loads(ask("redrive_status", "orders", "--messages", "--json"))["dlqs"][0]["states"] == states


def test_each_dlq_has_an_automatic_run_whose_id_no_person_can_take(add_row: AddRow) -> None:
    rows = [add_row("n" * 95 + last) for last in "ab"]
    runs = [feed_run.automatic_run(one) for one in rows]
    assert [(run.dlq_id, run.name) for run in runs] == [(row.pk, f"automatic:{row.pk}") for row in rows]
    assert "is not valid" in refusal("drain_dlq", rows[0].name, "--run", runs[0].name)


def test_an_automatic_run_is_told_of_in_words(add_row: AddRow, ask: Ask) -> None:
    row = add_row("orders")
    run = feed_run.automatic_run(row)
    assert "run       automatic is running: 0 messages unfinished" in ask("redrive_status", "orders")
    assert "This is the automatic run of orders" in refusal("rerun", run.name)
    letter = add_letter(add_source(row), LetterState.PARKED, run=run)
    text = "The automatic run of orders sends what was released, with beat and workers."
    command = "the next command sends it, and also the DLQ's other messages: manage.py drain_dlq orders --confirm"
    for mode, said in ((Mode.AUTOMATIC, text), (Mode.MANUAL, f"{text} Without them, {command}")):
        DeadLetterQueue.objects.update(mode=mode)
        assert list(release_parked.Command().next_steps(Decisions([letter.pk]))) == [said]


@pytest.mark.parametrize(
    "command", [("put_alarms",), ("provision_queues", "orders"), ("iam_policy", "--mode", "manual")]
)
def test_an_aws_configuration_that_cannot_be_used_is_a_refusal_with_its_cure(
    command: tuple[str, ...], add_row: AddRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_row("orders")
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    aws.forget_clients()
    try:
        assert "(nobody) could not be found. Correct or unset AWS_PROFILE" in refusal(*command)
    finally:
        monkeypatch.undo()
        aws.forget_clients()
