"""The command `manage.py disable_rule`, which disables a rule."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.domain.lifecycle import LetterState, ParkedReason
from reprocessing.management.output.drain_output import counted
from reprocessing.management.shared.parking_command import GROUP_SIZE
from reprocessing.management.shared.progress import Pace, ProgressLog
from reprocessing.management.shared.rule_switch_command import SwitchCommand
from reprocessing.models import AuditAct, Letter, Rule
from reprocessing.pipeline.parking_lot import act_on_parked


class Command(SwitchCommand):
    """Disable a rule.

    The other rules decide at once about messages that this rule held or delayed. Messages that this rule quarantined
    stay parked, unless --release is given.

    Examples:
        disable_rule hold-acme --reason "migration is done"
        disable_rule hold-acme --release --reason "migration is done" --confirm
    """

    enables = False

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--release", action="store_true", help="also release the parked messages that the rule quarantined"
        )

    def follow_up(self, row: Rule, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        parked = Letter.objects.filter(rule=row, state=LetterState.PARKED, reason=ParkedReason.QUARANTINED.value)
        ids = list(parked.order_by("pk").values_list("pk", flat=True))
        messages = f"{counted(len(ids), 'message')} that it quarantined"
        if not options["release"]:
            said = [f"Left parked: {messages}. To release them, add --release."] if ids else []
            return {"quarantined": len(ids)}, said
        if not options["confirm"]:
            return {"quarantined": len(ids), "released": 0}, [f"To be released: {messages}."]
        act_on_parked.check_whole(AuditAct.RELEASED, ids, by=options["by"])
        done, refused, pace, log = 0, 0, Pace(), ProgressLog(self.stderr)
        for first in range(0, len(ids), GROUP_SIZE):
            reviewed = act_on_parked.release(
                ids[first : first + GROUP_SIZE], by=options["by"], reason=options["reason"]
            )
            done, refused = done + len(reviewed.done), refused + len(reviewed.refused)
            left = len(ids) - done - refused
            log.line_if_due(lambda: f"{done:,} of {len(ids):,} messages released{pace.add(done, left)}")  # noqa: B023
        last = f"Released: {counted(done, 'message')}." + (f" Left parked: {refused:,}." if refused else "")
        return {"quarantined": refused, "released": done}, [last]
