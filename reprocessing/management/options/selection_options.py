"""Add the options that select the messages of a run, and read the selection."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from reprocessing.domain.message.arn import resource_name
from reprocessing.domain.runs.selection import Selection
from reprocessing.management.arguments import iso_time, not_empty, whole_number
from reprocessing.models import DeadLetterQueue


def add_selection(parser: CommandParser) -> None:
    """Add the options that select messages. If no option is given, all messages are selected."""
    chosen = parser.add_argument_group("options that select messages (a message must match all that are given)")
    chosen.add_argument(
        "--limit",
        type=whole_number(1),
        metavar="N",
        help="select at most N messages; ordering keys with the oldest messages come first",
    )
    chosen.add_argument(
        "--source", type=not_empty, metavar="NAME", help="select messages that failed in this source queue"
    )
    chosen.add_argument(
        "--sent-after",
        type=iso_time,
        metavar="TIME",
        help="select messages first sent at or after this time (ISO 8601)",
    )
    chosen.add_argument(
        "--sent-before", type=iso_time, metavar="TIME", help="select messages first sent before this time (ISO 8601)"
    )
    chosen.add_argument("--key", type=not_empty, metavar="KEY", help="select messages with this ordering key")
    chosen.add_argument(
        "--message-id", action="append", type=not_empty, metavar="ID",
        help="select the message with this id; repeatable. The message is sent only if all captured messages before "
        "it in its key queue are selected, too",
    )  # fmt: skip


def read_selection(options: dict[str, Any], dlq: DeadLetterQueue) -> Selection | None:
    """Return the selection that the options describe, or None if no option was given.

    Raises:
        CommandError: no message of the DLQ can match: the times contradict each other, or the source is unknown.
    """
    wish = Selection(
        limit=options["limit"],
        source=options["source"],
        sent_after=options["sent_after"],
        sent_before=options["sent_before"],
        key=options["key"],
        message_ids=tuple(sorted(set(options["message_id"] or ()))),
    )
    if wish.sent_after and wish.sent_before and wish.sent_after >= wish.sent_before:
        raise CommandError("No message can match: --sent-after is not before --sent-before. Swap them.")
    if wish.source is not None:
        known = list(dlq.sources.order_by("arn").values_list("arn", flat=True))
        if not any(wish.source in {arn, resource_name(arn)} for arn in known):
            names = ", ".join(map(resource_name, known)) or "none"
            raise CommandError(f"{dlq.name} has no source queue {wish.source}. It has: {names}.")
    return None if wish == Selection() else wish
