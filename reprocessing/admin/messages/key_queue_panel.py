"""Say of a key queue why it waits, for its own page and for the pages of its messages."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, assert_never

from django.urls import reverse

from reprocessing import conf
from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.domain.lifecycle import LanePhase
from reprocessing.domain.safety.failure_cause import OUTCOMES_AWAITED, WAITS_FOR_CAUSE
from reprocessing.models import Breaker, Lane, Letter
from reprocessing.store.ordering import lane_neighbours
from reprocessing.store.ordering.lane_neighbours import COUNTED_AT_MOST, Neighbours
from reprocessing.store.outcomes import pending_outcomes
from reprocessing.store.rights.visible_dlqs import VisibleDlqs

#: `WAITS_FOR_CAUSE` in short, said of the first message of a key queue.
_CAUSE: Final = (
    "has used up its attempts. It is parked, or the circuit breaker opens, within "
    f"{OUTCOMES_AWAITED:g} s after its last failure: the service first waits for the outcomes of other messages"
)


def lane_panel(letter: Letter, seen: VisibleDlqs) -> dict[str, Any] | None:
    """Return the key queue of a message for display: numbers of its messages, and why the key queue waits.

    None: the message is in no key queue yet.
    """
    at = lane_neighbours.neighbours_of(letter.pk)
    if at is None:
        return None
    head = "this message" if at.head_id == letter.pk else "its first message"
    evidence = _evidence(letter, seen) if at.phase == LanePhase.AWAITING else ""
    return {
        "at": at, "why": _why(at, head, evidence), "breaker": _open_breaker(at, seen),
        "behind": _bounded(at.behind), "parked": _bounded(at.parked),
    }  # fmt: skip


def why_lane_waits(lane: Lane) -> str:
    """Return what a key queue does or waits for, in the words of the pages of its messages."""
    head = lane_neighbours.head_of(lane.pk)
    at = head and lane_neighbours.neighbours_of(head)
    if at:
        return _why(at, "its first message", "")
    return _stopped(lane.stopped_by, lane.stopped_at, lane.stop_reason) if lane.stopped_at else "nothing is queued"


def _stopped(by: str, at: datetime, reason: str) -> str:
    return f'stopped by {by} at {at:%Y-%m-%d %H:%M:%S} UTC: "{reason}"'


def _open_breaker(at: Neighbours, seen: VisibleDlqs) -> str:
    """Return the URL of the circuit breaker for which the key queue waits.

    Empty: the key queue waits for something else, or the person does not see the circuit breaker.
    """
    if at.breaker_id is None or at.stopped_at or not at.obstacle.startswith("the circuit breaker "):
        return ""
    if not seen.rows(Breaker.objects.filter(pk=at.breaker_id)).exists():
        return ""
    return reverse("admin:reprocessing_breaker_change", args=[at.breaker_id])


def _why(at: Neighbours, head: str, evidence: str) -> str:
    """Return why a key queue waits. `head`: its first message, in words. `evidence`: see `_evidence`."""
    if at.stopped_at:
        return _stopped(at.stopped_by, at.stopped_at, at.stop_reason)
    phase = LanePhase(at.phase)
    match phase:
        case LanePhase.READY:
            return visible(_waits(at, head))
        case LanePhase.HELD:
            return visible(_holds(at, head))
        case LanePhase.AWAITING:
            return f"{head} was sent; the next message is sent when this outcome is known{evidence}"
        case LanePhase.LEASED:
            return f"a worker is sending {head}"
        case LanePhase.IDLE:
            return "nothing is queued"
        case _:
            assert_never(phase)


def _waits(at: Neighbours, head: str) -> str:
    until = f"{at.due_at:%Y-%m-%d %H:%M:%S} UTC"
    if at.obstacle:
        delay = "" if at.is_due else f"; not before {until}"
        return f"{head} waits: {at.obstacle}{delay}"
    if at.why == WAITS_FOR_CAUSE:
        return f"{head} {_CAUSE}"
    if at.why:
        return f"{head} waits: {at.why}; checked again {'as soon as a worker is free' if at.is_due else f'at {until}'}"
    return f"{head} is sent as soon as a worker is free" if at.is_due else f"{head} waits until {until}"


def _evidence(letter: Letter, seen: VisibleDlqs) -> str:
    """Return what the outcomes of the message's target wait for, as a text to append; empty: all outcomes are known."""
    lag = conf.current().count_lag.total_seconds()
    waits = pending_outcomes.of_targets(letter.dlq_id, count_lag=lag, seen=seen)
    found = (wait for wait in waits if wait.target_id == letter.target_id)
    awaited = next(map(pending_outcomes.describe, found), "")
    return f". Waiting for outcomes of this target: {visible(awaited)}" if awaited else ""


def _holds(at: Neighbours, head: str) -> str:
    if at.head_route in {"hold", "erred"}:
        return f"the rule {at.head_rule or '(removed)'} holds {head}"
    return "a parked message holds this key" if at.holds else f"held{f' ({at.why})' if at.why else ''}"


def _bounded(number: int) -> str:
    return f"{number:,}" if number <= COUNTED_AT_MOST else f"more than {COUNTED_AT_MOST:,}"
