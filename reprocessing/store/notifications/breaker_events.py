"""Open an incident, to notify people, when a circuit breaker opens; end it when the breaker closes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, LiteralString

from reprocessing.domain.notifications.event import Event, EventKind
from reprocessing.domain.notifications.subjects import of_breaker
from reprocessing.store import rows
from reprocessing.store.notifications.outbox import announce, conclude

# If only one DLQ sends to the target, the incident is about that DLQ, so that a route for the DLQ gets the event.
_DLQS: Final[LiteralString] = """
SELECT b.id AS breaker_id, d.id AS dlq_id, d.name
  FROM redrive_breaker b
 CROSS JOIN LATERAL (
       SELECT min(o.dlq_id) AS id FROM redrive_source o
        WHERE o.target_id = b.target_id AND o.removed_at IS NULL
       HAVING count(DISTINCT o.dlq_id) = 1) sole
  JOIN redrive_dlq d ON d.id = sole.id
 WHERE b.id = ANY(%(breakers)b::bigint[])
"""


@dataclass(frozen=True, slots=True)
class OpenedBreaker:
    """A circuit breaker that has just opened.

    Attributes:
        why: the reason, without message data and without the target's answer.
        seconds: the cooldown, after which the breaker tests the target.
    """

    breaker_id: int
    target: str
    why: str
    seconds: float


@dataclass(frozen=True, slots=True)
class _Dlq:
    breaker_id: int
    dlq_id: int
    name: str


def announce_opened(opened: Collection[OpenedBreaker]) -> None:
    """Open incidents, to notify people, for circuit breakers that have opened.

    Call it in the transaction that opened the breakers.
    """
    if not opened:
        return
    breakers = [breaker.breaker_id for breaker in opened]
    dlqs = {dlq.breaker_id: dlq for dlq in rows.fetch(_Dlq, _DLQS, {"breakers": breakers})}
    announce([_event(breaker, dlqs.get(breaker.breaker_id)) for breaker in opened])


def conclude_closed(breakers: Collection[int]) -> None:
    """End the incidents of circuit breakers that have closed. Call it in the transaction that closed them."""
    conclude([(EventKind.BREAKER_OPEN, of_breaker(breaker)) for breaker in breakers])


def _event(breaker: OpenedBreaker, dlq: _Dlq | None) -> Event:
    facts: dict[str, str | int | float] = {
        "target": breaker.target, "breaker_id": breaker.breaker_id, "why": breaker.why, "seconds": breaker.seconds,
    }  # fmt: skip
    if dlq is not None:
        facts["dlq"] = dlq.name
    return Event(EventKind.BREAKER_OPEN, of_breaker(breaker.breaker_id), facts, dlq_id=dlq.dlq_id if dlq else None)
