"""The command `manage.py decline`, which declines a requested change, or withdraws the request."""

from __future__ import annotations

from typing import Any

from reprocessing.management.shared.approval_command import ApprovalCommand
from reprocessing.pipeline.approvals import decide
from reprocessing.pipeline.approvals.decide import Decision


class Command(ApprovalCommand):
    """Decline a change that somebody requested, or withdraw your own request. The change is not made.

    Examples:
        decline 12 --reason "these messages are needed"
        decline 12 --reason "these messages are needed" --by bob --confirm
    """

    done_word = "declined"

    def decide(self, approval: int, options: dict[str, Any]) -> Decision:
        return decide.decline(approval, by=options["by"], reason=options["reason"])
