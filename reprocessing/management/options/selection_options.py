"""How letters are selected on the command line."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from reprocessing.domain.message.arn import name_of
from reprocessing.domain.runs.selection import Selection
from reprocessing.management.console import moment, whole, words
from reprocessing.models import DeadLetterQueue


def add_selection(parser: CommandParser) -> None:
    """Which letters; none of these: all."""
    chosen = parser.add_argument_group("which letters (all of these together)")
    chosen.add_argument("--limit", type=whole(1), metavar="N", help="so many at most, the oldest lanes first")
    chosen.add_argument("--origin", type=words, metavar="NAME", help="those that died in this queue")
    chosen.add_argument("--died-after", type=moment, metavar="TIME", help="those that died then or later (ISO 8601)")
    chosen.add_argument("--died-before", type=moment, metavar="TIME", help="those that died before")
    chosen.add_argument("--key", metavar="KEY", help="those of one ordering key")
    chosen.add_argument(
        "--message-id", action="append", type=words, metavar="ID",
        help="this one; may be given several times. Whatever is asked for: a letter goes only when all captured "
        "letters before it in its lane go, too; others are told as behind",
    )  # fmt: skip


def selected(options: dict[str, Any], dlq: DeadLetterQueue) -> Selection | None:
    """What was asked for; None when nothing was said.

    Raises:
        CommandError: no letter of the dlq could be meant.
    """
    wish = Selection(
        limit=options["limit"],
        origin=options["origin"],
        died_after=options["died_after"],
        died_before=options["died_before"],
        key=options["key"],
        message_ids=tuple(sorted(set(options["message_id"] or ()))),
    )
    if wish.died_after and wish.died_before and wish.died_after >= wish.died_before:
        raise CommandError("No letter died both after --died-after and before --died-before: turn them round.")
    if wish.origin is not None:
        known = list(dlq.origins.order_by("arn").values_list("arn", flat=True))
        if not any(wish.origin in {arn, name_of(arn)} for arn in known):
            names = ", ".join(map(name_of, known)) or "none"
            raise CommandError(f"No letter of {dlq.name} can have died in {wish.origin}. Its origins: {names}.")
    return None if wish == Selection() else wish
