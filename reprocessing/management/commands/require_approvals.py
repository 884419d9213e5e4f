"""The command `manage.py require_approvals`, which sets above how many messages a second person is needed."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.management.arguments import add_change_options, whole_number
from reprocessing.management.console import Console
from reprocessing.store.approvals import default_limit, limits


class Command(Console):
    """Set the number of messages above which an action needs the approval of a second person.

    This limit applies to all DLQs that have no limit of their own (add_dlq NAME --approval-above N). Raising or
    removing the limit needs the approval of a second person.

    Examples:
        require_approvals --above 100 --reason "policy"
        require_approvals --above 0 --reason "policy" --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        limit = parser.add_mutually_exclusive_group(required=True)
        limit.add_argument(
            "--above", type=whole_number(0), metavar="N",
            help="actions on more than N messages, and changes of rules, need the approval of a second person; 0: all "
            "actions need it",
        )  # fmt: skip
        limit.add_argument(
            "--off",
            action="store_true",
            help="remove the limit: only DLQs with a limit of their own need a second person",
        )
        add_change_options(parser)

    def answer(self, options: dict[str, Any]) -> None:
        before, above = limits.default_limit(), options["above"]
        if options["confirm"]:
            default_limit.set_default(above, by=options["by"], reason=options["reason"])
        if options["json"]:
            self.report({"before": before, "above": above, "dry_run": not options["confirm"]})
            return
        self.say(f"Second person needed: {_text(above)}. Before: {_text(before)}.")
        if not options["confirm"]:
            self.say("This was a dry run. To save it, add --confirm.")


def _text(above: int | None) -> str:
    if above is None:
        return "only for DLQs with a limit of their own"
    return f"above {above:,} message{'' if above == 1 else 's'}" if above else "for every action"
