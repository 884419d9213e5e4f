"""What release_parked, discard_parked and restore_discarded share: which letters are meant, exactly, and their fate."""

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
from reprocessing.management.command_line import DOCUMENTED
from reprocessing.management.console import (
    Console,
    add_confirm,
    add_json,
    add_name,
    add_person,
    find,
    when,
    whoever_is_here,
    whole,
)
from reprocessing.models import DeadLetter, DeadLetterQueue
from reprocessing.pipeline.parking_lot.act_on_parked import Reviewed
from reprocessing.store.ordering import lanes

#: Letters that are decided about in one transaction.
GROUP = 500
#: Letters of each reason that are shown.
_SHOWN = 3
_LENGTH = re.compile(r"(\d{1,9})([smhd]?)", re.ASCII)
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_LONGEST = 36_500 * 86_400
_LONGEST_KEY_SHOWN = 60
_MARK = re.compile(r"\d{1,17}-[0-9a-f]{16}", re.ASCII)
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Parked:
    """A parked letter, or one that was, as it was seen; none of its bytes. `reason`: empty once it is discarded."""

    id: int
    message_id: str
    key: str | None
    reason: str
    since: datetime


@dataclass(slots=True)
class Decided:
    """What became of a selection; why letters were left alone, by message id."""

    done: list[int] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


class ParkingCommand(Console):
    """A decision about parked letters."""

    deed: ClassVar[str]  #: as in "12 letters are released"
    act: ClassVar[Callable[..., Reviewed]]
    state: ClassVar[LetterState] = LetterState.PARKED  #: of the letters that it is about

    def add_arguments(self, parser: CommandParser) -> None:  # noqa: D102  Django's own
        add_name(parser)
        if self.state is LetterState.PARKED:
            parser.add_argument(
                "--parked-for", action="append", choices=[one.value for one in ParkedReason], metavar="CODE",
                help="parked for this; may be given several times: " + ", ".join(ParkedReason),
            )  # fmt: skip
        parser.add_argument("--key", metavar="K", help="of this ordering key")
        parser.add_argument(
            "--message-id", action="append", metavar="ID", help="this letter; may be given several times"
        )
        parser.add_argument(
            "--older-than", type=length, metavar="AGE", help=f"{self.state} for longer than this: 90s, 30m, 12h, 7d"
        )
        parser.add_argument(
            "--limit", type=whole(1), metavar="N", help=f"so many at most, the longest {self.state} first"
        )
        parser.add_argument(
            "--selection", type=selection, metavar="MARK", help="exactly the letters of a dry run, which tells the mark"
        )
        add_person(parser)
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:  # noqa: D102  the base's own
        dlq = find(options["name"])
        how = self.how(options)
        chosen = select(dlq, self.state, options)
        mark = mark_of(chosen)
        if options["selection"] not in {None, mark}:
            raise CommandError(
                f"Nothing was done: of the letters that were shown, some are no longer {self.state}, or are so anew. "
                "Leave out --confirm and --selection, and look again."
            )
        decided = self.decide(chosen, options, how) if options["confirm"] else Decided()
        if options["json"]:
            self.report(self.in_json(dlq, chosen, decided, options, mark))
        else:
            self.say("\n".join([*shown(dlq, self.state, chosen), *self.told(chosen, decided, options, mark)]))
        if not chosen and filters(options):
            raise CommandError(missed(dlq, self.state, options))
        if decided.refused:
            raise CommandError(f"{len(decided.refused):,} of {len(chosen):,} are not {self.deed}: see above why.")

    def how(self, options: dict[str, Any]) -> dict[str, Any]:
        """What the deed is done with beside who and why, by the names of its arguments."""
        del options
        return {}

    def how_said(self, options: dict[str, Any]) -> list[str]:
        """The same, as it is said on the command line."""
        del options
        return []

    def decide(self, chosen: Sequence[Parked], options: dict[str, Any], how: dict[str, Any]) -> Decided:
        """Act on these letters, group by group; each group is done or not done as a whole."""
        decided = Decided()
        for first in range(0, len(chosen), GROUP):
            ids = {one.id: one.message_id for one in chosen[first : first + GROUP]}
            reviewed = type(self).act(list(ids), by=options["by"], reason=options["reason"], **how)
            decided.done += reviewed.done
            decided.refused |= {ids[letter]: why for letter, why in reviewed.refused.items()}
        return decided

    def told(self, chosen: Sequence[Parked], decided: Decided, options: dict[str, Any], mark: str) -> Iterable[str]:
        """What was done, or how to do it."""
        if not chosen:
            return
        if not options["confirm"]:
            yield f"This was a dry run: none of them is {self.deed}. To act on exactly these:"
            yield self.acting(options, mark)
            return
        yield f"{len(decided.done):,} of {len(chosen):,} {'is' if len(chosen) == 1 else 'are'} {self.deed}."
        yield from left_alone(decided)
        yield from self.after(decided)

    def after(self, decided: Decided) -> Iterable[str]:
        """What follows from it."""
        del decided
        return ()

    def acting(self, options: dict[str, Any], mark: str) -> str:
        """The same command, as it acts."""
        given = [DOCUMENTED, type(self).__module__.rpartition(".")[2], options["name"], *filters(options)]
        if options["limit"] is not None:
            given += ["--limit", str(options["limit"])]
        given += ["--by", options["by"]] if options["by"] != whoever_is_here() else []
        given += self.how_said(options)
        return in_shell([*given, f"--reason={options['reason']}", "--selection", mark, "--confirm"])

    def in_json(
        self, dlq: DeadLetterQueue, chosen: Sequence[Parked], decided: Decided, options: dict[str, Any], mark: str
    ) -> dict[str, Any]:
        """The same for programs."""
        return {
            "dlq": dlq.name,
            "dry_run": not options["confirm"],
            "letters": len(chosen),
            "reasons": dict(Counter(one.reason for one in chosen)),
            self.deed: len(decided.done),
            "refused": decided.refused,
            "selection": mark,
        }


def select(dlq: DeadLetterQueue, state: LetterState, options: dict[str, Any]) -> list[Parked]:
    """The letters of this state that are meant, as they are now; the longest so first."""
    found = DeadLetter.objects.filter(dlq=dlq, state=state.value)
    if options.get("parked_for"):
        found = found.filter(reason__in=options["parked_for"])
    if options["key"] is not None:
        found = found.filter(ordering_key=options["key"])
    if options["message_id"]:
        found = found.filter(message_id__in=options["message_id"])
    if options["older_than"] is not None:
        found = found.filter(finished_at__lt=lanes.clock() - options["older_than"])
    if options["selection"] is not None:  # what was parked since then was not shown
        found = found.filter(finished_at__lte=_EPOCH + int(options["selection"].partition("-")[0]) * _MICROSECOND)
    limit: int | None = options["limit"]
    fields = ("pk", "message_id", "ordering_key", "reason", "finished_at")
    return [Parked(*row) for row in found.order_by("finished_at", "pk").values_list(*fields)[:limit]]


def filters(options: dict[str, Any]) -> list[str]:
    """What narrows the choice, as it is said on the command line."""
    given: list[str] = []
    for name in ("parked_for", "message_id"):
        given += [part for value in options.get(name) or () for part in (f"--{name.replace('_', '-')}", value)]
    if options["key"] is not None:
        given.append(f"--key={options['key']}")
    if options["older_than"] is not None:
        given += ["--older-than", f"{options['older_than'] // timedelta(seconds=1)}s"]
    return given


def in_shell(given: Iterable[str]) -> str:
    """Words as a shell reads them; of what cannot be seen, which might act on a terminal, the bytes as numbers."""
    return " ".join(shlex.quote(one) if one.isprintable() else f"$'{_numbered(one)}'" for one in given)


def _numbered(text: str) -> str:
    known = {"\\": r"\\", "'": r"\'"}
    return "".join(
        known.get(one, one) if one.isprintable() else "".join(f"\\x{byte:02x}" for byte in one.encode()) for one in text
    )


def missed(dlq: DeadLetterQueue, state: LetterState, options: dict[str, Any]) -> str:
    """That the filters meant no letter, and what to check."""
    there = DeadLetter.objects.filter(dlq=dlq, state=state.value).order_by("reason").values_list("reason")
    kinds = ", ".join(f"{n:,} {reason}".strip() for reason, n in there.annotate(n=Count("pk"))) or "no letter at all"
    return (
        f"No {state} letter of {dlq.name} has all of: {in_shell(filters(options))}. {state.capitalize()} there: "
        f"{kinds}. Keys and message ids are compared letter by letter; leave a filter out, and a dry run shows which "
        "letters there are."
    )


def mark_of(chosen: Sequence[Parked]) -> str:
    """A short mark of exactly these letters: since when the last of them is parked, and a digest of all."""
    newest = max((one.since for one in chosen), default=_EPOCH)
    each = sorted(f"{one.id}@{(one.since - _EPOCH) // _MICROSECOND}" for one in chosen)
    return f"{(newest - _EPOCH) // _MICROSECOND}-{hashlib.sha256(' '.join(each).encode()).hexdigest()[:16]}"


def selection(text: str) -> str:
    """The type of an argument that is a selection's mark."""
    if not _MARK.fullmatch(text):
        raise ArgumentTypeError(f"{text!r} is no mark of a selection; a dry run tells one")
    return text


def shown(dlq: DeadLetterQueue, state: LetterState, chosen: Sequence[Parked]) -> Iterable[str]:
    """How many they are, why they were parked, and some of each."""
    meant = "letter is" if len(chosen) == 1 else "letters are"
    yield f"{dlq.name}: {len(chosen):,} {state} {meant} meant{':' if chosen else '.'}"
    for reason, count in Counter(one.reason for one in chosen).most_common():
        if reason:
            yield f"  {count:,} parked because: {ParkedReason(reason).sentence} (--parked-for {reason})"
        of_reason = [one for one in chosen if one.reason == reason]
        for one in of_reason[:_SHOWN]:
            key = f", key {_short(one.key)}" if one.key is not None else ""
            yield f"      {one.message_id}{key}, since {when(one.since)}"
        if count > _SHOWN:
            yield f"      and {count - _SHOWN:,} more"


def left_alone(decided: Decided) -> Iterable[str]:
    """What somebody else decided meanwhile, or cannot be done."""
    for why, count in Counter(decided.refused.values()).most_common():
        examples = [letter for letter, said in decided.refused.items() if said == why][:_SHOWN]
        yield f"{count:,} left alone, since {why}: {', '.join(examples)}{' …' if count > _SHOWN else ''}"


def length(text: str) -> timedelta:
    """The type of an argument that is a length of time."""
    found = _LENGTH.fullmatch(text)
    if not found:
        raise ArgumentTypeError(f"{text!r} is no length of time; 90s, 30m, 12h and 7d are")
    seconds = int(found[1]) * _SECONDS[found[2]]
    if seconds > _LONGEST:
        raise ArgumentTypeError(f"{text!r} is too long: nothing is as old as that")
    return timedelta(seconds=seconds)


def _short(key: str) -> str:
    """A key as it can be printed on one line."""
    cut = key if len(key) <= _LONGEST_KEY_SHOWN else f"{key[:_LONGEST_KEY_SHOWN]}…"
    return repr(cut)
