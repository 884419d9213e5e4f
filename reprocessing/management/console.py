"""The base class of all commands: it shows help, runs the command, prints text or JSON, and reports errors."""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Any, Final, TypeVar

from django.core.management.base import CommandError, CommandParser, DjangoHelpFormatter
from django.db import ProgrammingError
from django.db.models import Model, QuerySet

from reprocessing import conf
from reprocessing.domain.approvals.requested_action import ApprovalNeeded
from reprocessing.domain.errors import RedriveError
from reprocessing.domain.message.safe_text import visible
from reprocessing.management.arguments import current_user
from reprocessing.management.command_line import DOCUMENTED, as_invoked, command, database_cure
from reprocessing.management.command_parser import StrictCommand
from reprocessing.management.table import Cells, plain_table, rich_table
from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.approvals import request as requesting
from reprocessing.store import rows

#: Placeholder in JSON that `report_in_pieces` replaces. PostgreSQL stores no zero byte, so no stored text equals it.
PIECES: Final = "\0later"
#: Exit status of a command that did nothing, but requested the approval of a second person.
NEEDS_APPROVAL: Final = 3
_INTERRUPTED = 130  #: exit status that a shell shows for a process that Ctrl-C ended
_EXAMPLES = "Examples:\n"

Row = TypeVar("Row", bound=Model)


class HelpFormatter(DjangoHelpFormatter):
    """Formats the help of a command: wraps paragraphs, but keeps the lines of indented paragraphs, such as examples."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = [
            one if "\n  " in one else super(HelpFormatter, self)._fill_text(one, width, indent)
            for one in text.split("\n\n")
        ]
        return "\n\n".join(paragraphs)


class Console(StrictCommand):
    """A command that prints text or, with --json, one JSON object. An error is a sentence on standard error.

    The docstring of a subclass is the help of the command. Lines below "Examples:" are command lines without
    `manage.py`. The exit status is 0 if everything was done or shown, and 1 if something was refused or failed.
    docs/production.md lists all exit statuses. If the reader closes standard output (`| head`), the command finishes.
    """

    requires_system_checks: list[str] = []  # noqa: RUF012  # stop_redrive must run even if a check fails
    is_read = True  #: False after the reader closed standard output
    examples: tuple[str, ...] = ()

    def __init_subclass__(cls) -> None:
        """Set help and examples from the docstring of the subclass."""
        cls.help, _, lines = inspect.cleandoc(cls.__doc__ or "").partition(f"\n\n{_EXAMPLES}")
        cls.examples = tuple(line.strip() for line in lines.splitlines())

    def create_parser(self, prog_name: str, subcommand: str, **options: Any) -> CommandParser:  # noqa: ANN401  # Django's
        """Return the parser of the command line. Its help text ends with the examples."""
        lines = "".join(f"  {DOCUMENTED} {one}\n" for one in self.examples)
        epilog = as_invoked(_EXAMPLES + lines) if lines else None
        return super().create_parser(prog_name, subcommand, formatter_class=HelpFormatter, epilog=epilog, **options)

    def run_from_argv(self, argv: list[str]) -> None:
        """Run the command from a shell. Refuse an option with the value `--`, such as `--reason=--`.

        argparse would read `--reason=--` as an option without a value.
        """
        for given in takewhile(lambda word: word != "--", argv[2:]):
            if given.startswith("--") and given.endswith("=--"):
                self.stderr.write(f"Nothing was done: {given[:-3]} needs a value, and -- is not a value.")
                sys.exit(2)
        super().run_from_argv(argv)

    def handle(self, *_: Any, **options: Any) -> None:  # noqa: ANN401  # Django's own signature
        """Run the command. In the text of an error, replace `manage.py` by what the user typed to start it.

        Hidden characters in the text, such as those of a mistyped argument, are made visible.
        """
        try:
            self.run(options)
        except CommandError as error:
            error.args = (visible(as_invoked(str(error))),)
            raise

    def run(self, options: dict[str, Any]) -> None:
        """Run the command, and turn expected errors into CommandError.

        Raises:
            CommandError: the text says what happened, why, and what to do.
        """
        refuse_unreadable_text(options)
        try:
            self.answer(options)
        except ApprovalNeeded as needed:
            try:
                self.request_approval(needed, options)
            except RedriveError as error:
                raise CommandError(f"{error} Add: --reason WHY") from error
        except RedriveError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt as error:
            raise CommandError(
                "Interrupted. Changes that were made before the interruption are kept.", returncode=_INTERRUPTED
            ) from error
        except rows.OUTAGES as error:
            raise CommandError(f"PostgreSQL cannot be reached: {_first_line(error)}. {database_cure()}") from error
        except ProgrammingError as error:
            raise CommandError(
                f"The database does not match this version: {_first_line(error)}. Run: manage.py migrate"
            ) from error

    def request_approval(self, needed: ApprovalNeeded, options: dict[str, Any]) -> None:
        """Store a request that a second person approves the action of this command.

        Raises:
            CommandError: always, because nothing was done: exit status 3. The text says how to approve the request.
        """
        by = options.get("by") or current_user()
        row = requesting.request(needed, by=by, reason=self.reason_of(options), lasts=conf.current().approval_life)
        if options.get("json"):
            self.report({"approval": row.pk, "messages": row.messages, "expires_at": row.expires_at})
        approves = command("approve", str(row.pk), "--reason", "WHY", "--by", "NAME", "--confirm")
        raise CommandError(
            f"Nothing was done: {row.title} needs a second person. Approval {row.pk} is requested by {row.by}, for "
            f"{'all' if row.messages is None else f'{row.messages:,}'} messages. It expires at "
            f"{format_time(row.expires_at)}. Somebody else runs: {approves}",
            returncode=NEEDS_APPROVAL,
        )

    def reason_of(self, options: dict[str, Any]) -> str:
        """Return the reason for a request for approval, which `request_approval` stores."""
        return options.get("reason") or ""

    def answer(self, options: dict[str, Any]) -> None:
        """Do the command's work and print the result. Each command implements this."""
        raise NotImplementedError

    def say(self, text: str = "") -> None:
        """Print text, with `manage.py` replaced by what the user typed to start it, so that commands can be pasted."""
        self.write(as_invoked(text))

    def table(self, header: Cells, rows: Iterable[Cells]) -> None:
        """Print a table. On a terminal, it is as wide as the terminal."""
        found = list(rows)
        self.say(rich_table(header, found) if self.stdout.isatty() else plain_table(header, found))

    def write(self, text: str, *, ending: str = "\n") -> None:
        """Print text unchanged. Does nothing after the reader closed standard output."""
        try:
            self.stdout.write(text, ending=ending)
            self.stdout.flush()
        except BrokenPipeError:
            self.is_read = _silence()

    def report(self, found: object) -> None:
        """Print one JSON object on one line. Command lines in it begin with `manage.py`, whatever the user typed."""
        self.write(json.dumps(found, default=_in_json))

    def report_in_pieces(self, found: object, pieces: Iterable[list[Any] | dict[str, Any]]) -> None:
        """Print one JSON object on one line, without holding its one large value in memory as a whole.

        In the object `found`, the placeholder `PIECES` stands for the large value. `pieces` are the parts of this
        value: all are lists, or all are dicts. They are joined, and printed instead of the placeholder.
        """
        head, tail = json.dumps(found, default=_in_json).split(json.dumps(PIECES))
        ends, between = "", ""
        for piece in pieces:
            text = json.dumps(piece, default=_in_json)
            if not ends:
                self.write(head + text[0], ending="")
                ends = text[-1]
            if not self.is_read:
                return
            if piece:
                self.write(between + text[1:-1], ending="")
                between = ", "
        self.write(ends + tail)


def refuse_unreadable_text(options: dict[str, Any]) -> None:
    """Refuse arguments that PostgreSQL and SQS cannot store.

    Raises:
        CommandError: an argument has a zero byte, or bytes that are not UTF-8.
    """
    for name, value in options.items():
        for text in value if isinstance(value, list | tuple) else [value]:
            if isinstance(text, str) and not _is_text(text):
                raise CommandError(
                    f"Nothing was done: the value of {name.replace('_', ' ')}, {text!a}, has a zero byte, or bytes "
                    "that are not UTF-8. Give it as UTF-8 text without zero bytes."
                )


def find_named(rows: QuerySet[Row], name: str, *, kind: str, hint: str) -> Row:
    """Return the row with this name.

    Args:
        rows: the rows to search.
        name: the name.
        kind: what the error calls a row, such as "rule".
        hint: the command that adds a row, for the error.

    Raises:
        CommandError: no row has this name. The text lists the known names or, if there are none, shows `hint`.
    """
    found = rows.filter(name=name).first()
    if found is None:
        known = ", ".join(rows.order_by("name").values_list("name", flat=True))
        there_are = f"There are: {known}." if known else f"None has been added yet. Add one: {hint}"
        raise CommandError(f'No {kind} is named "{name}". {there_are}')
    return found


def find_dlq(name: str) -> DeadLetterQueue:
    """Return the DLQ with this name.

    Raises:
        CommandError: no DLQ has this name.
    """
    hint = "manage.py add_dlq NAME --url URL --confirm"
    return find_named(DeadLetterQueue.objects.all(), name, kind="DLQ", hint=hint)


def format_time(moment: datetime | None) -> str:
    """Return a time as commands print it, such as `2026-03-01 08:00:00 UTC`. For None, return `never`."""
    return "never" if moment is None else f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(' ', 'seconds')} UTC"


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def _in_json(value: object) -> object:
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case timedelta():
            return value.total_seconds()
        case _:
            raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _silence() -> bool:
    """Redirect standard output to /dev/null, so that Python's flush at its exit does not fail.

    Return False, the new value of `Console.is_read`: the reader closed standard output.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return False
