"""Code of release_parked, discard_parked and restore_discarded, which act on an exact selection of messages."""

from __future__ import annotations

import hashlib
import re
import shlex
from argparse import ArgumentTypeError
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from django.core.management.base import CommandError, CommandParser
from django.db.models import Count

from reprocessing.domain.lifecycle import LetterState, ParkedReason
from reprocessing.management.arguments import add_change_options, add_name, current_user, not_empty, whole_number
from reprocessing.management.command_line import DOCUMENTED
from reprocessing.management.console import Console, find_dlq, format_time
from reprocessing.management.shared.progress import Pace, ProgressLog
from reprocessing.models import DeadLetterQueue, Letter
from reprocessing.pipeline.parking_lot.act_on_parked import Reviewed
from reprocessing.store.ordering import lanes

#: Max messages that one transaction changes.
GROUP_SIZE = 500
#: Max messages that are shown for each reason.
_SHOWN = 3
_LENGTH = re.compile(r"(\d{1,9})([smhd]?)", re.ASCII)
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_LONGEST = 36_500 * 86_400
_LONGEST_KEY_SHOWN = 60
_MARK = re.compile(r"\d{1,17}-[0-9a-f]{16}", re.ASCII)
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Parked:
    """A parked or discarded message, without its payload. `reason` is empty for a discarded message."""

    id: int
    message_id: str
    key: str | None
    reason: str
    since: datetime


@dataclass(slots=True)
class Decisions:
    """The result of acting on selected messages: ids of changed messages, and why others were refused."""

    done: list[int] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


class ParkingCommand(Console):
    """A command that acts on parked or discarded messages."""

    done_word: ClassVar[str]  #: past participle, as in "12 messages are released"
    act: ClassVar[Callable[..., Reviewed]]
    state: ClassVar[LetterState] = LetterState.PARKED  #: only messages in this state can be selected

    def add_arguments(self, parser: CommandParser) -> None:  # noqa: D102  Django's own
        add_name(parser)
        if self.state is LetterState.PARKED:
            parser.add_argument(
                "--parked-for", action="append", choices=[reason.value for reason in ParkedReason], metavar="CODE",
                help=f"select messages that were parked for this reason; repeatable: {', '.join(ParkedReason)}",
            )  # fmt: skip
        parser.add_argument("--key", type=not_empty, metavar="K", help="select messages with this ordering key")
        parser.add_argument(
            "--message-id",
            action="append",
            type=not_empty,
            metavar="ID",
            help="select the message with this id; repeatable",
        )
        parser.add_argument(
            "--older-than",
            type=duration,
            metavar="AGE",
            help=f"select messages that were {self.state} longer ago than this, such as 90s, 30m, 12h or 7d",
        )
        parser.add_argument(
            "--limit", type=whole_number(1), metavar="N", help="select at most N messages, oldest first"
        )
        parser.add_argument(
            "--selection", type=selection_type, metavar="MARK",
            help="select exactly the messages that a dry run showed; copy MARK from its last line",
        )  # fmt: skip
        add_change_options(parser)

    def answer(self, options: dict[str, Any]) -> None:  # noqa: D102  the base's own
        dlq = find_dlq(options["name"])
        how = self.act_arguments(options)
        chosen = select_messages(dlq, self.state, options)
        mark = selection_mark(chosen)
        if options["selection"] not in {None, mark}:
            raise CommandError(
                f"Nothing was done: some messages of the dry run are no longer {self.state}, or were {self.state} "
                "again. To see the present messages, leave out --confirm and --selection."
            )
        decided = self.decide(chosen, options, how) if options["confirm"] else Decisions()
        if options["json"]:
            self.report(self.in_json(dlq, chosen, decided, options, mark))
        else:
            results = self.result_lines(chosen, decided, options, mark)
            self.say("\n".join([*selection_lines(dlq, self.state, chosen), *results]))
        if not chosen and filter_options(options):
            raise CommandError(no_match(dlq, self.state, options))
        if decided.refused:
            raise CommandError(f"{len(decided.refused):,} of {len(chosen):,} are not {self.done_word}: reasons above.")

    def act_arguments(self, options: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """Return the keyword arguments that a subclass passes to `act`."""
        return {}

    def act_options(self, options: dict[str, Any]) -> list[str]:  # noqa: ARG002
        """Return the command-line options from which `act_arguments` was made, for the command that is shown."""
        return []

    def decide(self, chosen: Sequence[Parked], options: dict[str, Any], how: dict[str, Any]) -> Decisions:
        """Act on these messages, at most `GROUP_SIZE` in a transaction."""
        decided, pace, telling = Decisions(), Pace(), ProgressLog(self.stderr)
        for first in range(0, len(chosen), GROUP_SIZE):
            ids = {one.id: one.message_id for one in chosen[first : first + GROUP_SIZE]}
            reviewed = type(self).act(list(ids), by=options["by"], reason=options["reason"], **how)
            decided.done += reviewed.done
            decided.refused |= {ids[letter]: why for letter, why in reviewed.refused.items()}
            past = first + len(ids)
            telling.line_if_due(lambda: f"{past:,} of {len(chosen):,} messages{pace.add(past, len(chosen) - past)}")  # noqa: B023
        return decided

    def result_lines(
        self, chosen: Sequence[Parked], decided: Decisions, options: dict[str, Any], mark: str
    ) -> Iterable[str]:
        """Yield lines: what was done; in a dry run, the command that acts on these messages."""
        if not chosen:
            return
        if not options["confirm"]:
            yield f"This was a dry run: none of them is {self.done_word}. To act on exactly these:"
            yield self.acting_command(options, mark)
            return
        yield f"{len(decided.done):,} of {len(chosen):,} {'is' if len(chosen) == 1 else 'are'} {self.done_word}."
        yield from refusal_lines(decided)
        yield from self.next_steps(decided)

    def next_steps(self, decided: Decisions) -> Iterable[str]:  # noqa: ARG002
        """Yield lines that say what to do next."""
        return ()

    def acting_command(self, options: dict[str, Any], mark: str) -> str:
        """Return the command line that acts on exactly these messages."""
        given = [DOCUMENTED, type(self).__module__.rpartition(".")[2], options["name"], *filter_options(options)]
        if options["limit"] is not None:
            given += ["--limit", str(options["limit"])]
        given += ["--by", options["by"]] if options["by"] != current_user() else []
        given += self.act_options(options)
        return shell_quoted([*given, f"--reason={options['reason']}", "--selection", mark, "--confirm"])

    def in_json(
        self, dlq: DeadLetterQueue, chosen: Sequence[Parked], decided: Decisions, options: dict[str, Any], mark: str
    ) -> dict[str, Any]:
        """Return as JSON which messages were selected, changed and refused."""
        return {
            "dlq": dlq.name,
            "dry_run": not options["confirm"],
            "letters": len(chosen),
            "reasons": dict(Counter(one.reason for one in chosen)),
            self.done_word: len(decided.done),
            "refused": decided.refused,
            "selection": mark,
        }


def select_messages(dlq: DeadLetterQueue, state: LetterState, options: dict[str, Any]) -> list[Parked]:
    """Return the messages in this state that match the options, oldest first."""
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
        found = found.filter(finished_at__lte=_EPOCH + int(options["selection"].partition("-")[0]) * _MICROSECOND)
    limit: int | None = options["limit"]
    fields = ("pk", "message_id", "ordering_key", "reason", "finished_at")
    return [Parked(*row) for row in found.order_by("finished_at", "pk").values_list(*fields)[:limit]]


def filter_options(options: dict[str, Any]) -> list[str]:
    """Return the given options that select messages, to repeat them in a command line."""
    given: list[str] = []
    for name in ("parked_for", "message_id"):
        given += [part for value in options.get(name) or () for part in (f"--{name.replace('_', '-')}", value)]
    if options["key"] is not None:
        given.append(f"--key={options['key']}")
    if options["older_than"] is not None:
        given += ["--older-than", f"{options['older_than'] // timedelta(seconds=1)}s"]
    return given


def shell_quoted(given: Iterable[str]) -> str:
    """Return words quoted for a shell; invisible characters are written as escapes."""
    return " ".join(shlex.quote(one) if one.isprintable() else f"$'{_escaped(one)}'" for one in given)


def _escaped(text: str) -> str:
    known = {"\\": r"\\", "'": r"\'"}
    return "".join(
        known.get(one, one) if one.isprintable() else "".join(f"\\x{byte:02x}" for byte in one.encode()) for one in text
    )


def no_match(dlq: DeadLetterQueue, state: LetterState, options: dict[str, Any]) -> str:
    """Return a text: no message matched, and how many messages there are in this state."""
    there = Letter.objects.filter(dlq=dlq, state=state.value).order_by("reason").values_list("reason")
    kinds = ", ".join(f"{n:,} {reason}".strip() for reason, n in there.annotate(n=Count("pk"))) or "no messages"
    return (
        f"No {state} message of {dlq.name} matches {shell_quoted(filter_options(options))}. {state.capitalize()} "
        f"there: {kinds}. Keys and message ids must match exactly. To list messages, leave out a filter and --confirm."
    )


def selection_mark(chosen: Sequence[Parked]) -> str:
    """Return a short text that identifies exactly these messages: the time of the newest message, and a digest."""
    newest = max((one.since for one in chosen), default=_EPOCH)
    each = sorted(f"{one.id}@{(one.since - _EPOCH) // _MICROSECOND}" for one in chosen)
    return f"{(newest - _EPOCH) // _MICROSECOND}-{hashlib.sha256(' '.join(each).encode()).hexdigest()[:16]}"


def selection_type(text: str) -> str:
    """Read the MARK that a dry run showed."""
    if not _MARK.fullmatch(text):
        raise ArgumentTypeError(f"{text!r} is not the mark of a selection. Copy it from a dry run")
    return text


def selection_lines(dlq: DeadLetterQueue, state: LetterState, chosen: Sequence[Parked]) -> Iterable[str]:
    """Yield lines: the number of selected messages, the reasons why they were parked, and examples."""
    found = f"{len(chosen):,} {state} {'message matches' if len(chosen) == 1 else 'messages match'}"
    yield f"{dlq.name}: {found}{':' if chosen else '.'}"
    for reason, count in Counter(one.reason for one in chosen).most_common():
        if reason:
            yield f"  {count:,} parked because: {ParkedReason(reason).sentence} (--parked-for {reason})"
        of_reason = [one for one in chosen if one.reason == reason]
        for one in of_reason[:_SHOWN]:
            key = f", key {_short(one.key)}" if one.key is not None else ""
            yield f"      {one.message_id}{key}, since {format_time(one.since)}"
        if count > _SHOWN:
            yield f"      and {count - _SHOWN:,} more"


def refusal_lines(decided: Decisions) -> Iterable[str]:
    """Yield a line for each reason why messages were refused, with examples."""
    for why, count in Counter(decided.refused.values()).most_common():
        examples = [letter for letter, said in decided.refused.items() if said == why][:_SHOWN]
        yield f"{count:,} refused, since {why}: {', '.join(examples)}{' …' if count > _SHOWN else ''}"


def duration(text: str) -> timedelta:
    """Read a duration, such as 30m."""
    found = _LENGTH.fullmatch(text)
    seconds = int(found[1]) * _SECONDS[found[2]] if found else _LONGEST + 1
    if seconds > _LONGEST:
        raise ArgumentTypeError(f"{text!r} is not a duration of at most 100 years. Examples: 90s, 30m, 12h, 7d")
    return timedelta(seconds=seconds)


def _short(key: str) -> str:
    return repr(key if len(key) <= _LONGEST_KEY_SHOWN else f"{key[:_LONGEST_KEY_SHOWN]}…")
