"""Help: grouped commands, examples that run, tables, and progress."""

from __future__ import annotations

import io
import shlex
import time

import pytest
from django.core.management import call_command, get_commands, load_command_class
from django.core.management.base import BaseCommand, CommandError

from reprocessing.management.command_help import GROUPS, Utility, one_line
from reprocessing.management.console import Console
from reprocessing.management.shared.progress import Pace
from reprocessing.management.table import plain_table, rich_table
from reprocessing.models import AuditEntry
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked

OURS = {name: app for name, app in get_commands().items() if app.startswith(("reprocessing", "redrive_service"))}
COMMANDS = {name: load_command_class(app, name) for name, app in OURS.items()}


def test_every_example_in_a_command_s_help_is_accepted_by_its_parser() -> None:
    for name, command in COMMANDS.items():
        if not isinstance(command, Console):
            continue
        assert len(command.examples) >= 2, name
        for example in command.examples:
            first, *words = shlex.split(example)
            assert first == name
            command.create_parser("manage.py", name).parse_args(words)
        assert f"\n  manage.py {command.examples[0]}\n" in command.create_parser("manage.py", name).format_help()


def lines_of(name: str, command: BaseCommand) -> list[list[str]]:
    """The words of the command's examples without --confirm; of a command without examples, none."""
    examples = command.examples if isinstance(command, Console) else (name,)
    return [[word for word in shlex.split(one)[1:] if word != "--confirm"] for one in examples]


def without_reason(words: list[str]) -> list[str]:
    at = words.index("--reason") if "--reason" in words else len(words)
    return [*words[:at], *words[at + 2 :]]


def is_accepted(name: str, command: BaseCommand, *words: str) -> bool:
    try:
        command.create_parser("manage.py", name).parse_args(words)
    except (CommandError, SystemExit):
        return False
    return True


@pytest.mark.soak
def test_no_command_takes_an_abbreviation_for_confirm() -> None:
    confirmed = [
        (name, command, words) for name, command in COMMANDS.items() for words in lines_of(name, command)
        if is_accepted(name, command, *words, "--confirm")
    ]  # fmt: skip
    assert {"drain_dlq", "deployment_files", "native_redrive", "purge_idempotency"} < {name for name, *_ in confirmed}
    assert [name for name, command, words in confirmed if is_accepted(name, command, *words, "--conf")] == []


def test_no_command_takes_an_abbreviation_of_any_option() -> None:
    sandbox = load_command_class("redrive_service.sandbox", "sandbox")
    abbreviated = [
        name for name, command in [*COMMANDS.items(), ("sandbox", sandbox)] for words in lines_of(name, command)
        if is_accepted(name, command, "--verbosi=1", *words)
    ]  # fmt: skip
    assert abbreviated == []


NO_REASON = (
    "the following arguments are required: --reason. The reason is for the audit log, such as --reason 'consumer fixed'"
)


def test_an_error_of_a_command_line_is_the_message_and_where_the_options_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for words, told in (
        (["drain_dlq", "orders", "--conf"], "manage.py drain_dlq: unrecognized arguments: --conf"),
        (["serve", "--threads", "0"], "manage.py serve: argument --threads: "),
        (["native_redrive", "start"], "manage.py native_redrive start: the following arguments are required: NAME"),
        (["release_parked", "orders", "--confirm"], f"manage.py release_parked: {NO_REASON}"),
        (["after_restore", "release", "--confirm"], f"manage.py after_restore release: {NO_REASON}"),
    ):
        with pytest.raises(SystemExit) as ended:
            COMMANDS[words[0]].run_from_argv(["manage.py", *words])
        first, last, *more = capsys.readouterr().err.splitlines()
        assert (ended.value.code, first.startswith(told), more) == (2, True, [])
        assert last == f"Options: {told.partition(':')[0]} --help"


def test_a_dry_run_of_every_command_needs_no_reason() -> None:
    """A few commands have a default reason; the others refuse --confirm without --reason."""
    for name, command in COMMANDS.items():
        for words in map(without_reason, lines_of(name, command)):
            assert is_accepted(name, command, *words), (name, words)


@pytest.mark.parametrize(
    ("words", "told"),
    [("stop_redrive --all", "NOT STOPPED"), ("add_rate_class bulk --rate 5", "dry run"),
     ("require_approvals --above 100", "dry run"), ("release_parked orders --parked-for attempts_spent", "dry run")],
)  # fmt: skip
@pytest.mark.django_db
def test_a_dry_run_without_a_reason_shows_what_would_be_done(words: str, told: str) -> None:
    parked(dlq("orders"))
    said = io.StringIO()
    call_command(*words.split(), stdout=said)
    assert told in said.getvalue()
    assert not AuditEntry.objects.exists()


def confirmed_without_reason() -> list[tuple[str, list[str]]]:
    """Command lines, without --confirm and --reason, of the commands that need a reason with --confirm."""
    found = []
    for name, command in COMMANDS.items():
        for words in lines_of(name, command):
            bare = without_reason(words)
            if bare != words and not is_accepted(name, command, *bare, "--confirm"):
                found.append((name, bare))
    return found


@pytest.mark.parametrize("reason", [{}, {"reason": None}, {"reason": " "}], ids=["none", "null", "blank"])
def test_python_code_that_confirms_needs_a_reason_as_well(
    monkeypatch: pytest.MonkeyPatch, reason: dict[str, str | None]
) -> None:
    """The parser does not see keyword arguments of call_command."""
    monkeypatch.setattr(Console, "run", lambda self, _: pytest.fail(f"{type(self).__module__} ran"))
    lines = confirmed_without_reason()
    assert {"release_parked", "stop_redrive", "erase", "native_redrive", "after_restore"} < {name for name, _ in lines}
    for name, words in lines:
        with pytest.raises(CommandError, match=r"^Error: the following arguments are required: --reason$"):
            call_command(name, *words, confirm=True, **reason)


def test_python_code_that_gives_a_reason_or_does_not_confirm_runs_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = list[bool]()
    monkeypatch.setattr(Console, "run", lambda _, options: ran.append("confirm_needs_reason" in options))
    call_command("stop_redrive", all=True, confirm=True, reason="INC-7")
    call_command("stop_redrive", all=True)
    call_command("add_reporter", "shop", confirm=True)
    assert ran == [False, False, False]


def test_every_option_has_a_help_text_and_every_command_a_first_line_that_fits() -> None:
    for name, command in COMMANDS.items():
        actions = command.create_parser("manage.py", name)._actions
        assert [action.dest for action in actions if not action.help] == [], name
        assert 0 < len(one_line(command)) <= 110, name


def test_help_lists_each_of_our_commands_once_under_its_capability_before_django_s() -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    assert sorted(grouped) == sorted({*OURS, "sandbox"})
    lines = Utility(["manage.py", "help"]).main_help_text().splitlines()
    assert [line for line in lines if line in GROUPS] == list(GROUPS)
    assert [line.split()[0] for line in lines if line.startswith("  ")][: len(grouped)] == grouped
    assert lines.index("  migrate") > lines.index("Servers")


def test_programs_get_django_s_list_of_commands() -> None:
    assert "drain_dlq" in Utility(["manage.py", "help", "--commands"]).main_help_text(commands_only=True).split()


ROWS = (["orders", "1"], ["[red]x", "1,000"])


def test_a_table_is_aligned_without_a_terminal() -> None:
    assert plain_table(("name", "n"), ROWS).splitlines() == ["NAME    N", "orders  1", "[red]x  1,000"]


@pytest.mark.parametrize("width", [20, 80])
def test_a_table_on_a_terminal_fits_it_and_keeps_every_character(width: int) -> None:
    lines = rich_table(("name", "n"), ROWS, width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert "[red]x" in "".join(lines).replace(" ", "")


def test_a_pace_is_the_rate_of_the_last_samples_and_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 10.0, 20.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    pace = Pace()
    assert [pace.add(0, 100), pace.add(50, 50), pace.add(100)] == ["", ", 5/s, about 10 seconds left", ", 5/s"]
