"""Make the card that shows a failure group. The card's numbers of messages link to those messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from django.urls import reverse

from reprocessing.admin.messages.readable_bytes import duration, visible
from reprocessing.admin.site import labels
from reprocessing.domain.parking_lot.failure_fingerprint import CauseKind
from reprocessing.models.parking_lot import FailureGroupStatus
from reprocessing.store.parking_lot import failure_group_pages
from reprocessing.store.parking_lot.failure_group_pages import MAX_BEHIND, GroupRow

_CHIPS: Final = {FailureGroupStatus.OPEN: "chip-bad", FailureGroupStatus.ACKNOWLEDGED: "chip-warm"}
_EDGES: Final = {FailureGroupStatus.OPEN: "card-alarming", FailureGroupStatus.ACKNOWLEDGED: "card-wary"}
_NUMBER: Final = re.compile(r"[0-9]{1,18}")


def card(group: GroupRow, *, now: datetime) -> dict[str, Any]:
    """Return the template values of a failure group's card. Numbers of messages link to lists of these messages."""
    numbers = failure_group_pages.group_counts([group.id])[group.id]
    status = FailureGroupStatus(group.status)
    return {
        "group": group, "numbers": numbers, "title": visible(group.title), "note": visible(group.note),
        "read_from": cause_words(group.cause), "is_unknown": is_unknown(group.cause),
        "chip": _CHIPS.get(status, ""), "edge": _EDGES.get(status, ""),
        "first": moment(group.first_at, now), "last": moment(group.last_at, now),
        "released": moment(group.released_at, now) if group.released_at else None,
        "under_way": _sum(numbers.under_way, group.id), "finished": _sum(numbers.finished, group.id),
        "behind": f"{numbers.behind:,}" if numbers.behind <= MAX_BEHIND else f"{MAX_BEHIND:,}+",
        "address": reverse("admin:reprocessing_failuregroup_change", args=[group.id]),
        "parked_address": f"{reverse('admin:reprocessing_parkedletter_changelist')}?group={group.id}",
        "captured_address": _letters(group.id, state__exact="captured"),
        "letters_address": _letters(group.id),
    }  # fmt: skip


def cause_words(cause: str) -> str:
    """Return in words where the service read the failure of a group. `cause`: a `CauseKind`."""
    return CauseKind(cause).words if cause in set(CauseKind) else visible(cause)


def is_unknown(cause: str) -> bool:
    """Return whether a failure group has messages of one type or structure, because their failures are not known."""
    return cause in set(CauseKind) and not CauseKind(cause).names_failure


def id_parameter(asked: Mapping[str, str], name: str) -> int | None:
    """Return the id in the URL parameter `name`; None: the parameter is missing, or is not an id."""
    text = asked.get(name, "")
    return int(text) if _NUMBER.fullmatch(text) else None


def _sum(states: Iterable[tuple[str, int]], group: int) -> dict[str, Any]:
    """Return the sum of the numbers of messages in these states, and each number with a link to its messages."""
    parts = [(labels.counted_state(state), n, _letters(group, state__exact=state)) for state, n in states]
    return {"n": sum(n for _, n, _ in parts), "parts": parts}


def _letters(group: int, **asked: str) -> str:
    return f"{reverse('admin:reprocessing_letter_changelist')}?{urlencode({'group': group, **asked})}"


def moment(at: datetime, now: datetime) -> dict[str, Any]:
    """Return a time and, in words, how long ago it was, such as "5 min ago"."""
    return {"at": at, "ago": f"{duration(now - at)} ago" if at < now else "now"}
