"""Mark failed attempts of automatic runs whose target was down, because they do not count for `max_attempts`.

Such an attempt is *spared*. A failed attempt is spared if the circuit breaker opened after it, and no message that was
sent between the attempt and the opening succeeded (docs/adr/0030). A failed canary is always spared. A letter's column
`spared` is the number of its spared attempts since a person released it. If it becomes known only later that a message
sent between the attempt and the opening succeeded, the attempt counts again before its letter is sent again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, LiteralString

from reprocessing.store import rows
from reprocessing.store.safety.breaker_window import ATTEMPTS_READ, NEWEST_SENDS

#: True of a letter l in DLQ d if its further failures count: `spared` has reached `max_attempts`, and a person has
#: resumed the run after it had paused itself, which says that its targets work. Without this rule, a run would retry
#: for ever messages that no consumer can process.
FURTHER_FAILURES_COUNT: Final[LiteralString] = """
(l.spared >= d.max_attempts AND (
    SELECT max(v.id) FROM redrive_audit_entry v
     WHERE v.run_id = l.run_id AND v.act = 'resumed' AND v.before ->> 'by' = 'the service') IS NOT NULL)
"""

#: True of an attempt a whose message came back after the attempt had counted as a success. Such an attempt is not
#: spared: canaries to such a target also seem to succeed, so the breaker cannot show whether the target is down or the
#: message cannot be processed.
WAS_SUCCESS: Final[LiteralString] = "coalesce(a.outcome IN ('accepted', 'absent', 'acknowledged', 'silent'), false)"

#: True of an attempt a that failed, is not marked `spared` yet, and may have failed because of the target.
_FAILED: Final[LiteralString] = f"""
(NOT a.spared AND (a.counts_as_failure OR a.returned_at IS NOT NULL) AND a.outcome IS DISTINCT FROM 'not_sent'
       AND NOT {WAS_SUCCESS}
 AND EXISTS (SELECT FROM redrive_run r JOIN redrive_dlq d ON d.id = r.dlq_id JOIN redrive_letter l ON l.id = a.letter_id
              WHERE r.id = a.run_id AND r.kind = 'automatic' AND NOT {FURTHER_FAILURES_COUNT}))
"""  # the inserted text is a constant

# Marks failed attempts after which no message succeeded. The newest success is searched once for each breaker and
# epoch.
_MARK: Final[LiteralString] = """
), epochs AS (
    SELECT f.breaker_id, f.breaker_epoch, (
            SELECT max(s.id) FROM (
                SELECT id, breaker_id, breaker_epoch, counts_as_failure, returned_at FROM redrive_attempt
                 WHERE (breaker_id, id) > (f.breaker_id, min(f.id)) ORDER BY breaker_id, id LIMIT %(depth)b::int) s
             WHERE s.breaker_id = f.breaker_id AND s.breaker_epoch = f.breaker_epoch
               AND s.counts_as_failure IS FALSE AND s.returned_at IS NULL) AS success
      FROM failed f GROUP BY f.breaker_id, f.breaker_epoch
), marked AS (
    UPDATE redrive_attempt a SET spared = true
      FROM failed f JOIN epochs e USING (breaker_id, breaker_epoch)
     WHERE a.id = f.id AND NOT a.spared AND coalesce(f.id > e.success, true)
    RETURNING a.letter_id, a.no
)
UPDATE redrive_letter l SET spared = least(l.attempts - l.attempts_before_release, l.spared + m.n)
  FROM (SELECT letter_id, count(*)::int AS n FROM marked GROUP BY letter_id) m WHERE l.id = m.letter_id
"""

_SPARE_LATE: Final[LiteralString] = f"""
WITH failed AS (
    SELECT a.id, a.breaker_id, a.breaker_epoch FROM redrive_attempt a JOIN redrive_breaker b ON b.id = a.breaker_id
     WHERE a.id = ANY(%(attempts)b::bigint[]) AND {_FAILED}
       AND (a.breaker_epoch <> b.epoch OR b.state = 'half_open')
{_MARK}"""  # noqa: S608  # the inserted texts are the constants above

_FAILED_IN_EPOCHS: Final[LiteralString] = f"""
    SELECT a.id, a.lane_id, a.breaker_id, a.breaker_epoch
      FROM unnest(%(breakers)b::bigint[], %(epochs)b::bigint[]) AS e(breaker_id, epoch)
     CROSS JOIN LATERAL (
        SELECT * FROM ({NEWEST_SENDS.format(breaker="e.breaker_id")}) newest
         WHERE newest.breaker_id = e.breaker_id AND newest.breaker_epoch = e.epoch) a
     WHERE {_FAILED}
"""  # noqa: S608  # as above
_LOCK_LANES = f"""
SELECT id FROM redrive_lane WHERE id IN (SELECT lane_id FROM ({_FAILED_IN_EPOCHS}) failed) ORDER BY id FOR UPDATE
"""  # noqa: S608  # as above
_SPARE_EPOCHS = f"WITH failed AS ({_FAILED_IN_EPOCHS}{_MARK}"


# Lets attempts count again, up to the letter's `max_attempts`. Only the newest `spared` attempts are read: those since
# a person released the letter.
_COUNT_AGAIN: Final[LiteralString] = """
WITH marked AS (
    SELECT a.id, a.letter_id, a.breaker_id, a.breaker_epoch,
           d.max_attempts - (l.attempts - l.attempts_before_release - l.spared) AS attempts_left
      FROM redrive_letter l JOIN redrive_dlq d ON d.id = l.dlq_id
     CROSS JOIN LATERAL (
            SELECT * FROM redrive_attempt t WHERE t.letter_id = l.id AND t.spared ORDER BY t.no DESC LIMIT l.spared) a
     WHERE l.id = ANY(%(letters)b::bigint[])
), beside_successes AS (
    SELECT m.id, m.attempts_left, row_number() OVER (PARTITION BY m.letter_id ORDER BY m.id) AS nth FROM marked m
     WHERE EXISTS (
        SELECT FROM (SELECT * FROM redrive_attempt WHERE (breaker_id, id) > (m.breaker_id, m.id)
                      ORDER BY breaker_id, id LIMIT %(depth)b::int) s
         WHERE s.breaker_id = m.breaker_id AND s.breaker_epoch = m.breaker_epoch
           AND s.counts_as_failure IS FALSE AND s.returned_at IS NULL)
), counted AS (
    UPDATE redrive_attempt a SET spared = false FROM beside_successes s
     WHERE a.id = s.id AND s.nth <= s.attempts_left AND a.spared
    RETURNING a.letter_id
)
UPDATE redrive_letter l SET spared = l.spared - m.n
  FROM (SELECT letter_id, count(*)::int AS n FROM counted GROUP BY letter_id) m WHERE l.id = m.letter_id
RETURNING l.id AS letter_id, l.attempts - l.attempts_before_release - l.spared AS attempts
"""
_LOCK_LANES_OF_LETTERS = """
SELECT id FROM redrive_lane WHERE id IN (SELECT lane_id FROM redrive_letter WHERE id = ANY(%(letters)b::bigint[]))
 ORDER BY id FOR UPDATE
"""


@dataclass(frozen=True, slots=True)
class _Recounted:
    letter_id: int
    attempts: int


def count_again(letters: Collection[int]) -> dict[int, int]:
    """Count attempts again that are marked as `spared` (not counted), if the target worked after them.

    The target worked if a message succeeded that was sent between the attempt and the breaker's opening. Return, for
    each changed letter by its id, how many of its attempts count now: at most `max_attempts`.
    """
    if not letters:
        return {}
    values = {"letters": sorted(letters), "depth": ATTEMPTS_READ}

    def count() -> dict[int, int]:
        rows.execute(_LOCK_LANES_OF_LETTERS, values)
        return {found.letter_id: found.attempts for found in rows.fetch(_Recounted, _COUNT_AGAIN, values)}

    return rows.in_transaction(count)


def spare_late(attempts: Collection[int]) -> int:
    """Mark attempts as `spared` (not counted) if their breaker opened after they were sent, or if they were canaries.

    Return how many letters changed. Call this function in the transaction that records that these attempts failed.
    """
    return rows.execute(_SPARE_LATE, {"attempts": sorted(attempts), "depth": ATTEMPTS_READ}) if attempts else 0


def spare_epochs(epochs: Collection[tuple[int, int]]) -> int:
    """Mark failed attempts of ended epochs of breakers as `spared` (not counted); return how many letters changed.

    `epochs`: pairs (id of the breaker, number of the epoch). An epoch lasts until the breaker changes its state. Call
    this function in the transaction that opened the breakers, after opening them. It locks lanes, and workers that send
    lock the breaker before the lanes.
    """
    if not epochs:
        return 0
    ended = sorted(epochs)
    values = {
        "breakers": [breaker for breaker, _ in ended],
        "epochs": [epoch for _, epoch in ended],
        "depth": ATTEMPTS_READ,
    }
    rows.execute(_LOCK_LANES, values)
    return rows.execute(_SPARE_EPOCHS, values)
