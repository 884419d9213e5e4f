"""Read the outcomes of a circuit breaker's newest attempts, which decide about its state and its ramp-up.

Only attempts of the breaker's present epoch count. An epoch begins when the breaker changes its state, or when a canary
(a single letter that tests the target) is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from reprocessing.store import rows

#: How many of a breaker's newest attempts are read: more than can be without a result at a time, and few enough to be
#: read often.
ATTEMPTS_READ = 2_000

#: The newest `depth` attempts of a breaker. If it has fewer, attempts of other breakers follow, so the caller must
#: filter by `breaker_id`. The columns are compared as a row, so that a planner without statistics reads them by index.
NEWEST_SENDS: Final[LiteralString] = """
SELECT * FROM redrive_attempt WHERE (breaker_id, id) <= ({breaker}, 9223372036854775807)
 ORDER BY breaker_id DESC, id DESC LIMIT %(depth)b::int
"""

# True of a failed attempt t if its letter failed before in the same epoch: only a letter's first failure in an epoch
# counts. If all counted, retries of a few poison letters at the end of a drain would look like an outage.
_AGAIN = """
(t.returned_at IS NOT NULL OR t.counts_as_failure IS TRUE) AND EXISTS (
    SELECT FROM redrive_attempt b
     WHERE b.letter_id = t.letter_id AND b.id < t.id AND coalesce(b.breaker_id, 0) = t.breaker_id
       AND b.breaker_epoch = t.breaker_epoch AND (b.returned_at IS NOT NULL OR b.counts_as_failure))
"""

# An attempt failed if its message came back, or `counts_as_failure` is true. Closed attempts that are neither failure
# nor success are left out. The window ends with the newest failure; with `settled`, with the newest settled attempt. A
# canary is the newest attempt of its epoch, and always counts.
_WINDOWS = f"""
SELECT a.breaker_id, coalesce(w.sends, '{{}}') AS sends, e.settled_at, e.newest IS NOT NULL AS sent,
       c.returned_at IS NOT NULL OR c.counts_as_failure AS failed,
       coalesce(c.closed_at IS NOT NULL OR (c.taken_at IS NULL AND c.deadline IS NOT NULL), false) AS closed,
       CASE WHEN c.taken_at IS NOT NULL THEN c.deadline END AS awaited_until
  FROM unnest(%(ids)b::bigint[], %(epochs)b::bigint[], %(sizes)b::int[]) AS a(breaker_id, epoch, size)
 CROSS JOIN LATERAL (
    SELECT max(id) FILTER (WHERE NOT again AND (counts_as_failure OR returned_at IS NOT NULL OR (%(settled)b::bool
           AND NOT counts_as_failure)))
               AS up_to,
           max(greatest(closed_at, returned_at))
               FILTER (WHERE NOT again AND (counts_as_failure IS NOT NULL OR returned_at IS NOT NULL)) AS settled_at,
           min(id) AS oldest, max(id) AS newest
      FROM (SELECT id, breaker_epoch, counts_as_failure, closed_at, returned_at, breaker_epoch = a.epoch
             AND {_AGAIN} AS again
              FROM ({NEWEST_SENDS.format(breaker="a.breaker_id")}) t WHERE t.breaker_id = a.breaker_id) newest
     WHERE breaker_epoch = a.epoch
 ) e
  LEFT JOIN LATERAL (
    SELECT array_agg(failed ORDER BY id) AS sends
      FROM (SELECT id, returned_at IS NOT NULL OR counts_as_failure AS failed FROM redrive_attempt t
             WHERE breaker_id = a.breaker_id AND breaker_epoch = a.epoch AND id BETWEEN e.oldest AND e.up_to
               AND (closed_at IS NULL OR counts_as_failure IS NOT NULL OR returned_at IS NOT NULL) AND NOT ({_AGAIN})
             ORDER BY id DESC LIMIT a.size) counted
 ) w ON e.up_to IS NOT NULL
  LEFT JOIN redrive_attempt c ON c.id = e.newest
 ORDER BY a.breaker_id
"""  # noqa: S608  # the inserted text is the constant above


@dataclass(frozen=True, slots=True)
class Window:
    """The outcomes of a breaker's newest attempts in its present epoch."""

    breaker_id: int
    sends: list[bool | None]  #: whether each attempt failed, in the order of sending; None: not known
    settled_at: datetime | None  #: when the latest attempt was settled, among the epoch's newest `ATTEMPTS_READ`
    sent: bool  #: whether the epoch has an attempt; the next fields are about its newest attempt (half open: canary)
    failed: bool | None  #: whether the newest attempt failed; None: not known
    closed: bool  #: whether the newest attempt has a result, which only a return can change
    awaited_until: datetime | None  #: until when the newest attempt's message may return, if the target took it


def windows(
    ids: Sequence[int], epochs: Sequence[int], sizes: Sequence[int], *, settled: bool = False
) -> dict[int, Window]:
    """Return, by breaker id, the outcomes of the newest attempts in the breaker's epoch (its window).

    `ids`, `epochs`: the breakers and their present epochs. `sizes`: the highest number of attempts in each window.
    `settled`: whether a window ends with the newest attempt whose outcome is known. If false, it ends with the newest
    failed attempt.
    """
    some = [min(size, ATTEMPTS_READ) for size in sizes]
    values = {"ids": list(ids), "epochs": list(epochs), "sizes": some, "settled": settled, "depth": ATTEMPTS_READ}
    return {window.breaker_id: window for window in rows.fetch(Window, _WINDOWS, values)}
