"""The command `manage.py list_approvals`, which lists requests for approval by a second person."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.management.arguments import add_json, whole_number
from reprocessing.management.console import Console, format_time
from reprocessing.management.shared.approval_command import in_json
from reprocessing.models import Approval, ApprovalState


class Command(Console):
    """List the open requests for approval by a second person, the newest first.

    Examples:
        list_approvals
        list_approvals --all --json
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--all", action="store_true", help="also list requests that were decided or have expired")
        parser.add_argument(
            "--limit",
            type=whole_number(1),
            default=50,
            metavar="N",
            help="list at most N requests (default: %(default)s)",
        )
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        every = Approval.objects.all() if options["all"] else Approval.objects.filter(state=ApprovalState.OPEN)
        found = list(every.order_by("-pk")[: options["limit"]])
        if options["json"]:
            self.report({"approvals": [in_json(row) for row in found]})
        elif found:
            header = ("number", "state", "what", "messages", "requested by", "expires", "decided by")
            self.table(header, [_cells(row) for row in found])
        else:
            self.say("No approval is open.")


def _cells(row: Approval) -> list[str]:
    messages = "any" if row.messages is None else f"{row.messages:,}"
    return [str(row.pk), row.state, row.title, messages, row.by, format_time(row.expires_at), row.decided_by or "-"]
