"""Enlist a run's letters: put them onto their lanes, where they wait to be sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, LiteralString

from reprocessing.store import rows
from reprocessing.store.ordering import new_heads
from reprocessing.store.ordering.lane_head import first_letters
from reprocessing.store.replay.settlement_effects import CLAIMS_AND_COPIES
from reprocessing.store.safety.paused_runs import THE_SERVICE


@dataclass(frozen=True, slots=True)
class Enlisted:
    """How many letters were put onto lanes, on how many lanes, and how many were parked without being sent."""

    letters: int
    lanes: int
    parked: int


# The lane of a letter, as a subquery: with a join, a planner without statistics would read all lanes for each letter.
_LANE_OF_LETTER: Final[LiteralString] = """(
       SELECT n.id FROM redrive_lane n
        WHERE n.dlq_id = l.dlq_id AND n.source_id = l.source_id AND n.key_hash = l.key_hash)"""

# True of a letter l if it was selected for the run, and (if letters are given) is one of the given letters.
_SELECTED: Final[LiteralString] = """l.dlq_id = %(dlq)b AND l.run_id = %(run)b AND l.state = 'captured'
       AND (%(letters)b::bigint[] IS NULL OR l.id = ANY(%(letters)b::bigint[]))"""

# True of a letter l if it is one of the given letters, and still has no run. When it is enlisted, it joins the run.
_WITHOUT_RUN: Final[LiteralString] = """l.dlq_id = %(dlq)b AND l.run_id IS NULL AND l.state = 'captured'
       AND l.id = ANY(%(letters)b::bigint[])"""

#: True of a run r if the run that starts takes over (adopts) the lanes of r. A plan has lanes if its start failed after
#: it had adopted them. Only a running run adopts the lanes of a plan, since the plan's start may still finish.
RUN_LEAVES_LETTERS: Final[LiteralString] = """(r.id <> %(run)b AND (r.state IN ('finished', 'aborted') OR (
    r.state = 'planned' AND (SELECT h.state FROM redrive_run h WHERE h.id = %(run)b) = 'running')))"""

# True of a run r if it has lanes. Without this condition, after one large run, the planner would read all lanes for
# each ended run.
_HAS_LANES: Final[LiteralString] = """
(SELECT x.run_id FROM redrive_lane x WHERE x.run_id >= r.id ORDER BY x.run_id LIMIT 1) = r.id"""

_LOCK_LANES: Final[LiteralString] = f"""
SELECT count(*) AS n FROM (
    SELECT n.id FROM redrive_lane n
     WHERE n.id = ANY (ARRAY (
           SELECT {_LANE_OF_LETTER} FROM redrive_letter l
            WHERE {{which}} AND l.blocked_reason = ''
           UNION ALL
           SELECT e.id FROM redrive_lane e JOIN redrive_run r ON r.id = e.run_id
            WHERE r.dlq_id = %(dlq)b AND {RUN_LEAVES_LETTERS} AND {_HAS_LANES}))
     ORDER BY n.id FOR UPDATE) locked
"""  # noqa: S608  # the inserted text is a constant

# A letter that came back to an ended run is the first of its lane. The run adopts it, so that later letters need not
# wait. Letters are found for each ended run by index (`OFFSET 0`): with a join, the planner may read all letters. The
# audit log says how many letters a drain adopts, because the run's size is their number and that of selected letters.
ADOPT_LETTERS: Final[LiteralString] = f"""
WITH adopted AS (
    UPDATE redrive_letter l SET run_id = %(run)b
     WHERE l.id = ANY (ARRAY (
           SELECT x.id FROM redrive_run r
            CROSS JOIN LATERAL (
                  SELECT id FROM redrive_letter
                   WHERE run_id = r.id AND state IN ('waiting', 'sending', 'awaiting') OFFSET 0) x
            WHERE r.dlq_id = %(dlq)b AND {RUN_LEAVES_LETTERS}))
       AND l.state IN ('waiting', 'sending', 'awaiting') AND {{letters}}
    RETURNING l.id
), noted AS (
    INSERT INTO redrive_audit_entry (act, run_id, dlq_id, by, reason, at, before, after)
    SELECT 'changed', h.id, h.dlq_id, '{THE_SERVICE}', 'The run took over unfinished messages of runs that have ended.',
           redrive_now(), jsonb_build_object(), jsonb_build_object('from_other_runs', (SELECT count(*) FROM adopted))
      FROM redrive_run h WHERE h.id = %(run)b AND h.kind = 'drain' AND EXISTS (SELECT FROM adopted)
)
UPDATE redrive_lane n SET run_id = %(run)b
  FROM redrive_run r WHERE r.dlq_id = %(dlq)b AND {RUN_LEAVES_LETTERS} AND {_HAS_LANES} AND n.run_id = r.id
         AND {{lanes}}
"""  # noqa: S608  # as above
_ADOPT = ADOPT_LETTERS.format(letters="true", lanes="true")

# The new lane of a key waits: an earlier message of the key may still be retried in the source queue.
_LANES: Final[LiteralString] = """
INSERT INTO redrive_lane AS n (dlq_id, source_id, key_hash, key, single, run_id, phase, due_at)
SELECT l.dlq_id, l.source_id, l.key_hash, min(l.ordering_key), bool_and(l.single), %(run)b, 'ready',
       CASE WHEN bool_and(l.single) THEN redrive_now()
            ELSE greatest(redrive_now(), max(l.captured_at)
                          + make_interval(secs => coalesce(max(d.new_key_delay), max(t.visibility)::float8))) END
  FROM redrive_letter l JOIN redrive_dlq d ON d.id = l.dlq_id JOIN redrive_target t ON t.id = l.target_id
 WHERE {which} AND l.blocked_reason = ''
 GROUP BY l.dlq_id, l.source_id, l.key_hash
 ORDER BY min(l.first_sent_at), l.key_hash
ON CONFLICT (dlq_id, source_id, key_hash) DO UPDATE
   SET phase = CASE WHEN n.phase = 'idle' THEN 'ready' ELSE n.phase END,
       due_at = CASE WHEN n.phase = 'idle' THEN excluded.due_at ELSE n.due_at END,
       run_id = CASE WHEN n.phase = 'idle' THEN excluded.run_id ELSE n.run_id END
"""

# Puts letters onto their lanes. `ahead`: lanes that no worker leases, in which a new letter precedes the former head.
_ENLIST: Final[LiteralString] = f"""
WITH enlisted AS (
    UPDATE redrive_letter l SET run_id = %(run)b, lane_id = {_LANE_OF_LETTER}, state = 'waiting', due_at = NULL
     WHERE {{which}} AND l.blocked_reason = ''
    RETURNING l.lane_id, l.sequence, l.message_id
), firsts AS MATERIALIZED (
    SELECT DISTINCT ON (lane_id) lane_id, sequence, message_id FROM enlisted ORDER BY lane_id, sequence, message_id
)
SELECT (SELECT count(*) FROM enlisted) AS n, coalesce(array_agg(e.lane_id) FILTER (WHERE n.phase IN ('ready', 'held')
           AND (e.sequence, e.message_id) < (h.sequence, h.message_id)), '{{{{}}}}') AS ahead
  FROM firsts e JOIN redrive_lane n ON n.id = e.lane_id
  LEFT JOIN LATERAL (
        SELECT w.sequence, w.message_id FROM {first_letters("w", "e.lane_id")}) h ON true
"""  # noqa: S608  # the inserted text is a constant

_OBJECT: Final[LiteralString] = f"""
WITH moved AS (
    UPDATE redrive_letter l SET run_id = %(run)b, state = 'parked', reason = l.blocked_reason, blocked_reason = '',
           finished_at = redrive_now()
     WHERE {{which}} AND l.blocked_reason <> ''
    RETURNING l.id, l.dlq_id, l.message_id, l.target_id, l.idempotency_key, l.state, 'free' AS claim,
              NULL::timestamptz AS until
), {CLAIMS_AND_COPIES}
SELECT count(*) AS n FROM moved
"""  # noqa: S608  # the inserted text is a constant


class _Steps:
    """The SQL statements that enlist all letters for which a condition is true."""

    def __init__(self, which: LiteralString) -> None:
        self.lock_lanes = _LOCK_LANES.format(which=which)
        self.lanes = _LANES.format(which=which)
        self.enlist = _ENLIST.format(which=which)
        self.park = _OBJECT.format(which=which)


_STEPS, _STEPS_WITHOUT_RUN = _Steps(_SELECTED), _Steps(_WITHOUT_RUN)


@dataclass(frozen=True, slots=True)
class _Found:
    n: int
    ahead: list[int]


def enlist_letters(dlq: int, run: int, *, letters: Sequence[int] | None = None, free: bool = False) -> Enlisted:
    """Put the selected letters of a run onto their lanes, and park letters that cannot be sent; return the counts.

    The run also takes over (adopts) unfinished letters of the DLQ's ended runs. Call this function in one transaction,
    so that no letter overtakes an earlier letter.

    `letters`: only these letters; all letters before them in their lanes must be on the lanes already. None: all
    selected letters of the run. `free`: the given letters have no run yet, and the caller has locked them.
    """
    values = {"dlq": dlq, "run": run, "letters": None if letters is None else list(letters)}
    steps = _STEPS_WITHOUT_RUN if free else _STEPS
    rows.execute(steps.lock_lanes, values)
    rows.execute(_ADOPT, values)
    lanes = rows.execute(steps.lanes, values)
    found = rows.fetch(_Found, steps.enlist, values)[0]
    new_heads.move_to_new_heads(found.ahead)
    parked = rows.value(int, steps.park, values)
    return Enlisted(letters=found.n, lanes=lanes, parked=parked)
