"""The base class of release_parked, discard_parked, restore_discarded and edit_messages.

A dry run shows the selected messages, and a short text that identifies them, the mark. If the user gives the mark with
the option --selection, the command acts on exactly these messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from django.core.management.base import CommandError, CommandParser

from reprocessing.domain.lifecycle import LetterState, ParkedReason
from reprocessing.domain.parking_lot.selection_mark import selection_mark
from reprocessing.management.arguments import add_change_options, add_name, current_user, not_empty, whole_number
from reprocessing.management.command_line import DOCUMENTED
from reprocessing.management.console import Console, find_dlq
from reprocessing.management.shared import parking_selection
from reprocessing.management.shared.approval_text import approval_text
from reprocessing.management.shared.parking_selection import (
    SHOWN,
    Parked,
    duration,
    filter_options,
    no_match,
    selection_lines,
    selection_type,
    shell_quoted,
)
from reprocessing.management.shared.progress import Pace, ProgressLog
from reprocessing.models import AuditAct, DeadLetterQueue
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.pipeline.parking_lot.act_on_parked import Reviewed

#: Max messages that one transaction changes.
GROUP_SIZE = 500


@dataclass(slots=True)
class Decisions:
    """The result of a command: ids of the changed letters (`done`), and by message id, why messages were refused."""

    done: list[int] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


class ParkingCommand(Console):
    """A command that releases, discards, restores or edits selected messages of a DLQ."""

    done_word: ClassVar[str]  #: past participle, as in "12 messages are released"
    act: ClassVar[Callable[..., Reviewed]]  #: the function that changes the messages
    audit_act: ClassVar[AuditAct]  #: how the audit log and requests for approval name the change
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
            help=f"select messages that have been {self.state} for longer than this, such as 90s, 30m, 12h or 7d",
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
        chosen = parking_selection.select_messages(dlq, self.state, options)
        mark = selection_mark(chosen)
        if options["selection"] not in {None, mark}:
            raise CommandError(
                f"Nothing was done: some messages of the dry run are no longer {self.state}, or were {self.state} "
                "again. To see the current messages, leave out --confirm and --selection."
            )
        decided = self.decide(chosen, options, how) if options["confirm"] else Decisions()
        if options["json"]:
            self.report(self.in_json(dlq, chosen, decided, options, mark))
        else:
            results = self.result_lines(chosen, decided, options, mark)
            needs = [] if options["confirm"] else approval_text({dlq.pk: len(chosen)}, by=options["by"])
            if chosen or not filter_options(options):  # else the error below says it
                self.say("\n".join([*selection_lines(dlq, self.state, chosen), *needs, *results]))
        if not chosen and filter_options(options):
            raise CommandError(no_match(dlq, self.state, options))
        if decided.refused:
            raise CommandError(f"{len(decided.refused):,} of {len(chosen):,} are not {self.done_word}: reasons above.")

    def act_arguments(self, options: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """Return the keyword arguments of `act` that come from the subclass's own options, such as --at."""
        return {}

    def frozen(self, how: dict[str, Any]) -> dict[str, Any]:
        """Return the keyword arguments `how` of `act` as JSON values. A request for approval stores these values."""
        return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in how.items()}

    def act_options(self, options: dict[str, Any]) -> list[str]:  # noqa: ARG002
        """Return the subclass's own options that the user gave, for the command line that a dry run shows."""
        return []

    def decide(self, chosen: Sequence[Parked], options: dict[str, Any], how: dict[str, Any]) -> Decisions:
        """Call `act` for these messages, with the keyword arguments `how`: at most 500 messages in one transaction.

        Raises:
            ApprovalNeeded: the approval of a second person is needed. Nothing was done.
        """
        act_on_parked.check_whole(self.audit_act, [one.id for one in chosen], by=options["by"], **self.frozen(how))
        decided, pace, log = Decisions(), Pace(), ProgressLog(self.stderr)
        for first in range(0, len(chosen), GROUP_SIZE):
            ids = {one.id: one.message_id for one in chosen[first : first + GROUP_SIZE]}
            reviewed = type(self).act(list(ids), by=options["by"], reason=options["reason"], **how)
            decided.done += reviewed.done
            decided.refused |= {ids[letter]: why for letter, why in reviewed.refused.items()}
            past = first + len(ids)
            log.line_if_due(lambda: f"{past:,} of {len(chosen):,} messages{pace.add(past, len(chosen) - past)}")  # noqa: B023
        return decided

    def result_lines(
        self, chosen: Sequence[Parked], decided: Decisions, options: dict[str, Any], mark: str
    ) -> Iterable[str]:
        """Yield lines about what was done or, in a dry run, the command line that acts on exactly these messages."""
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
        """Yield lines about what the user can do next, after the command has acted."""
        return ()

    def acting_command(self, options: dict[str, Any], mark: str) -> str:
        """Return the command line that acts on exactly the messages that `mark` identifies.

        If no reason was given, the line has WHY in place of the reason.
        """
        given = [DOCUMENTED, type(self).__module__.rpartition(".")[2], options["name"], *filter_options(options)]
        if options["limit"] is not None:
            given += ["--limit", str(options["limit"])]
        given += ["--by", options["by"]] if options["by"] != current_user() else []
        given += self.act_options(options)
        return shell_quoted([*given, f"--reason={options['reason'] or 'WHY'}", "--selection", mark, "--confirm"])

    def in_json(
        self, dlq: DeadLetterQueue, chosen: Sequence[Parked], decided: Decisions, options: dict[str, Any], mark: str
    ) -> dict[str, Any]:
        """Return as JSON which messages were selected, changed and refused."""
        return {
            "dlq": dlq.name,
            "dry_run": not options["confirm"],
            "messages": len(chosen),
            "reasons": dict(Counter(one.reason for one in chosen)),
            self.done_word: len(decided.done),
            "refused": decided.refused,
            "selection": mark,
        }


def refusal_lines(decided: Decisions) -> Iterable[str]:
    """Yield a line for each reason why messages were refused, with the number and three ids of such messages."""
    for why, count in Counter(decided.refused.values()).most_common():
        examples = [letter for letter, said in decided.refused.items() if said == why][:SHOWN]
        yield f"{count:,} refused, since {why}: {', '.join(examples)}{' …' if count > SHOWN else ''}"
