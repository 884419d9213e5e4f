"""What every command of a person has in common: how it is asked, how it answers, and how it says what is wrong."""

from __future__ import annotations

import getpass
import json
import math
import os
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import InterfaceError, InternalError, OperationalError, ProgrammingError

from reprocessing.domain.errors import RedriveError
from reprocessing.management.command_line import as_invoked
from reprocessing.models import DeadLetterQueue

#: Stands where `report_at_length` puts what it is given in pieces; no text that PostgreSQL holds has a zero byte.
LATER: Final = "\0later"
_LARGEST = 2**31 - 1  #: of a column of whole numbers
_DIGITS = 20  #: of a number that is worth reading
_INTERRUPTED = 130  #: what a shell reports of a process that Ctrl-C ended


class Console(BaseCommand):
    """A command whose answers may be read by a person or, with --json, by a program; its refusals are sentences.

    docs/production.md promises its exit statuses: 0 is done or told, 1 refused, failed or not all of it done.

    A reader that goes away (`| head`) ends nothing: the command does what it was told, and nobody is told of it.
    """

    requires_system_checks: list[str] = []  # noqa: RUF012  # an emergency stop needs no templates
    heard = True  #: False as soon as nobody reads standard output any more

    def run_from_argv(self, argv: list[str]) -> None:
        """Django's entry from a shell; argparse takes `--reason=--` for a reason that was given, and has none."""
        for given in takewhile(lambda one: one != "--", argv[2:]):
            if given.startswith("--") and given.endswith("=--"):
                self.stderr.write(f"Nothing was done: {given[:-3]} is given --, which is no value.")
                sys.exit(2)
        super().run_from_argv(argv)

    def handle(self, *_: Any, **options: Any) -> None:  # noqa: ANN401  # Django's own signature
        """Django's word for `answer`."""
        try:
            self.attempt(options)
        except CommandError as error:
            error.args = (as_invoked(str(error)),)
            raise

    def attempt(self, options: dict[str, Any]) -> None:
        """Answer, or refuse in a sentence.

        Raises:
            CommandError: what is wrong, and the cure.
        """
        refuse_what_is_no_text(options)
        try:
            self.answer(options)
        except RedriveError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt as error:
            raise CommandError("Interrupted: what was done by then stays done.", returncode=_INTERRUPTED) from error
        except (OperationalError, InterfaceError, InternalError) as error:
            raise CommandError(f"PostgreSQL is out of reach: {_first_line(error)}. Check DATABASE_URL.") from error
        except ProgrammingError as error:
            raise CommandError(
                f"The database lacks what this version needs: {_first_line(error)}. Run manage.py migrate."
            ) from error

    def answer(self, options: dict[str, Any]) -> None:
        """Do what the command is for."""
        raise NotImplementedError

    def say(self, text: str = "") -> None:
        """One line, or several, for whoever reads standard output."""
        self.write(as_invoked(text))

    def write(self, text: str, *, ending: str = "\n") -> None:
        """Text as it is; with another `ending`, a piece of a line."""
        try:
            self.stdout.write(text, ending=ending)
            self.stdout.flush()
        except BrokenPipeError:
            self.heard = _silence()

    def report(self, found: object) -> None:
        """One JSON object on one line; command lines in it begin with manage.py, however this was invoked."""
        self.write(json.dumps(found, default=_in_json))

    def report_at_length(self, found: object, pieces: Iterable[list[Any] | dict[str, Any]]) -> None:
        """One JSON object on one line, of which one member, `LATER` in `found`, is still being read, piece by piece.

        No more than a piece is kept in memory, however many there are; where nobody reads any more, none is read. The
        first piece, which may be empty, says whether they make up a list or an object.
        """
        head, tail = json.dumps(found, default=_in_json).split(json.dumps(LATER))
        ends, between = "", ""
        for piece in pieces:
            text = json.dumps(piece, default=_in_json)
            if not ends:
                self.write(head + text[0], ending="")
                ends = text[-1]
            if not self.heard:
                return
            if piece:
                self.write(between + text[1:-1], ending="")
                between = ", "
        self.write(ends + tail)


def refuse_what_is_no_text(options: dict[str, Any]) -> None:
    """Refuse arguments that neither PostgreSQL nor SQS can be told, before anything is done.

    Raises:
        CommandError: it names the argument, and what is wrong with it.
    """
    for name, value in options.items():
        for text in value if isinstance(value, list | tuple) else [value]:
            if isinstance(text, str) and not _is_text(text):
                raise CommandError(
                    f"Nothing was done: what was given as {name.replace('_', ' ')}, {text!a}, is no text. It "
                    "holds a zero byte, or bytes that are not UTF-8. Say it in UTF-8, without them."
                )


def add_name(parser: CommandParser) -> None:
    """The name of a dlq."""
    parser.add_argument("name", metavar="NAME", help="the dlq's name")


def add_json(parser: CommandParser) -> None:
    """Whether a program reads the answer."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_confirm(parser: CommandParser) -> None:
    """Whether anything is to be done."""
    parser.add_argument("--confirm", action="store_true", help="do it; without it nothing is changed, only told")


def add_person(parser: CommandParser, *, reason: str | None = None) -> None:
    """Who acts, and why; `reason` is what is written down where none is given, None where one must be."""
    parser.add_argument("--by", default=whoever_is_here(), type=words, metavar="WHO", help="who does it (%(default)s)")
    parser.add_argument(
        "--reason", required=reason is None, default=reason, type=words, metavar="WHY", help="why; it is kept"
    )


def find(name: str) -> DeadLetterQueue:
    """The dlq of this name.

    Raises:
        CommandError: there is none; it names those there are.
    """
    found = DeadLetterQueue.objects.filter(name=name).first()
    if found is None:
        known = ", ".join(DeadLetterQueue.objects.order_by("name").values_list("name", flat=True))
        there_are = (
            f"There are: {known}."
            if known
            else "None has been added yet. Add one: manage.py add_dlq NAME --url URL --confirm"
        )
        raise CommandError(f'No dlq is named "{name}". {there_are}')
    return found


def whoever_is_here() -> str:
    """The operating system's name of whoever runs this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user has a number and no name
        return f"uid {os.getuid()}"


def words(text: str) -> str:
    """An argument that says something."""
    if not text.strip():
        raise ArgumentTypeError("it is empty; say something")
    return text.strip()


def number(least: float, most: float, *, above: bool = False) -> Callable[[str], float]:
    """The type of an argument that is a number of at least, or above, so much, and at most so much."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (least < value if above else least <= value) or value > most:
            begins = f"{'above' if above else 'of at least'} {least:g}"
            raise ArgumentTypeError(f"{text!r} is not a number {begins} and at most {most:,.15g}")
        return value

    return read


def whole(least: int, most: int = _LARGEST) -> Callable[[str], int]:
    """The type of an argument that is a whole number of at least so much, and at most so much."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS and least <= int(text) <= most):
            raise ArgumentTypeError(f"{text!r} is not a whole number of at least {least} and at most {most:,}")
        return int(text)

    return read


def moment(text: str) -> datetime:
    """The type of an argument that is a moment in ISO 8601; one without an offset is UTC."""
    try:
        value = datetime.fromisoformat(text)
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise ArgumentTypeError(f"{text!r} is no moment; 2026-03-01T08:00:00Z is one") from None


def when(moment: datetime | None) -> str:
    """A moment, as it is printed."""
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
            raise TypeError(f"{type(value).__name__} has no form in JSON")


def _silence() -> bool:
    """Have standard output go nowhere, since Python would try again, in vain, as it ends; whether it is heard: no."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return False
