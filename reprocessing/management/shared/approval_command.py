"""The base class of approve, decline and break_glass, which decide about a request for approval."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django.core.management.base import CommandError, CommandParser

from reprocessing.management.arguments import add_change_options, not_empty
from reprocessing.management.console import Console, format_time
from reprocessing.models import Approval, ApprovalState
from reprocessing.pipeline.approvals import decide
from reprocessing.pipeline.approvals.decide import Decision, NotDone
from reprocessing.store.approvals import people

_ID_DIGITS: Final = 19  # digits of PostgreSQL's largest bigint; a number with fewer digits always fits


class ApprovalCommand(Console):
    """A command that decides about a request for approval."""

    done_word: ClassVar[str]  #: the decision as a past participle, such as "declined"
    needs_another: ClassVar[bool] = False  #: whether the person who made the request cannot decide

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the number of the request, and --by, --reason, --confirm and --json."""
        parser.add_argument(
            "approval", type=not_empty, metavar="NUMBER", help="number of the request (see list_approvals)"
        )
        add_change_options(parser)

    def answer(self, options: dict[str, Any]) -> None:
        """With --confirm, decide about the request and show the result; else show the request."""
        row = find_approval(options["approval"])
        if self.needs_another and people.is_same_person(row.by, options["by"]):
            raise CommandError(
                f"Nothing was done: {row.by} made the request, so somebody else must approve it: --by NAME"
            )
        summary = ""
        if options["confirm"]:
            done = self.decide(row.pk, options)
            if isinstance(done, NotDone):
                raise CommandError(done.why)
            summary = done.summary
            row.refresh_from_db()
        if options["json"]:
            self.report({**in_json(row), "dry_run": not options["confirm"], "told": summary})
        elif options["confirm"]:
            self.say(summary)
        else:
            self.say("\n".join([*request_lines(row), f"This was a dry run: it is {self.done_word} with --confirm."]))

    def decide(self, approval: int, options: dict[str, Any]) -> Decision:
        """Record the decision about the request with this id, and return its result. Each command implements this."""
        raise NotImplementedError


def find_approval(number: str) -> Approval:
    """Return the request for approval with this number.

    Raises:
        CommandError: no request has this number.
    """
    known = number.isascii() and number.isdecimal() and len(number) < _ID_DIGITS
    row = Approval.objects.filter(pk=number).first() if known else None
    if row is None:
        raise CommandError(
            f"No request for approval has the number {number}. To see the open requests: manage.py list_approvals"
        )
    return row


def request_lines(row: Approval) -> list[str]:
    """Return lines about a request: what was requested, by whom and why, and the decision about it.

    If the request is void, because something changed since it was made, the last line says what changed.
    """
    said = [f"Approval {row.pk}: {row.title}", *(f"  {label}: {text}" for label, text in row.preview)]
    said += [f"  Requested by {row.by} on {format_time(row.asked_at)}: {row.reason}"]
    if row.state != ApprovalState.OPEN:
        who = f", by {row.decided_by}: {row.decision_reason}" if row.decided_by else ""
        return [*said, f"  It is {row.get_state_display()}{who}. {row.outcome}".rstrip()]
    said.append(f"  It expires on {format_time(row.expires_at)}.")
    changed = decide.changed_since(row)
    return [*said, f"  The request is void: {changed}"] if changed else said


def in_json(row: Approval) -> dict[str, Any]:
    """Return a request for approval as JSON values."""
    return {
        "approval": row.pk, "state": row.state, "action": row.action, "what": row.title, "messages": row.messages,
        "preview": {str(label): text for label, text in row.preview}, "by": row.by, "reason": row.reason,
        "asked_at": row.asked_at, "expires_at": row.expires_at, "decided_by": row.decided_by or None,
        "decision_reason": row.decision_reason or None, "outcome": row.outcome or None,
    }  # fmt: skip
