"""Turn failure groups into cards for display, whose numbers link to messages, and page the list of groups."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.urls import reverse

from reprocessing.admin.messages.readable_bytes import duration, visible
from reprocessing.admin.site import labels
from reprocessing.domain.parking_lot.failure_fingerprint import CauseKind
from reprocessing.models.parking_lot import FailureGroupStatus
from reprocessing.store.parking_lot import failure_group_pages
from reprocessing.store.parking_lot.failure_group_pages import MAX_BEHIND, GroupCounts, GroupRow, PageStart

_CHIPS: Final = {FailureGroupStatus.OPEN: "chip-bad", FailureGroupStatus.ACKNOWLEDGED: "chip-warm"}
_EDGES: Final = {FailureGroupStatus.OPEN: "card-alarming", FailureGroupStatus.ACKNOWLEDGED: "card-wary"}
_PLACE: Final = re.compile(r"([01])\.([0-9]{1,16})\.([0-9]{1,18})")
_NUMBER: Final = re.compile(r"[0-9]{1,18}")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def cards(groups: Sequence[GroupRow], *, now: datetime) -> list[dict[str, Any]]:
    """Return a card for each group, as values for the template, with the numbers of its messages."""
    numbers = failure_group_pages.group_counts([group.id for group in groups])
    return [_card(group, numbers[group.id], now) for group in groups]


def pack_position(last: GroupRow) -> str:
    """Return the URL parameter of the next page, which names the last group of this page."""
    microseconds = (last.last_at - _EPOCH) // timedelta(microseconds=1)
    return f"{int(last.status == FailureGroupStatus.OPEN)}.{microseconds}.{last.id}"


def unpack_position(text: str) -> PageStart | None:
    """Return the place in the list after which a page begins, from the URL parameter that `pack_position` wrote.

    None: the first page, also if the parameter is not valid.
    """
    found = _PLACE.fullmatch(text)
    if found is None:
        return None
    return PageStart(found[1] == "1", _EPOCH + timedelta(microseconds=int(found[2])), int(found[3]))


def id_parameter(asked: Mapping[str, str], name: str) -> int | None:
    """Return the id in the URL parameter `name`; None: the parameter is missing, or is not an id."""
    text = asked.get(name, "")
    return int(text) if _NUMBER.fullmatch(text) else None


def _card(group: GroupRow, numbers: GroupCounts, now: datetime) -> dict[str, Any]:
    """Return the card of one group as values for the template. Each number has the URL of the messages it counts."""
    status = FailureGroupStatus(group.status)
    return {
        "group": group, "numbers": numbers, "title": visible(group.title), "note": visible(group.note),
        "read_from": CauseKind(group.cause).words if group.cause in set(CauseKind) else visible(group.cause),
        "chip": _CHIPS.get(status, ""), "edge": _EDGES.get(status, ""),
        "first": _moment(group.first_at, now), "last": _moment(group.last_at, now),
        "replayed": _moment(group.released_at, now) if group.released_at else None,
        "under_way": _sum(numbers.under_way, group.id), "finished": _sum(numbers.finished, group.id),
        "behind": f"{numbers.behind:,}" if numbers.behind <= MAX_BEHIND else f"{MAX_BEHIND:,}+",
        "address": reverse("admin:reprocessing_failuregroup_change", args=[group.id]),
        "parked_address": _letters("parkedletter", group.id),
        "captured_address": _letters("letter", group.id, state="captured"),
        "letters_address": _letters("letter", group.id),
    }  # fmt: skip


def _sum(states: Sequence[tuple[str, int]], group: int) -> dict[str, Any]:
    """Return the number of a group's messages in these states: in all (`n`), and by state with URLs (`parts`)."""
    parts = [(labels.state(state), n, _letters("letter", group, state=state)) for state, n in states]
    return {"n": sum(n for _, n in states), "parts": parts}


def _letters(model: str, group: int, **asked: str) -> str:
    return f"{reverse(f'admin:reprocessing_{model}_changelist')}?{urlencode({'group': group, **asked})}"


def _moment(at: datetime, now: datetime) -> dict[str, Any]:
    return {"at": at, "ago": f"{duration(now - at)} ago" if at < now else "now"}
