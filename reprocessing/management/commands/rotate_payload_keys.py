"""The command `manage.py rotate_payload_keys`, which encrypts all data keys with the first of the configured keys."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from reprocessing.domain.errors import PayloadKeyUnavailable
from reprocessing.management.arguments import add_change_options
from reprocessing.management.console import Console
from reprocessing.management.shared.progress import ProgressLog
from reprocessing.models import AuditAct, AuditEntry, PayloadKey
from reprocessing.pipeline.payloads import key_ring, rotate
from reprocessing.pipeline.payloads.rotate import Rotated
from reprocessing.store.ordering import lanes
from reprocessing.store.payloads import payload_keys


class Command(Console):
    """Encrypt all data keys with the first key of REDRIVE_PAYLOAD_KEYS, so that its other keys can be removed later.

    Payloads are encrypted with data keys, and data keys with a key of REDRIVE_PAYLOAD_KEYS. This command encrypts only
    the data keys anew, not the payloads. Before you run it, restart every process with the new key as the first key.
    Otherwise, a process would still use the old key for new data keys. Capturing and sending continue meanwhile. With
    --seal-readable, payloads that were stored before encryption was enabled are encrypted, too. If the command is
    interrupted, run it again: it continues.

    Examples:
        rotate_payload_keys --reason "yearly rotation"
        rotate_payload_keys --seal-readable --reason "encryption was enabled" --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--seal-readable",
            action="store_true",
            help="also encrypt payloads, edits and texts that are stored unencrypted",
        )
        add_change_options(parser)

    def answer(self, options: dict[str, Any]) -> None:
        if not payload_keys.encrypts():
            raise CommandError(
                "Nothing was done: REDRIVE_PAYLOAD_KEYS is not set, so there is no key. Make one with openssl rand "
                "-base64 32, and set REDRIVE_PAYLOAD_KEYS=NAME=KEY (docs/payloads.md)."
            )
        first = key_ring.first_key()
        refuse_wrong_keys()
        waiting = PayloadKey.objects.exclude(wrapped=None).exclude(wrapped_by=first).count()
        if not options["confirm"]:
            self.tell(options, first, {"keys": waiting}, f"{waiting:,} data keys would be encrypted with {first}.")
            return
        log = ProgressLog(self.stderr)

        def show_progress(done: Rotated) -> None:
            log.line_if_due(lambda: f"{done.keys:,} data keys, {done.payloads:,} payloads, {done.edits:,} edits")

        done = rotate.rewrap_keys(show_progress)
        if options["seal_readable"]:
            sealed = rotate.seal_readable(lanes.database_now().date(), show_progress)
            done.payloads, done.edits, done.texts = sealed.payloads, sealed.edits, sealed.texts
        counts = {"keys": done.keys, "payloads": done.payloads, "edits": done.edits, "texts": done.texts}
        AuditEntry.objects.create(
            act=AuditAct.ROTATED, by=options["by"], reason=options["reason"], after={"to": first, **counts}
        )
        self.tell(options, first, counts, f"{done.keys:,} data keys were encrypted with {first}.")

    def tell(self, options: dict[str, Any], first: str, counts: dict[str, int], text: str) -> None:
        used = payload_keys.used_wrapping_keys()
        if options["json"]:
            result = {"dry_run": not options["confirm"], "to": first, **counts, "keys_in_use": used}
            self.report(result)
            return
        self.say(text)
        if "payloads" in counts and options["seal_readable"]:
            self.say(
                f"Encrypted: {counts['payloads']:,} payloads, {counts['edits']:,} edits, {counts['texts']:,} texts."
            )
        if not options["confirm"]:
            self.say("This was a dry run: nothing was changed. To do it, add --confirm.")
        elif set(used) <= {first}:
            self.say(
                f"No data key is wrapped by another key than {first} now. Other keys can be removed from "
                f"REDRIVE_PAYLOAD_KEYS when every process has been restarted with {first} first, and redrive_doctor, "
                "run after that, does not name them."
            )


def refuse_wrong_keys() -> None:
    """Check that REDRIVE_PAYLOAD_KEYS has every key that encrypts a data key, and that each key decrypts its data keys.

    A key is found by its name, so a wrong key could have the right name.

    Raises:
        CommandError: the text says which key, and what to do.
    """
    try:
        for name in payload_keys.used_wrapping_keys():
            payload_keys.check_fits(name)
    except PayloadKeyUnavailable as error:
        raise CommandError(f"Nothing was done: {error}") from error
