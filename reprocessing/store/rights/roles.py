"""Define the four roles, and create them as Django groups with their exact permissions.

The members of an existing group are not changed.

As long as no DLQ belongs to a team, each role may see all DLQs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.contrib.auth.models import Group, Permission
from django.db import transaction
from django.db.models import Q, QuerySet

from reprocessing.store.rights import visible_dlqs

_APP: Final = "reprocessing"
_PAYLOADS: Final = "view_payload"
_ALL_DLQS: Final = visible_dlqs.ALL_DLQS.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class Role:
    """A role: its Django group, a description, and its permissions. Every role may view everything except payloads."""

    group: str
    sentence: str
    may: tuple[str, ...] = ()


_OPERATES: Final = (
    "release_parkedletter", "discard_parkedletter", "assign_parkedletter", "change_failuregroup", "operate_run",
    "reset_breaker", "stop_lane", "stop_deadletterqueue", "stop_sends", "export_letter",
)  # fmt: skip
_READS: Final = (_PAYLOADS, "edit_parkedletter")
_CONFIGURES: Final = (
    "add_deadletterqueue", "change_deadletterqueue", "add_target", "change_target", "add_rule", "change_rule",
    "delete_rule", "add_notificationroute", "change_notificationroute", "delete_notificationroute",
    "delete_savedfilter", "unlock_managedobject", "act_alone", "add_apitoken", "change_apitoken",
)  # fmt: skip

ROLES: Final = (
    Role("Redrive viewer", "views everything except payloads"),
    Role(
        "Redrive operator", "releases, discards and exports parked messages, operates runs, and stops sends", _OPERATES
    ),
    Role("Redrive editor", "also views payloads and edits messages", (*_OPERATES, *_READS)),
    Role(
        "Redrive administrator",
        "also reveals masked values, and configures DLQs, targets, rules and notifications",
        (*_OPERATES, *_READS, "reveal_payload", *_CONFIGURES),
    ),
)

#: The names of the roles' groups. These groups are not teams: no DLQ and no API token belongs to them.
ROLE_GROUPS: Final = frozenset(role.group for role in ROLES)


@dataclass(frozen=True, slots=True)
class RoleDifference:
    """How a role's group differs from the role: permissions that the group lacks, and permissions that it has too many.

    `new`: the group does not exist.
    """

    role: Role
    new: bool
    lacks: tuple[str, ...]
    exceeds: tuple[str, ...]

    @property
    def is_none(self) -> bool:
        """Return whether the group has exactly the permissions of its role."""
        return not (self.new or self.lacks or self.exceeds)


def possible_teams() -> QuerySet[Group]:
    """Return the Django groups that can be teams, sorted by name: all groups except those of the roles."""
    return Group.objects.exclude(name__in=ROLE_GROUPS).order_by("name")


def role_differences() -> list[RoleDifference]:
    """Return, for each role, how the permissions of its group differ from the role's permissions."""
    return [_difference(role, Group.objects.filter(name=role.group).first()) for role in ROLES]


def update_groups() -> list[RoleDifference]:
    """Set the permissions of all roles' groups, in one transaction; return how the groups differed before."""
    with transaction.atomic():
        found = role_differences()
        for difference in found:
            group, _ = Group.objects.select_for_update().get_or_create(name=difference.role.group)
            group.permissions.set(_permissions(difference.role))
    return found


def end_view_of_all_dlqs() -> None:
    """Remove the permission to see all DLQs from all four roles.

    Call it when a DLQ gets a team and no DLQ had a team before: from then on, people see the DLQs of their own teams.
    """
    every = Permission.objects.filter(codename=_ALL_DLQS, content_type__app_label=_APP)
    held = Group.permissions.through.objects.filter(group__name__in=[role.group for role in ROLES])
    held.filter(permission__in=every).delete()


def _difference(role: Role, group: Group | None) -> RoleDifference:
    has = _names(group.permissions.all()) if group else set()
    wanted = _names(_permissions(role))
    return RoleDifference(role, group is None, tuple(sorted(wanted - has)), tuple(sorted(has - wanted)))


def _permissions(role: Role) -> QuerySet[Permission]:
    hidden = {_PAYLOADS, *([_ALL_DLQS] if visible_dlqs.has_teams() else [])}
    seen = Q(codename__startswith="view_") & ~Q(codename__in=hidden)
    return Permission.objects.filter(seen | Q(codename__in=role.may), content_type__app_label=_APP)


def _names(permissions: QuerySet[Permission]) -> set[str]:
    return {f"{app}.{name}" for app, name in permissions.values_list("content_type__app_label", "codename")}
