"""The command `manage.py redrive_status`, which shows the status of DLQs, or of one message."""

from __future__ import annotations

import time
from contextlib import suppress
from itertools import chain
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError, CommandParser
from django.db.models import QuerySet

from reprocessing.management.arguments import add_json, not_empty, number
from reprocessing.management.console import PIECES, Console, find_dlq
from reprocessing.management.output import status_output
from reprocessing.management.output.status_json import letter_in_json, status
from reprocessing.models import Attempt, DeadLetterQueue, Letter
from reprocessing.store.dlqs import dlq_status

_CLEAR = "\033[H\033[2J"


class Command(Console):
    """Show the status of one DLQ, of all DLQs, or of one message.

    Shows the number of messages by state, whether sends are stopped, circuit breakers, runs, and why messages wait.
    Changes nothing. Sends no request to SQS.

    Examples:
        redrive_status orders --watch
        redrive_status --message 2f1c9a4e-8d0b-4c1e-9b7a-3f5d6e7a8b9c
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", nargs="?", metavar="NAME", help="name of a DLQ, as given to add_dlq (default: all)")
        parser.add_argument("--watch", action="store_true", help="show the status again and again, until Ctrl-C")
        parser.add_argument(
            "--every", type=number(0.1, 86_400), default=2.0, metavar="SECONDS",
            help="with --watch: seconds until the status is shown again (default: %(default)s)",
        )  # fmt: skip
        parser.add_argument(
            "--messages", action="store_true", help="with --json and NAME: also show the state of every message"
        )
        parser.add_argument(
            "--message", type=not_empty, metavar="ID", help="show only the message with this message id or redrive id"
        )
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        key = find_dlq(options["name"]).pk if options["name"] else None
        if options["messages"] and not (key and options["json"]):
            raise CommandError("--messages needs the name of a DLQ, and --json.")
        if options["message"]:
            self.tell_of(options["message"], key, options)
            return
        try:
            self.tell(key, options)
            while options["watch"] and self.is_read:
                time.sleep(options["every"])
                self.tell(key, options)
        except KeyboardInterrupt:
            self.say()

    def tell(self, key: int | None, options: dict[str, Any]) -> None:
        found = status(key)
        if options["messages"] and key:
            found["dlqs"][0]["states"] = PIECES
            self.report_in_pieces(found, chain([{}], dlq_status.letter_states(key)))
        elif options["json"]:
            self.report(found)
        else:
            clear = _CLEAR if options["watch"] and self.stdout.isatty() else ""
            self.say(clear + "\n".join(status_output.status_lines(found)))

    def tell_of(self, text: str, key: int | None, options: dict[str, Any]) -> None:
        """Show all messages with this id: several messages can have the same message id.

        `key` is the id of the DLQ to search. If `key` is None, all DLQs are searched.

        Raises:
            CommandError: no message has this id.
        """
        found = [letter_in_json(letter) for letter in find_letters(text, key)]
        if not found:
            raise CommandError(f'No message has the id "{text}". Give its message id or its redrive id.')
        if options["json"]:
            self.report({"messages": found})
        else:
            self.say("\n".join(line for one in found for line in status_output.message_lines(one)))


def find_letters(text: str, key: int | None) -> list[Letter]:
    """Return the messages with this redrive id or message id.

    A message id is the id in the DLQ, or the id that SQS gave to the message when this service sent it. `key` is the
    id of the DLQ to search. If `key` is None, all DLQs are searched.
    """
    dlqs = [key] if key else list(DeadLetterQueue.objects.values_list("pk", flat=True))
    # Each part uses an index. With OR, PostgreSQL would read all letters.
    named = Letter.objects.filter(dlq__in=dlqs, message_id=text).values("pk")
    others: list[QuerySet[Any, Any]] = [Attempt.objects.filter(sent_message_id=text).values("letter")]
    with suppress(ValueError):
        others.append(Letter.objects.filter(public_id=UUID(text.partition(":")[0])).values("pk"))
    found = Letter.objects.filter(pk__in=named.union(*others), dlq__in=dlqs)
    return list(found.select_related("dlq").order_by("pk"))
