"""Decide which next action the dashboard offers a person for a DLQ. The row has one button, or a short text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.urls import reverse

from reprocessing.admin.dashboard.dlq_row import DlqRow, RowState
from reprocessing.models.dlq import Mode


@dataclass(frozen=True, slots=True)
class NextAction:
    """The label and the URL of a button. If the URL is empty, the label is shown as text."""

    label: str
    address: str = ""


def next_action(row: DlqRow, user: AbstractBaseUser | AnonymousUser) -> NextAction:
    """Return the most urgent action for the DLQ. The URL is empty if this person may not act, or can only wait."""
    label, address, permission = next(_actions(row))
    may = not permission or user.has_perm(f"reprocessing.{permission}")  # type: ignore[union-attr]  # both have it
    return NextAction(label, address if may else "")


def _actions(row: DlqRow) -> Iterator[tuple[str, str, str]]:
    """Yield possible actions, the most urgent first, as label, URL, and the permission that the page needs.

    The URL is empty if a person can only wait. The permission is empty if the page needs no further permission.
    """
    dlq, states = row.status.id, row.states
    if RowState.STOPPED in states:
        yield "Resume…", reverse("admin:reprocessing_deadletterqueue_resume", args=[dlq]), "stop_deadletterqueue"
    if RowState.AWS in states:
        yield "AWS redrives", "", ""
    if RowState.PROBLEM in states:
        label = "Fix permissions" if is_denied(row.status.trouble) else "Fix problem"
        yield label, reverse("admin:board_dlq", args=[dlq]), ""
    if row.not_closed:
        address = reverse("admin:reprocessing_breaker_change", args=[row.not_closed[0].breaker_id])
        yield "Check circuit breaker", address, "view_breaker"
    if row.paused:
        yield "Resume run", reverse("admin:reprocessing_run_change", args=[row.paused[0].id]), "view_run"
    if row.uncaptured or row.unplanned:
        yield from _drain(row)
    if row.counts.parked:
        address = f"{reverse('admin:reprocessing_parkedletter_changelist')}?{urlencode({'dlq__id__exact': dlq})}"
        yield f"Review {row.counts.parked:,}", address, "view_parkedletter"
    yield ("Redriving", "", "") if row.progress else ("", "", "")


def _drain(row: DlqRow) -> Iterator[tuple[str, str, str]]:
    dlq = row.status.id
    if row.status.mode == Mode.OBSERVE:
        address = reverse("admin:reprocessing_deadletterqueue_examine", args=[dlq])
        yield "Change mode", address, "change_deadletterqueue"
    else:
        address = f"{reverse('admin:reprocessing_run_add')}?{urlencode({'dlq': dlq})}"
        yield f"Drain {row.uncaptured + row.unplanned:,}", address, "operate_run"


def is_denied(trouble: str) -> bool:
    """Return whether the text of a DLQ's problem says that AWS refused a call for lack of permissions."""
    return any(word in trouble for word in ("AccessDenied", "not authorized", "may not", "permission"))
