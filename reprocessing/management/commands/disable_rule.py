"""`manage.py disable_rule`: a rule decides nothing any more; what it held or delayed goes on."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.domain.lifecycle import LetterState, ParkedReason
from reprocessing.management.output.drain_output import counted
from reprocessing.management.shared.parking_command import GROUP
from reprocessing.management.shared.rule_switch_command import SwitchCommand
from reprocessing.models import DeadLetter, Rule
from reprocessing.pipeline.parking_lot import act_on_parked


class Command(SwitchCommand):
    """Disables one rule."""

    help = (
        "Disables a rule. What it held or delayed is asked about anew at once; what it quarantined stays parked, or "
        "goes back to its lanes with --release."
    )
    enables = False

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--release", action="store_true", help="put back the letters that it quarantined")

    def after(self, row: Rule, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        parked = DeadLetter.objects.filter(
            rule=row, state=LetterState.PARKED, reason=ParkedReason.QUARANTINED.value
        ).order_by("pk")
        if not options["release"]:
            n = parked.count()
            said = [f"Left parked: {counted(n, 'letter')} that it quarantined. --release puts back."] if n else []
            return {"quarantined": n}, said
        if not options["confirm"]:
            n = parked.count()
            return {"quarantined": n, "released": 0}, [f"Put back: {counted(n, 'letter')} that it quarantined."]
        done, refused = 0, 0
        ids = list(parked.values_list("pk", flat=True))
        for first in range(0, len(ids), GROUP):
            some = ids[first : first + GROUP]
            reviewed = act_on_parked.release(some, by=options["by"], reason=options["reason"])
            done, refused = done + len(reviewed.done), refused + len(reviewed.refused)
        left = f" Left parked: {counted(refused, 'letter')}." if refused else ""
        return {"quarantined": refused, "released": done}, [f"Put back: {counted(done, 'letter')}.{left}"]
