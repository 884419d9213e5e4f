"""Add the options that set waves, rate and order for one new run only, and read their values."""

from __future__ import annotations

from argparse import BooleanOptionalAction
from typing import Any

from django.core.management.base import CommandError, CommandParser

from reprocessing.management.arguments import number
from reprocessing.management.command_line import command
from reprocessing.models import DeadLetterQueue
from reprocessing.models.target import MAX_RATE, MIN_RATE, Advance
from reprocessing.pipeline.runs import run_actions


def add_run_limits(parser: CommandParser) -> None:
    """Add the options --waves, --rate and --advance, which apply only to the new run."""
    parser.add_argument(
        "--waves", action=BooleanOptionalAction,
        help="send in waves: 1 message first, then 10, then 100, then all; the run pauses if a wave fails "
        "(default: as set with add_dlq)",
    )  # fmt: skip
    parser.add_argument(
        "--rate", type=number(MIN_RATE, MAX_RATE), metavar="R",
        help="send at most R messages/s of this run to each target (default: the targets' rates)",
    )  # fmt: skip
    parser.add_argument(
        "--advance", choices=[Advance.ACCEPTED.value],
        help="accepted: send a key's next message when the target accepted the message before, without waiting for the "
        "outcome. A message that fails again is then sent after later messages of its key (default: as set for the "
        "targets)",
    )  # fmt: skip


def read_run_limits(options: dict[str, Any], dlq: DeadLetterQueue) -> dict[str, Any]:
    """Return the values of --waves, --rate and --advance as arguments of `RunRequest`.

    Raises:
        CommandError: --advance is given, but runs of this DLQ must wait for outcomes.
    """
    early = options["advance"] is not None
    if early and (why := run_actions.why_it_must_wait(dlq)):
        raise CommandError(f"{why} Leave out --advance.")
    return {"in_waves": options["waves"], "rate": options["rate"], "waits_for_outcomes": not early}


def refuse_run_limits(options: dict[str, Any], dlq: DeadLetterQueue) -> None:
    """Refuse --waves, --rate and --advance for a run that exists already: its limits were set when it was planned.

    Raises:
        CommandError: one of these options is given.
    """
    given = [f"--{name}" for name in ("waves", "rate", "advance") if options[name] is not None]
    if given:
        raise CommandError(
            f"{' and '.join(given)}: {options['run']} exists already, with its own limits. Leave the option out, "
            f"change the limits of a plan in the admin, or plan a new run: {command('drain_dlq', dlq.name)}"
        )
