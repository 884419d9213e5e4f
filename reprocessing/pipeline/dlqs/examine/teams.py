"""Check a DLQ's teams: the groups whose members see the DLQ."""

from __future__ import annotations

from collections.abc import Iterator

from django.contrib.auth.models import Group

from reprocessing.pipeline.dlqs.examine.findings import Case, Finding, refuse, warn
from reprocessing.store.rights import visible_dlqs


def groups(case: Case) -> Iterator[Finding]:
    """Every team is a group.

    The admin shows this sentence if the check passes. Else, the check yields a refusal for each team that is no
    group (of Django's users), or a warning if no DLQ had a team before, because people then see fewer DLQs.
    """
    wanted = case.proposal.teams or ()
    known = list(Group.objects.order_by("name").values_list("name", flat=True)) if wanted else []
    for name in wanted:
        if name not in known:
            there_are = f"The groups are: {', '.join(known)}." if known else "There are no groups yet."
            yield refuse(f"No group is named {name}. {there_are}", "Add the group in the admin, under Groups.")
    if wanted and not visible_dlqs.has_teams():
        yield warn(
            f"{case.name} is the first DLQ with a team: from now on, the roles of make_roles no longer show all DLQs. "
            "People see only the DLQs of their groups.",
            "Give the permission reprocessing.view_all_dlqs to people who see the DLQs of all teams.",
        )


def nobody(case: Case) -> Iterator[Finding]:
    """A team sees the DLQ.

    The admin shows this sentence if the check passes. Else, the check yields a warning: this new DLQ has no team,
    although other DLQs have one.
    """
    if case.observed.row is None and not case.proposal.teams and visible_dlqs.has_teams():
        yield warn(
            f"{case.name} has no team: only people with the permission view_all_dlqs see it.",
            f"Give it one: manage.py add_dlq {case.name} --team TEAM --confirm",
        )
