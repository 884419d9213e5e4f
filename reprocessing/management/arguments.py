"""Add options that many commands share, and read the values of arguments.

A function that reads an argument raises ArgumentTypeError for a value that is not valid.
"""

from __future__ import annotations

import getpass
import math
import os
from argparse import ArgumentTypeError
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.core.management.base import CommandParser
from django.core.validators import validate_slug

from reprocessing.domain.approvals.person import is_one_name
from reprocessing.domain.configuration import keys
from reprocessing.management.command_parser import CONFIRM_NEEDS_REASON

OFF: Final = keys.OFF  #: the value of an option that removes a setting
_LARGEST = 2**31 - 1  #: largest value of an integer column of PostgreSQL
_DIGITS = 20  #: max digits of a number; a longer text is refused unread
_LONGEST_NAME = 100  #: max characters of a name
_LONGEST_PERSON = 150  #: max characters of a person's name, as for Django's users; an index has it


def add_name(parser: CommandParser) -> None:
    """Add the argument NAME, which names a DLQ."""
    parser.add_argument("name", metavar="NAME", help="name of the DLQ, as given to add_dlq")


def add_json(parser: CommandParser) -> None:
    """Add the option --json, with which a command prints JSON."""
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")


def add_confirm(parser: CommandParser) -> None:
    """Add the option --confirm, without which a command changes nothing."""
    parser.add_argument(
        "--confirm",
        action="store_true",
        help="execute the command; without --confirm, only show what the command would do",
    )


def add_by(parser: CommandParser) -> None:
    """Add the option --by, the user's name for the audit log."""
    parser.add_argument(
        "--by",
        default=current_user(),
        type=person,
        metavar="WHO",
        help="your name, for the audit log (default: %(default)s)",
    )


def add_run_reason(parser: CommandParser) -> None:
    """Add --reason to a command that starts a run. It is required only if a second person must approve the run."""
    parser.add_argument(
        "--reason",
        type=not_empty,
        metavar="WHY",
        help="reason, for the audit log; required if a second person must approve the run",
    )


def add_change_options(parser: CommandParser, *, reason: str | None = None) -> None:
    """Add --by, --reason, --confirm and --json.

    `reason` is the default of --reason. If `reason` is None, there is no default, and a user who gives --confirm must
    also give --reason. A dry run needs no reason.
    """
    add_by(parser)
    needed = "" if reason else "; required with --confirm"
    parser.add_argument(
        "--reason", default=reason, type=not_empty, metavar="WHY", help=f"reason, for the audit log{needed}"
    )
    add_confirm(parser)
    parser.set_defaults(**{CONFIRM_NEEDS_REASON: reason is None})
    add_json(parser)


def current_user() -> str:
    """Return the name of the operating system's user who runs this process, or `uid NUMBER` if it has no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # in a container, a user can have an id without a name
        return f"uid {os.getuid()}"


def not_empty(text: str) -> str:
    """Return the argument without surrounding white space. Refuse an empty argument."""
    if not text.strip():
        raise ArgumentTypeError("it is empty. Is the shell variable set?")
    return text.strip()


def person(text: str) -> str:
    """Return the name of one person. Refuse "ann, approved by bob": this is how the audit log names two people."""
    name = not_empty(text)
    if not is_one_name(name):
        raise ArgumentTypeError(f"{text!r} is not the name of one person")
    if len(name) > _LONGEST_PERSON:
        raise ArgumentTypeError(f"it is longer than {_LONGEST_PERSON} characters")
    return name


def slug(text: str) -> str:
    """Return the argument if it is at most 100 letters, digits, hyphens and underscores. Refuse other names."""
    try:
        validate_slug(text)
    except ValidationError:
        raise ArgumentTypeError(f"{text!r} is not valid: use letters, digits, hyphens and underscores") from None
    if len(text) > _LONGEST_NAME:
        raise ArgumentTypeError(f"it is longer than {_LONGEST_NAME} characters")
    return text


@dataclass(frozen=True, slots=True)
class Matching:
    """A function that reads an argument. It returns the argument's text if `accepts(text)` is true.

    If not, the error says what the text should be (`what`), and shows a valid text (`example`).
    """

    accepts: Callable[[str], object]
    what: str
    example: str

    def __call__(self, text: str) -> str:  # noqa: D102
        if not self.accepts(text):
            raise ArgumentTypeError(f"{text!r} is not {self.what}. Example: {self.example}")
        return text


def matching(accepts: Callable[[str], object], what: str, example: str) -> Matching:
    """Return a function that reads an argument, and refuses a text for which `accepts(text)` is false."""
    return Matching(accepts, what, example)


@dataclass(frozen=True, slots=True)
class Number:
    """A function that reads a number from `least` to `most`. If `above` is true, it refuses `least` itself."""

    least: float
    most: float
    above: bool = False

    def __call__(self, text: str) -> float:  # noqa: D102
        try:
            value = float(text) if text.isascii() else math.nan
        except ValueError:
            value = math.nan
        if not (self.least < value if self.above else self.least <= value) or value > self.most:
            begins = f"{'above' if self.above else 'of at least'} {self.least:g}"
            raise ArgumentTypeError(f"{text!r} is not a number {begins} and at most {self.most:,.15g}")
        return value


def number(least: float, most: float, *, above: bool = False) -> Number:
    """Return a function that reads a number from `least` to `most`. If `above` is true, it refuses `least` itself."""
    return Number(least, most, above)


@dataclass(frozen=True, slots=True)
class WholeNumber:
    """A function that reads an argument that is a whole number from `least` to `most`."""

    least: int
    most: int

    def __call__(self, text: str) -> int:  # noqa: D102
        if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS and self.least <= int(text) <= self.most):
            raise ArgumentTypeError(
                f"{text!r} is not a whole number of at least {self.least} and at most {self.most:,}"
            )
        return int(text)


def whole_number(least: int, most: int = _LARGEST) -> WholeNumber:
    """Return a function that reads a whole number from `least` to `most` (default: 2,147,483,647)."""
    return WholeNumber(least, most)


@dataclass(frozen=True, slots=True)
class OrOff:
    """A function that reads an argument: it returns "off" unchanged, and reads other texts with `read`."""

    read: Callable[[str], Any]

    def __call__(self, text: str) -> Any:  # noqa: ANN401, D102  # an argument's type
        return OFF if text == OFF else self.read(text)


def or_off(read: Callable[[str], Any]) -> OrOff:
    """Return a function that reads an argument: it returns "off" unchanged, and reads other texts with `read`."""
    return OrOff(read)


def iso_time(text: str) -> datetime:
    """Read a time in ISO 8601, and return it in UTC. A time without a UTC offset counts as UTC."""
    try:
        value = datetime.fromisoformat(text)
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise ArgumentTypeError(f"{text!r} is not a time. Use ISO 8601, such as 2026-03-01T08:00:00Z") from None
