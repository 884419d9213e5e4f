"""Save filters of the parking lot, for a person or for one of the person's teams."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace

from django.contrib.auth.models import Group, User
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from reprocessing.domain.errors import InvalidFilter, PayloadKeyUnavailable, PayloadUnreadable
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import SavedFilter
from reprocessing.store.search import stored_filters

logger = logging.getLogger(__name__)
#: Highest number of saved filters that a person sees, and of characters of a name.
MOST, NAME_LENGTH = 50, 60


@dataclass(frozen=True, slots=True)
class Saved:
    """A saved filter. `team`: the name of the team that sees it; empty: only the person who saved it."""

    id: int
    name: str
    team: str
    owner: int
    criteria: MessageFilter


def teams_of(user: User) -> QuerySet[Group]:
    """Return the person's groups to which DLQs belong (teams), sorted by name."""
    return user.groups.filter(dlqs__isnull=False).distinct().order_by("name")


def rows_seen_by(user: User) -> QuerySet[SavedFilter]:
    """Return the filters that a person saved for themselves, and the filters of the person's teams."""
    return SavedFilter.objects.filter(Q(owner=user, team=None) | Q(team__in=user.groups.all()))


def filters_seen_by(user: User) -> list[Saved]:
    """Return the saved filters that a person sees, by name. Filters whose key is not available are left out."""
    rows = rows_seen_by(user).select_related("team").order_by("name", "pk")[:MOST]
    return list(_readable(rows))


def save_filter(user: User, name: str, criteria: MessageFilter, *, team: Group | None) -> None:
    """Save a filter, for the person (`team` None) or for a team of the person.

    The filter is stored without the limits of the person (which DLQs and values they may see). Whoever opens it later
    gets their own limits.

    Raises:
        InvalidFilter: a filter of this name exists, or the person sees 50 saved filters already.
    """
    if rows_seen_by(user).count() >= MOST:
        raise InvalidFilter(f"There are {MOST} saved filters. Delete one that is not used.")
    stored = stored_filters.stored_filter(replace(criteria, dlqs=None, reveals=False))
    try:
        with transaction.atomic():
            SavedFilter.objects.create(name=name, filter=stored, owner=user, team=team)
    except IntegrityError:
        raise InvalidFilter(f"A saved filter is named {name!a}. Choose another name, or delete that one.") from None


def may_delete(user: User, saved: Saved | SavedFilter) -> bool:
    """Return whether a person may delete a saved filter: it is their own, or they have permission to delete filters."""
    owner = saved.owner if isinstance(saved, Saved) else saved.owner_id
    return owner == user.pk or user.has_perm("reprocessing.delete_savedfilter")


def _readable(rows: QuerySet[SavedFilter]) -> Iterator[Saved]:
    """Yield the filters that can be read. If a key is not available, leave out all later encrypted filters.

    All filters are encrypted with the same key, and each failing call of AWS KMS may take seconds.
    """
    has_key = True
    for row in rows:
        if not has_key and stored_filters.is_sealed(row.filter):
            continue
        try:
            criteria = stored_filters.read_filter(row.filter)
        except PayloadUnreadable as error:
            logger.warning("The saved filter %d cannot be read: %s", row.pk, error)
            has_key = has_key and not isinstance(error, PayloadKeyUnavailable)
            continue
        yield Saved(row.pk, row.name, row.team.name if row.team else "", row.owner_id, criteria)
