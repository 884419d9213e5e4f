"""`manage.py enable_rule`."""

from __future__ import annotations

from reprocessing.management.shared.rule_switch_command import SwitchCommand


class Command(SwitchCommand):
    """Enable a rule.

    It decides about waiting messages when they are due, and about new ones. Without --confirm, shows what it would
    do to recently captured messages.

    Examples:
        enable_rule hold-acme --reason "acme is migrating"
        enable_rule hold-acme --reason "acme is migrating" --confirm
    """

    enables = True
