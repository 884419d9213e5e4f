"""The parked messages of a run by failure group, and the button that releases them."""

from __future__ import annotations

from typing import Any, Final

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, PermissionsMixin
from django.urls import reverse

from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.admin.parking_lot import message_list
from reprocessing.admin.parking_lot.decision import DecisionKind
from reprocessing.admin.site.buttons import Button
from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import Run
from reprocessing.store.parking_lot import groups_of_run
from reprocessing.store.parking_lot.groups_of_run import MAX_READ, GroupOfRun

_SHOWN: Final = 10  # max failure groups on the page
_LOOKS: Final = "reprocessing.view_parkedletter"


def failures(run: Run, user: AbstractBaseUser | AnonymousUser, *, parked: int) -> dict[str, Any] | None:
    """Return the template values about a run's parked messages; None: the page shows nothing about them.

    The page shows nothing if no message is parked, or if this person may not see parked messages. `parked`: how many
    messages of the run are parked.
    """
    if not parked or not isinstance(user, PermissionsMixin) or not user.has_perm(_LOOKS):
        return None
    every = MessageFilter(run=run.pk)
    found = groups_of_run.groups_of_run(run.pk)
    closed = "" if user.has_perm(DecisionKind.RELEASE.permission) else DecisionKind.RELEASE.takes
    return {
        "groups": [_row(every, group) for group in found[:_SHOWN]],
        "more": max(len(found) - _SHOWN, 0),
        "part": MAX_READ if parked > MAX_READ else 0,
        "address": message_list.address_of(every),
        "query": message_list.query_of(every),
        "release": Button("Release failed messages…", reverse("admin:parkedletter_release"), closed),
    }


def _row(every: MessageFilter, group: GroupOfRun) -> dict[str, Any]:
    if group.group_id is None:
        only = MessageFilter(run=every.run, reasons=(group.reason,))
        return {"title": ParkedReason(group.reason).label, "n": group.n, "address": message_list.address_of(only)}
    only = MessageFilter(run=every.run, group=group.group_id)
    return {"title": visible(group.title), "n": group.n, "address": message_list.address_of(only)}
