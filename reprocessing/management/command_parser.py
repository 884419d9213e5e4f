"""The parser of command lines: it accepts no abbreviated options, and reports an error in two lines."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any, Final, Never

from django.core.management.base import BaseCommand, CommandError, CommandParser

from reprocessing.management.command_line import as_invoked

_MISUSED = 2  #: exit status of a command line that the parser refuses


#: Name of a parser's default (`set_defaults`): true if --confirm also needs --reason. Users cannot set it.
CONFIRM_NEEDS_REASON: Final = "confirm_needs_reason"
_NO_REASON: Final = "the following arguments are required: --reason"


class StrictParser(CommandParser):
    """A parser that refuses abbreviated options: `--conf` would otherwise be read as `--confirm`, and send messages."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401  # argparse's
        super().__init__(**{"allow_abbrev": False} | options)

    def parse_known_args(  # type: ignore[override]  # one signature instead of argparse's overloads
        self,
        args: Sequence[str] | None = None,
        namespace: Any = None,  # noqa: ANN401  # argparse's
    ) -> tuple[Any, list[str]]:
        """Read the arguments. Refuse --confirm without --reason if the command needs a reason."""
        found: tuple[Namespace, list[str]] = super().parse_known_args(args, namespace)
        if _lacks_reason(vars(found[0])):
            self.error(_NO_REASON)
        return found

    def error(self, message: str) -> Never:
        """Print the message and how to list the options, and exit. If called by Python code, raise CommandError."""
        if not self.called_from_command_line:
            super().error(message)
        if message == _NO_REASON:
            message += ". The reason is for the audit log, such as --reason 'consumer fixed'"
        self.exit(_MISUSED, as_invoked(f"{self.prog}: {message}\nOptions: {self.prog} --help\n"))


class StrictCommand(BaseCommand):
    """A command whose parser is a StrictParser. Parsers of subcommands need `parser_class=StrictParser`."""

    def create_parser(self, prog_name: str, subcommand: str, **options: Any) -> CommandParser:  # noqa: ANN401  # Django's
        """Return the parser of the command line."""
        parser = super().create_parser(prog_name, subcommand, **{"allow_abbrev": False} | options)
        parser.__class__ = StrictParser  # Django's create_parser has no argument for the class
        return parser

    def execute(self, *args: Any, **options: Any) -> str | None:  # noqa: ANN401  # Django's
        """Run the command. Refuse confirm=True without a reason, too: call_command does not use the parser.

        Raises:
            CommandError: the command needs a reason, and there is none. Nothing was done.
        """
        if _lacks_reason(options):
            raise CommandError(f"Error: {_NO_REASON}")
        options.pop(CONFIRM_NEEDS_REASON, None)
        found: str | None = super().execute(*args, **options)
        return found


def _lacks_reason(options: Mapping[str, Any]) -> bool:
    return bool(options.get(CONFIRM_NEEDS_REASON) and options["confirm"] and not (options["reason"] or "").strip())
