"""Check a DLQ's teams: the groups whose members see the DLQ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reprocessing.pipeline.dlqs.examine.findings import Case, Finding, refuse, warn
from reprocessing.store.rights import visible_dlqs
from reprocessing.store.rights.roles import ROLE_GROUPS, possible_teams


def groups(case: Case) -> Iterator[Finding]:
    """Every team is a group, and not the group of a role.

    The admin shows this sentence if the check passes. Else, the check yields a refusal for each team that is not a
    group of Django's users, or that is the group of a role. It also yields a warning if no DLQ had a team before: from
    then on, people see only the DLQs of their groups.
    """
    wanted = case.proposal.teams or ()
    known = list(possible_teams().values_list("name", flat=True)) if wanted else []
    for name in wanted:
        if name in ROLE_GROUPS:
            yield _refuse_role(name, known)
        elif name not in known:
            there_are = f"The groups are: {', '.join(known)}." if known else "There are no groups yet."
            yield refuse(f"No group is named {name}. {there_are}", "Add the group in the admin, under Groups.")
    if wanted and not visible_dlqs.has_teams():
        yield warn(
            f"{case.name} is the first DLQ with a team: from now on, the roles of make_roles no longer show all DLQs. "
            "People see only the DLQs of their groups.",
            "Give the permission reprocessing.view_all_dlqs to people who see the DLQs of all teams.",
        )


def _refuse_role(name: str, known: Sequence[str]) -> Finding:
    """Return the refusal of the group of a role as a team. `known`: the names of the groups that can be teams."""
    there_are = f"The teams are: {', '.join(known)}." if known else "There are no teams yet. Add a group in the admin."
    return refuse(
        f'"{name}" is a role, and roles are not teams: a role says what people may do, a team which DLQs they see. '
        f"{there_are}",
        "Name the group of a team: --team TEAM",
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
