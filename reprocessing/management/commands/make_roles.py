"""`manage.py make_roles`: the groups of people at the desk, from one who looks to one who configures."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.management.console import Console, add_confirm, add_json
from reprocessing.store.maintenance import roles
from reprocessing.store.maintenance.roles import Difference


class Command(Console):
    """Makes the roles' groups, or shows in what they differ."""

    help = (
        "Makes four groups of Django's: viewer, operator, editor and administrator of the redrive. Each may do what "
        "the one before may, and more. Members stay; permissions are made what the role says. Put people into them in "
        "the admin, under Users. Tailor copies of these groups, not the groups themselves."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        found = roles.make() if options["confirm"] else roles.differences()
        if options["json"]:
            self.report({"dry_run": not options["confirm"], "roles": [_told(one) for one in found]})
            return
        for one in found:
            self.say(f"{one.role.group}: {one.role.sentence}")
            for line in _lines(one):
                self.say(f"  {line}")
        if not options["confirm"] and not all(one.is_none for one in found):
            self.say("This was a dry run: the groups are made so with --confirm.")


def _lines(one: Difference) -> list[str]:
    if one.is_none:
        return ["is as it should be"]
    said = ["there was no such group"] if one.new else []
    added = [f"+ {name}" for name in one.lacks if not one.new]
    return [*said, *added, *(f"- {name}" for name in one.exceeds)]


def _told(one: Difference) -> dict[str, Any]:
    return {
        "group": one.role.group,
        "new": one.new,
        "added": list(one.lacks),
        "removed": list(one.exceeds),
    }
