"""Select parked or discarded messages for a decision: by options, or exactly the messages that a dry run showed."""

from __future__ import annotations

import re
import shlex
from argparse import ArgumentTypeError
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count

from reprocessing.domain.lifecycle import LetterState, ParkedReason
from reprocessing.domain.parking_lot.selection_mark import EPOCH, MICROSECOND
from reprocessing.management.console import format_time
from reprocessing.models import DeadLetterQueue, Letter
from reprocessing.store.ordering import lanes

#: Max messages that a dry run shows for each parking reason.
SHOWN = 3
_LENGTH = re.compile(r"(\d{1,9})([smhd]?)", re.ASCII)
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_LONGEST = 36_500 * 86_400  #: seconds: 100 years, the max duration
_LONGEST_KEY_SHOWN = 60  #: characters
_MARK = re.compile(r"\d{1,17}-[0-9a-f]{16}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Parked:
    """A parked or discarded message, without its payload.

    `id` is the id of its letter, and `key` its ordering key or None. `since` is the time when it was parked or
    discarded. `reason` says why it is parked, and is empty for a discarded message.
    """

    id: int
    message_id: str
    key: str | None
    reason: str
    since: datetime


def select_messages(dlq: DeadLetterQueue, state: LetterState, options: dict[str, Any]) -> list[Parked]:
    """Return the messages in this state that match the options, in the order in which they were parked or discarded."""
    found = Letter.objects.filter(dlq=dlq, state=state.value)
    if options.get("parked_for"):
        found = found.filter(reason__in=options["parked_for"])
    if options["key"] is not None:
        found = found.filter(ordering_key=options["key"])
    if options["message_id"]:
        found = found.filter(message_id__in=options["message_id"])
    if options["older_than"] is not None:
        found = found.filter(finished_at__lt=lanes.database_now() - options["older_than"])
    if options["selection"] is not None:  # the dry run did not show messages that were parked later
        found = found.filter(finished_at__lte=EPOCH + int(options["selection"].partition("-")[0]) * MICROSECOND)
    limit: int | None = options["limit"]
    fields = ("pk", "message_id", "ordering_key", "reason", "finished_at")
    return [Parked(*row) for row in found.order_by("finished_at", "pk").values_list(*fields)[:limit]]


def filter_options(options: dict[str, Any]) -> list[str]:
    """Return, as words of a command line, the given options that select messages, such as --key and --older-than."""
    given: list[str] = []
    for name in ("parked_for", "message_id"):
        given += [part for value in options.get(name) or () for part in (f"--{name.replace('_', '-')}", value)]
    if options["key"] is not None:
        given.append(f"--key={options['key']}")
    if options["older_than"] is not None:
        given += ["--older-than", f"{options['older_than'] // timedelta(seconds=1)}s"]
    return given


def shell_quoted(given: Iterable[str]) -> str:
    """Join words to a command line that a shell can run: quote them, and write invisible characters as escapes."""
    return " ".join(shlex.quote(one) if one.isprintable() else f"$'{_escaped(one)}'" for one in given)


def _escaped(text: str) -> str:
    known = {"\\": r"\\", "'": r"\'"}
    return "".join(
        known.get(one, one) if one.isprintable() else "".join(f"\\x{byte:02x}" for byte in one.encode()) for one in text
    )


def no_match(dlq: DeadLetterQueue, state: LetterState, options: dict[str, Any]) -> str:
    """Return an error text that no message matches, with the number of the DLQ's messages in this state, by reason."""
    there = Letter.objects.filter(dlq=dlq, state=state.value).order_by("reason").values_list("reason")
    kinds = ", ".join(f"{n:,} {reason}".strip() for reason, n in there.annotate(n=Count("pk"))) or "no messages"
    if kinds == "no messages":
        return f"{dlq.name} has no {state} messages."
    return (
        f"No {state} message of {dlq.name} matches {shell_quoted(filter_options(options))}. {state.capitalize()} "
        f"there: {kinds}. Keys and message ids must match exactly. To list messages, leave out a filter and --confirm."
    )


def selection_type(text: str) -> str:
    """Read the value of --selection: the mark with which a dry run identified the selected messages."""
    if not _MARK.fullmatch(text):
        raise ArgumentTypeError(f"{text!r} is not the mark of a selection. Copy it from a dry run")
    return text


def selection_lines(dlq: DeadLetterQueue, state: LetterState, chosen: Sequence[Parked]) -> Iterable[str]:
    """Yield lines about the selected messages: their number, then up to three messages for each parking reason."""
    if not chosen:
        yield f"{dlq.name} has no {state} messages."
        return
    found = f"{len(chosen):,} {state} {'message matches' if len(chosen) == 1 else 'messages match'}"
    yield f"{dlq.name}: {found}:"
    for reason, count in Counter(one.reason for one in chosen).most_common():
        if reason:
            yield f"  {count:,} parked because: {ParkedReason(reason).sentence} (--parked-for {reason})"
        of_reason = [one for one in chosen if one.reason == reason]
        for one in of_reason[:SHOWN]:
            key = f", key {_short(one.key)}" if one.key is not None else ""
            yield f"      {one.message_id}{key}, since {format_time(one.since)}"
        if count > SHOWN:
            yield f"      and {count - SHOWN:,} more"


def duration(text: str) -> timedelta:
    """Read a duration, such as 30m, up to 100 years. A number without a unit is in seconds."""
    found = _LENGTH.fullmatch(text)
    seconds = int(found[1]) * _SECONDS[found[2]] if found else _LONGEST + 1
    if seconds > _LONGEST:
        raise ArgumentTypeError(f"{text!r} is not a duration of at most 100 years. Examples: 90s, 30m, 12h, 7d")
    return timedelta(seconds=seconds)


def _short(key: str) -> str:
    return repr(key if len(key) <= _LONGEST_KEY_SHOWN else f"{key[:_LONGEST_KEY_SHOWN]}…")
