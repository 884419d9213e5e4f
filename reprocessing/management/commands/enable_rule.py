"""The command `manage.py enable_rule`, which enables a rule."""

from __future__ import annotations

from reprocessing.management.shared.rule_switch_command import SwitchCommand


class Command(SwitchCommand):
    """Enable a rule.

    An enabled rule decides about each message before the message is sent. Without --confirm, shows what the rule would
    do to recently captured messages.

    Examples:
        enable_rule hold-acme --reason "acme is migrating"
        enable_rule hold-acme --reason "acme is migrating" --confirm
    """

    enables = True
