"""The command `manage.py approve`, with which a second person approves a change that somebody else requested."""

from __future__ import annotations

from typing import Any

from reprocessing import conf
from reprocessing.management.shared.approval_command import ApprovalCommand
from reprocessing.pipeline.approvals import decide
from reprocessing.pipeline.approvals.decide import Decision


class Command(ApprovalCommand):
    """Approve, as the second person, a change that somebody else requested. The change is made at once.

    Without --confirm, shows the requested change. If the messages, the rule or the settings of the request have changed
    since, the request is void, and nothing is done.

    Examples:
        approve 12 --reason "checked with the shop" --by bob
        approve 12 --reason "checked with the shop" --by bob --confirm
    """

    done_word = "approved and done"
    needs_another = True

    def decide(self, approval: int, options: dict[str, Any]) -> Decision:
        return decide.approve(approval, by=options["by"], reason=options["reason"], conf=conf.current())
