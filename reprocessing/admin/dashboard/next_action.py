"""Decide which next action the dashboard offers a person for a DLQ. The row has one button, or a short text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from reprocessing.admin.dashboard.addresses import Addresses
from reprocessing.admin.dashboard.dlq_row import DlqRow, RowState
from reprocessing.models.dlq import Mode


@dataclass(frozen=True, slots=True)
class NextAction:
    """The label and the URL of a button. If the URL is empty, the label is shown as text."""

    label: str
    address: str = ""


def next_action(row: DlqRow, user: AbstractBaseUser | AnonymousUser, addresses: Addresses) -> NextAction:
    """Return the most urgent action for the DLQ. Its URL is empty if this person may not act, or can only wait."""
    label, address, permission = next(_actions(row, addresses))
    may = not permission or user.has_perm(f"reprocessing.{permission}")  # type: ignore[union-attr]  # both have it
    return NextAction(label, address if may else "")


def _actions(row: DlqRow, addresses: Addresses) -> Iterator[tuple[str, str, str]]:
    """Yield possible actions, the most urgent first, as label, URL, and the permission that the page needs.

    An empty URL means that a person can only wait. An empty permission means that the page needs no permission.
    """
    dlq, states = row.status.id, row.states
    if RowState.STOPPED in states:
        yield "Resume…", addresses.of("reprocessing_deadletterqueue_resume", dlq), "stop_deadletterqueue"
    if RowState.AWS in states:
        yield "AWS redrives", "", ""
    if RowState.PROBLEM in states:
        label = "Fix permissions" if is_denied(row.status.last_error) else "Fix problem"
        yield label, addresses.of("board_dlq", dlq), ""
    if row.not_closed:
        address = addresses.of("reprocessing_breaker_change", row.not_closed[0].breaker_id)
        yield "Check circuit breaker", address, "view_breaker"
    if row.paused:
        yield "Resume run", addresses.of("reprocessing_run_change", row.paused[0].id), "view_run"
    if row.uncaptured or row.unplanned:
        yield from _drain(row, addresses)
    if row.counts.parked:
        yield f"Review {row.counts.parked:,}", addresses.parked(dlq), "view_parkedletter"
    yield ("Redriving", "", "") if row.progress else ("", "", "")


def _drain(row: DlqRow, addresses: Addresses) -> Iterator[tuple[str, str, str]]:
    dlq = row.status.id
    if row.status.mode == Mode.OBSERVE:
        yield "Change mode", addresses.of("reprocessing_deadletterqueue_examine", dlq), "change_deadletterqueue"
    else:
        yield f"Drain {row.uncaptured + row.unplanned:,}", addresses.plan(dlq), "operate_run"


def is_denied(last_error: str) -> bool:
    """Return whether a DLQ's problem (`last_error`) is that AWS refused a call because permissions are missing."""
    return any(word in last_error for word in ("AccessDenied", "not authorized", "may not", "permission"))
