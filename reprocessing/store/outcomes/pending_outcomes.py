"""Find out which evidence is still missing before messages that were sent to a target are presumed delivered.

A *look* is one request for the message counts of a target queue.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, LiteralString

from reprocessing.domain.message.arn import resource_name
from reprocessing.domain.runs.forecast import duration_in_words as lasting
from reprocessing.store import rows
from reprocessing.store.dlqs import schedule
from reprocessing.store.outcomes import evidence
from reprocessing.store.outcomes.evidence import COUNT_PAUSE, ENOUGH_LOOKS, PAUSE_BEGINS, WINDOW_PAUSE
from reprocessing.store.rights.visible_dlqs import EVERY_DLQ, VisibleDlqs

#: A consumer that runs receives a message within this time.
_SOON: Final = timedelta(seconds=10)
#: If a target queue was never empty for this time, its consumer may be stopped.
_LONG: Final = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class PendingOutcome:
    """A target of a DLQ, and the evidence that is missing before a letter sent to it is presumed delivered."""

    which: str  #: the letter that the other fields are about, "oldest" or "newest"
    dlq_id: int
    source: str
    target_id: int
    target: str
    kind: str
    confirmed_fanout: int | None
    proof: str
    advance: str
    rate: float | None
    burst: float | None
    window: float
    watched_by_id: int | None
    watched_by: str | None
    watched_mode: str | None
    watched_next_at: datetime | None  #: when beat polls the watched DLQ next
    drained_through: datetime | None
    unsettled: int  #: letters of all DLQs (or of one run) that were sent to the target and have no outcome yet
    taken_at: datetime | None  #: when the target accepted the letter `which`
    until: datetime | None  #: until when the letter may come back to the DLQ
    gap: float  #: shortest time (s) between two looks at a target without visible messages
    count_lag: float  #: seconds by which SQS's counts may lag: shortest time between two looks at an empty target
    counted_from: datetime | None  #: from when on the target's counts include the letter
    seen_at: datetime | None  #: when the target was first seen without visible messages after `counted_from`
    again_from: datetime | None  #: when the next look is needed; a failed letter is visible or in the DLQ then
    again_at: datetime | None  #: when the target was first seen without visible messages after `again_from`
    quiet_from: datetime | None  #: since when every look found the target empty; None: the latest look found messages
    #: the letter is presumed delivered by a capture that begins at this time or later, and empties the watched DLQ
    needed_from: datetime | None
    now: datetime


_COUNTED: Final[LiteralString] = "open.taken_at + make_interval(secs => %(count_lag)b::float8)"
# For each target, one letter without outcome, and when it meets each condition of `evidence.presumable_attempts`.
_STATEMENT: Final[LiteralString] = f"""
WITH open AS (
    SELECT a.target_id, count(*) AS unsettled, {{bound}}(a.taken_at) AS taken_at, {{bound}}(a.deadline) AS until
      FROM redrive_attempt a WHERE a.closed_at IS NULL AND a.taken_at IS NOT NULL AND {{of}} GROUP BY a.target_id
)
SELECT {{which}} AS which, o.dlq_id, o.arn AS source, t.id AS target_id, t.arn AS target, t.kind, t.confirmed_fanout,
       t.proof,
       t.advance, t.rate, t.burst, t.window,
       w.id AS watched_by_id, w.name AS watched_by, w.mode AS watched_mode, w.next_poll_at AS watched_next_at,
       w.drained_through, coalesce(open.unsettled, 0) AS unsettled, open.taken_at, open.until,
       extract(epoch FROM {WINDOW_PAUSE})::float8 AS gap, %(count_lag)b::float8 AS count_lag,
       {_COUNTED} AS counted_from, s.seen_at, s.seen_at + {WINDOW_PAUSE} AS again_from, again.at AS again_at,
       CASE WHEN newest.idle_since IS NOT NULL THEN greatest(newest.idle_since, {_COUNTED}) END AS quiet_from,
       least(CASE WHEN again.at IS NOT NULL THEN greatest(open.until, again.at) END,
             CASE WHEN t.proof = 'acknowledged' AND emptied.at IS NOT NULL THEN greatest(open.until, emptied.at)
                  ELSE emptied.at END) AS needed_from,
       redrive_now() AS now
  FROM {{sources}} o
  JOIN redrive_target t ON t.id = o.target_id
  LEFT JOIN redrive_dlq w ON w.id = t.watched_by_id
  LEFT JOIN open ON open.target_id = t.id
  LEFT JOIN LATERAL (
        SELECT min(seen_at) AS seen_at FROM redrive_target_check
         WHERE target_id = t.id AND empty AND seen_at >= {_COUNTED}) s ON true
  LEFT JOIN LATERAL (
        SELECT min(g.seen_at) AS at FROM redrive_target_check g
         WHERE g.target_id = t.id AND g.empty AND g.seen_at >= s.seen_at + {WINDOW_PAUSE}) again ON true
  LEFT JOIN LATERAL (
        SELECT n.idle_since FROM redrive_target_check n
         WHERE n.target_id = t.id AND n.seen_at >= {_COUNTED} ORDER BY n.seen_at DESC LIMIT 1) newest ON true
  LEFT JOIN LATERAL (
        SELECT again.seen_at + make_interval(secs => again.took) AS at FROM redrive_target_check again
         WHERE again.target_id = t.id AND again.idle_since IS NOT NULL AND again.seen_at >= {_COUNTED}
           AND EXISTS (SELECT FROM redrive_target_check s
                        WHERE s.target_id = again.target_id AND s.idle_since = again.idle_since
                          AND s.seen_at >= {_COUNTED} AND {PAUSE_BEGINS} + {COUNT_PAUSE} <= again.seen_at
                          AND {ENOUGH_LOOKS})
         ORDER BY again.seen_at LIMIT 1) emptied ON true
 WHERE %(dlq)b::bigint IS NULL OR o.dlq_id = %(dlq)b::bigint
 ORDER BY o.dlq_id, o.arn
"""  # noqa: S608  # the inserted text is a constant

_OLDEST = _STATEMENT.format(bound="min", of="true", which="'oldest'", sources="redrive_source")
# A rule may send letters of a run to a target other than their source queue's.
_NEWEST = _STATEMENT.format(
    bound="max", of="a.run_id = %(run)b", which="'newest'",
    sources="(SELECT %(dlq)b::bigint AS dlq_id, '' AS arn, target_id FROM open)",
)  # fmt: skip


def of_targets(dlq: int | None = None, *, count_lag: float, seen: VisibleDlqs = EVERY_DLQ) -> list[PendingOutcome]:
    """Return, for each target of this DLQ (None: of all DLQs), what its oldest letter without an outcome waits for.

    `seen`: only DLQs that the person who asks may see. `count_lag`: seconds by which SQS's message counts may lag.
    """
    return _seen(
        rows.fetch(PendingOutcome, _OLDEST, {"dlq": dlq, "count_lag": count_lag, "looks": evidence.MIN_LOOKS}),
        seen,
    )


def of_run(run: int, dlq: int, *, count_lag: float, seen: VisibleDlqs = EVERY_DLQ) -> list[PendingOutcome]:
    """Return, for each target of this run, what the run's newest letter without an outcome waits for.

    `dlq`: the run's DLQ. `count_lag`, `seen`: see `of_targets`.
    """
    return _seen(
        rows.fetch(
            PendingOutcome,
            _NEWEST,
            {"run": run, "dlq": dlq, "count_lag": count_lag, "looks": evidence.MIN_LOOKS},
        ),
        seen,
    )


def _seen(found: list[PendingOutcome], seen: VisibleDlqs) -> list[PendingOutcome]:
    """Return the pending outcomes of the DLQs that a person sees, without the names of other DLQs."""
    return [
        wait if wait.watched_by_id is None or seen.includes(wait.watched_by_id) else replace(wait, watched_by="its DLQ")
        for wait in found if seen.includes(wait.dlq_id)
    ]  # fmt: skip


def seconds_until_known(found: Collection[PendingOutcome]) -> dict[int, float | None]:
    """Return, by target id, the shortest time (s) until the outcome of its letter is known; None: cannot be told."""
    cadences = schedule.poll_intervals([pending.watched_by_id for pending in found if pending.watched_by_id])
    return {pending.target_id: _known_in(pending, cadences.get(pending.watched_by_id or 0, 0.0)) for pending in found}


def _known_in(pending: PendingOutcome, every: float) -> float | None:
    if pending.taken_at is None or pending.until is None or is_endless(pending):
        return None
    if pending.watched_by is None or pending.proof == "acknowledged":
        return max((pending.until - pending.now).total_seconds(), 0.0)
    needed = pending.needed_from or _needed(pending)
    if pending.drained_through and pending.drained_through >= needed:
        return 0.0
    next_poll = pending.watched_next_at
    if next_poll is None or next_poll <= pending.now or not every:
        return max((needed - pending.now).total_seconds(), 0.0)
    intervals = max(math.ceil((needed - next_poll).total_seconds() / every), 0)
    return (next_poll - pending.now).total_seconds() + intervals * every


def _needed(pending: PendingOutcome) -> datetime:
    """Return the earliest time for the capture that shows the outcome, if the target is empty from now on."""
    earliest = max(pending.now, pending.counted_from or pending.now)
    emptied = max(pending.now, (pending.quiet_from or earliest) + timedelta(seconds=pending.count_lag))
    seen = pending.seen_at or earliest
    return min(
        emptied,
        max(pending.until or pending.now, pending.again_at or max(pending.now, seen + timedelta(seconds=pending.gap))),
    )


def describe(pending: PendingOutcome) -> str:
    """Return a text that says what the letters without outcome wait for; empty: all letters have an outcome."""
    if not pending.unsettled or pending.taken_at is None or pending.until is None:
        return ""
    if pending.proof == "accepted":
        return "the next outcome check: the target has accepted the messages, and that counts as delivered"
    if pending.proof == "acknowledged" and pending.now < pending.until:
        return f"its consumer's report on the {pending.which} message, until {pending.until:%H:%M:%S} UTC"
    if pending.watched_by is None or pending.watched_mode == "observe":
        return _unseen(pending)
    return _lacking(pending) or "the next outcome check: the evidence is complete"


def is_endless(pending: PendingOutcome) -> bool:
    """Return whether the letter may wait without end: its target was never empty, or nothing can show the outcome."""
    return is_never_empty(pending) or describe(pending).startswith("nothing")


def is_never_empty(pending: PendingOutcome) -> bool:
    """Return whether the letter waits because its target was never empty since the letter was sent."""
    return describe(pending).startswith(f"{resource_name(pending.target)} has not been empty")


def unproved_since(pending: PendingOutcome) -> datetime | None:
    """Return since when a capture could have shown the outcome, although none did; None: the capture is not due yet.

    A capture shows nothing if another reader hides messages of the watched DLQ, or if its mode is observe.
    """
    needed, next_at = pending.needed_from, pending.watched_next_at
    if needed is None or (pending.drained_through is not None and pending.drained_through >= needed):
        return None
    return None if next_at is not None and next_at > pending.now + _LONG else needed


def is_long(pending: PendingOutcome) -> bool:
    """Return whether the target did not become empty in 2 minutes of waiting: perhaps its consumer does not run."""
    since = pending.again_from or pending.taken_at
    return since is not None and pending.now - since >= _LONG


def has_had_time(pending: PendingOutcome) -> bool:
    """Return whether a running consumer would have received the letter by now: 10 seconds have passed."""
    return pending.taken_at is not None and pending.now - pending.taken_at >= _SOON


def _unseen(pending: PendingOutcome) -> str:
    if pending.proof == "acknowledged":
        return f"nothing: its consumer did not report in time, so the {pending.which} message will be parked"
    return f"nothing: {pending.watched_by} is in mode observe, so returned messages are not seen"


def _lacking(pending: PendingOutcome) -> str:
    """Return, as text for people, which evidence the letter waits for next; empty: no evidence is missing."""
    if pending.needed_from is not None:
        if pending.drained_through is not None and pending.drained_through >= pending.needed_from:
            return ""
        begins = f"begins after {pending.needed_from:%H:%M:%S} UTC"
        return (
            f"a capture of {pending.watched_by} that {begins} and finds no returned message; {_next_capture(pending)}"
        )
    if pending.counted_from is not None and pending.now < pending.counted_from:
        lag = f"SQS's counts may lag by {pending.count_lag:g} s"
        name, earliest = resource_name(pending.target), f"{pending.counted_from:%H:%M:%S} UTC"
        return f"a check whether {name} is empty, at {earliest} or later: {lag}"
    return _not_empty(pending)


def _not_empty(pending: PendingOutcome) -> str:
    """Return, as text for people, why the target does not count as empty."""
    name, since = resource_name(pending.target), pending.taken_at
    if pending.seen_at is None or pending.again_from is None:
        when = f"{since:%Y-%m-%d %H:%M:%S} UTC" + (": its consumer may be stopped" if is_long(pending) else "")
        return f"{name} has not been empty since it received the {pending.which} message, at {when}"
    if pending.quiet_from is not None:
        again = pending.quiet_from + timedelta(seconds=pending.count_lag)
        return f"another check whether {name} is empty, at {again:%H:%M:%S} UTC or later: the last found it empty"
    if pending.now < pending.again_from:
        until = f"{pending.again_from:%H:%M:%S} UTC"
        return f"{name} to have no message in flight, or {until}: the {pending.which} message may be in flight"
    return (
        f"{name} has not been empty again since {pending.again_from:%H:%M:%S} UTC: failed messages may still be in it"
    )


def _next_capture(pending: PendingOutcome) -> str:
    left = (pending.watched_next_at - pending.now).total_seconds() if pending.watched_next_at else 0.0
    return f"the next is due in {lasting(left)}" if left > 0 else "the next is due now"
