"""The command `manage.py erase`, which erases everything that the service stores about a person."""

from __future__ import annotations

from argparse import ArgumentTypeError
from dataclasses import replace
from typing import Any

from django.core.management.base import CommandError, CommandParser

from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.management.arguments import add_change_options
from reprocessing.management.console import Console, find_dlq
from reprocessing.management.shared.progress import ProgressLog
from reprocessing.pipeline.payloads import erase
from reprocessing.pipeline.payloads.erase import Erased, Found

_NAMES = ("key", "text", "field", "q", "dlq", "sent_after", "sent_before")

_SHORT = (
    "The value has fewer than 4 characters. Only whole keys and values were replaced: reasons, notes and other texts "
    "may still have the value."
)
_NO_MATCH = (
    "Nothing was done: no message matches --where, and no stored text has the value. Check the value's spelling."
)


def condition(text: str) -> tuple[str, str]:
    """Read the value of --where, NAME=VALUE, and return name and value."""
    name, equals, value = text.partition("=")
    if name not in _NAMES or not equals or not value:
        raise ArgumentTypeError(f"write NAME=VALUE, such as key=4711; names: {', '.join(_NAMES)}")
    return name, value


class Command(Console):
    """Erase what is stored about a person: the messages that contain a value, and the value in the audit log.

    Erases payloads, edits, report texts, ordering and idempotency keys of all messages that match --where, in every
    state. Then replaces the value by [erased] in the audit log, and in stored texts of runs and other actions. Messages
    in progress are not erased: run the command again when they are finished. The command adds an entry to the audit
    log, the certificate. The entry has counts and times of the erasure, but not the value. A value of fewer than 4
    characters must be a whole key or the whole value of a search field. Such a short value is not replaced in texts,
    such as reasons and notes.

    Examples:
        erase --where key=customer-4711 --reason "request 17 under the GDPR"
        erase --where text=ann@example.com --where dlq=orders --reason "request 17 under the GDPR" --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--where", action="append", required=True, type=condition, metavar="NAME=VALUE",
            help="condition that messages must match; repeatable: messages must match all. NAME is a filter of the "
            "admin: key (ordering key), text (text in the body), field (value of a search field: "
            "field=order_id:4711), q (message id, redrive id, ordering key or value of any search field), dlq (name "
            "of the DLQ), sent_after, sent_before (time when it was first sent)",
        )  # fmt: skip
        add_change_options(parser)

    def answer(self, options: dict[str, Any]) -> None:
        criteria = self.criteria(options["where"])
        short = erase.is_short(erase.value_of(criteria))
        if not options["confirm"]:
            self.tell_plan(found := erase.count_erasable(criteria), options, short=short)
            if not found.letters and not found.history:
                raise CommandError(_NO_MATCH)
            return
        log = ProgressLog(self.stderr)
        done = erase.erase(
            criteria, by=options["by"], reason=options["reason"],
            on_progress=lambda n: log.line_if_due(lambda: f"{n:,} messages"),
        )  # fmt: skip
        self.tell_result(done, options, short=short)
        if not done.counts and not done.busy:
            raise CommandError(_NO_MATCH)

    def criteria(self, where: list[tuple[str, str]]) -> MessageFilter:
        query: dict[str, list[str]] = {}
        for name, value in where:
            query.setdefault(name, []).append(str(find_dlq(value).pk) if name == "dlq" else value)
        return replace(MessageFilter.from_query(query), states=(), reveals=True)

    def tell_plan(self, found: Found, options: dict[str, Any], *, short: bool) -> None:
        if options["json"]:
            result = {"dry_run": True, "messages": found.letters, "in_progress": found.busy, "history": found.history}
            self.report(result | {"texts_searched": not short})
            return
        if not found.letters and not found.history:
            return
        if short:
            self.say(_SHORT.replace("were replaced", "are replaced"))
        self.say(f"{found.letters:,} messages match, {found.busy:,} of them in progress.")
        for table, n in found.history.items():
            self.say(f"History with the value: {table}, {n:,} rows.")
        self.say("This was a dry run: nothing was changed. To erase for good, add --confirm.")

    def tell_result(self, done: Erased, options: dict[str, Any], *, short: bool) -> None:
        finished = not done.busy
        if options["json"]:
            result = {"dry_run": False, "erasure": done.erasure, "finished": finished, "in_progress": done.busy}
            self.report(result | {"counts": done.counts, "texts_searched": not short})
        elif done.counts:
            self.say(f"Erasure {done.erasure}: " + ", ".join(f"{n:,} {name}" for name, n in done.counts.items() if n))
            if short:
                self.say(_SHORT)
            if finished:
                self.say(
                    "It is finished. Its certificate is in the audit log. docs/payloads.md says what backups contain."
                )
        if not finished:
            raise CommandError(
                f"{done.busy:,} messages are queued, or are being sent, or await their outcome. They were not erased. "
                "Wait until they are finished, or abort their run, and run the same command again."
            )
