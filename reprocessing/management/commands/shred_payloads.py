"""The command `manage.py shred_payloads`, which destroys the payloads of a DLQ, or of single messages."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from reprocessing.domain.errors import ErasureRefused
from reprocessing.management.arguments import add_change_options, add_name, not_empty
from reprocessing.management.console import Console, find_dlq
from reprocessing.management.shared.progress import ProgressLog
from reprocessing.models import DeadLetterQueue, Letter, PayloadKey
from reprocessing.pipeline.payloads import shred
from reprocessing.store.payloads import removal


class Command(Console):
    """Destroy the payloads of a DLQ, or of single messages. The messages cannot be read or sent any more.

    For a DLQ, the data keys that encrypt its payloads are destroyed first. Then the payloads are deleted. Captured and
    parked messages become discarded. The command is refused while messages are queued, are being sent, or await their
    outcome. docs/payloads.md says what backups still contain.

    Examples:
        shred_payloads orders --message-id 2f1c9a4e-8d0b-4c1e-9b7a-3f5d6e7a8b9c --reason "contains a password"
        shred_payloads orders --reason "the customer left" --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        add_name(parser)
        parser.add_argument(
            "--message-id", action="append", type=not_empty, metavar="ID",
            help="destroy only the payload of the message with this id; repeatable",
        )  # fmt: skip
        add_change_options(parser)

    def answer(self, options: dict[str, Any]) -> None:
        dlq = find_dlq(options["name"])
        if options["message_id"]:
            self.shred_messages(dlq, options)
            return
        letters = Letter.objects.filter(dlq=dlq, payload__isnull=False).count()
        keys = PayloadKey.objects.filter(dlq=dlq, destroyed_at=None).count()
        if why := shred.why_not_shred(dlq):
            raise ErasureRefused(f"Nothing was done: {why}")
        if options["confirm"]:
            log = ProgressLog(self.stderr)
            done = shred.shred_dlq(
                dlq, by=options["by"], reason=options["reason"],
                on_progress=lambda n: log.line_if_due(lambda: f"{n:,} of {letters:,} messages"),
            )  # fmt: skip
            keys, letters = done.keys, done.letters
        self.tell(dlq, options, letters, keys)

    def shred_messages(self, dlq: DeadLetterQueue, options: dict[str, Any]) -> None:
        found = dict(
            Letter.objects.filter(dlq=dlq, message_id__in=options["message_id"]).values_list("message_id", "pk")
        )
        if missing := sorted(set(options["message_id"]) - found.keys()):
            raise CommandError(
                f"Nothing was done: {dlq.name} has no message {', '.join(missing)}. Ids must match exactly."
            )
        gone = removal.destroyed_before(found.values())
        n = len(found) - len(gone)
        if options["confirm"]:
            done = shred.shred_messages(list(found.values()), by=options["by"], reason=options["reason"])
            n, gone = len(done.letters), done.gone
            if done.busy:
                busy = [message_id for message_id, pk in found.items() if pk in done.busy]
                self.tell(dlq, options, n, 0)
                raise CommandError(
                    f"{len(busy):,} are queued, or are being sent, or await their outcome: {', '.join(busy)}. Wait, "
                    "and run the command again."
                )
        if gone and not options["json"]:
            ids = ", ".join(message_id for message_id, pk in found.items() if pk in gone)
            self.say(f"Destroyed before, so nothing is left to destroy: {ids}.")
        if n or options["json"]:
            self.tell(dlq, options, n, 0)

    def tell(self, dlq: DeadLetterQueue, options: dict[str, Any], letters: int, keys: int) -> None:
        if options["json"]:
            result = {"dlq": dlq.name, "dry_run": not options["confirm"], "messages": letters, "payload_keys": keys}
            self.report(result)
        elif options["confirm"]:
            self.say(f"{letters:,} payloads of {dlq.name} and {keys:,} data keys were destroyed.")
        else:
            self.say(f"{letters:,} payloads of {dlq.name} and {keys:,} data keys would be destroyed.")
            self.say("This was a dry run: nothing was changed. To destroy them for good, add --confirm.")
