"""The command `manage.py make_roles`, which creates Django groups with the permissions of each role."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.management.arguments import add_confirm, add_json
from reprocessing.management.console import Console
from reprocessing.store.rights import roles
from reprocessing.store.rights.roles import RoleDifference


class Command(Console):
    """Create the permission groups: viewer, operator, editor and administrator.

    Each group has the permissions of the group before it, and more. If the groups exist, their permissions are reset,
    and their members are kept. To add people to a group, use the admin, under Users. To change the permissions of a
    group, copy the group and change the copy.

    The members see all DLQs as long as no DLQ belongs to a team (add_dlq --team). A team is a Django group. To see the
    DLQs of all teams, people need the permission view_all_dlqs.

    Examples:
        make_roles
        make_roles --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        found = roles.update_groups() if options["confirm"] else roles.role_differences()
        if options["json"]:
            self.report({"dry_run": not options["confirm"], "roles": [_in_json(one) for one in found]})
            return
        for one in found:
            self.say(f"{one.role.group}: {one.role.sentence}")
            for line in _lines(one):
                self.say(f"  {line}")
        if not options["confirm"] and not all(one.is_none for one in found):
            self.say("This was a dry run: the groups are changed with --confirm.")


def _lines(one: RoleDifference) -> list[str]:
    if one.is_none:
        return ["up to date"]
    said = ["new group"] if one.new else []
    added = [f"+ {name}" for name in one.lacks if not one.new]
    return [*said, *added, *(f"- {name}" for name in one.exceeds)]


def _in_json(one: RoleDifference) -> dict[str, Any]:
    return {"group": one.role.group, "new": one.new, "added": list(one.lacks), "removed": list(one.exceeds)}
