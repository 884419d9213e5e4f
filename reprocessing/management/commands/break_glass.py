"""The command `manage.py break_glass`, which executes a requested change without the approval of a second person."""

from __future__ import annotations

from typing import Any

from reprocessing import conf
from reprocessing.management.shared.approval_command import ApprovalCommand
from reprocessing.pipeline.approvals import decide
from reprocessing.pipeline.approvals.decide import Decision


class Command(ApprovalCommand):
    """Make a requested change in an emergency, without the approval of a second person.

    The audit log and a notification say that nobody approved the change.

    Examples:
        break_glass 12 --reason "the shop is down and nobody answers"
        break_glass 12 --reason "the shop is down and nobody answers" --confirm
    """

    done_word = "done without approval"

    def decide(self, approval: int, options: dict[str, Any]) -> Decision:
        return decide.act_alone(approval, by=options["by"], reason=options["reason"], conf=conf.current())
