"""`manage.py enable_rule`: a rule decides from now on."""

from __future__ import annotations

from typing import Any

from reprocessing.management.shared.rule_switch_command import SwitchCommand
from reprocessing.models import Rule


class Command(SwitchCommand):
    """Enables one rule."""

    help = (
        "Enables a rule: it decides about every letter that waits, as soon as it is that one's turn, and about those "
        "that come. Without --confirm it tells what it would do to the letters of the last days."
    )
    enables = True

    def after(self, row: Rule, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        return {}, []
