"""Give captured letters their places in lanes, and put (enlist) a run's letters onto these lanes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, LiteralString

from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.ordering.placement import StoredPlace
from reprocessing.store import rows
from reprocessing.store.ordering import new_heads
from reprocessing.store.replay.settlement_effects import CLAIMS_AND_COPIES


@dataclass(frozen=True, slots=True)
class UnplacedLetter:
    """A captured letter without a place in a lane. `body`: empty if nothing is read from it; `asked_at`: query time."""

    id: int
    message_id: str
    source_id: int | None
    size: int
    size_limit: int | None
    target_kind: str | None
    strips_expires: bool | None
    asked_at: datetime
    body: bytes
    attributes: bytes
    system: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Enlisted:
    """How many letters were put onto lanes, on how many lanes, and how many were parked without being sent."""

    letters: int
    lanes: int
    parked: int


# Columns that describe a letter's target.
_OF_TARGET: Final[LiteralString] = "t.size_limit, t.kind AS target_kind, t.strips_expires, redrive_now() AS asked_at"

# Chunks of bounded size. Bodies are also read of Celery tasks, and of letters without a source queue.
_UNPLACED = f"""
SELECT l.id, l.message_id, l.source_id, l.size, p.system, p.attributes, {_OF_TARGET},
       CASE WHEN l.is_read THEN p.body ELSE ''::bytea END AS body
  FROM (SELECT *, sum(CASE WHEN is_read THEN size ELSE 0 END) OVER (ORDER BY id)
                  - CASE WHEN is_read THEN size ELSE 0 END AS before
          FROM (SELECT w.id, w.message_id, w.source_id, w.target_id, w.size,
                       %(bodies)b::bool OR w.source_id IS NULL OR coalesce(k.kind = 'celery', false) AS is_read
                  FROM redrive_letter w LEFT JOIN redrive_target k ON k.id = w.target_id
                 WHERE w.dlq_id = %(dlq)b AND w.state = 'captured' AND NOT w.planned ORDER BY w.id LIMIT 1000) first) l
  JOIN redrive_payload p ON p.letter_id = l.id
  LEFT JOIN redrive_target t ON t.id = l.target_id
 WHERE l.before < 16777216
 ORDER BY l.id
"""  # noqa: S608  # the inserted text is a constant

_NAME = """
UPDATE redrive_letter l SET source_id = o.id, target_id = o.target_id
  FROM unnest(%(letters)b::bigint[], %(sources)b::bigint[]) AS s(letter_id, source_id)
  JOIN redrive_source o ON o.id = s.source_id
 WHERE l.id = s.letter_id AND l.source_id IS NULL AND l.dlq_id = o.dlq_id AND l.state IN ('captured', 'parked')
"""

_PLACE = """
UPDATE redrive_letter l
   SET planned = true, blocked_reason = s.blocked_reason, detail = s.detail, ordering_key = s.ordering_key,
       key_hash = s.key_hash, single = s.single, sequence = s.sequence,
       idempotency_key = CASE WHEN l.revision_id IS NULL THEN s.idempotency_key ELSE coalesce((
            SELECT v.idempotency_key FROM redrive_revision v
             WHERE v.letter_id = l.id AND v.idempotency_key IS NOT NULL ORDER BY v.no DESC LIMIT 1),
            s.idempotency_key) END
  FROM unnest(%(letters)b::bigint[], %(blocked_reason)b::text[], %(detail)b::text[], %(ordering_key)b::text[],
              %(key_hash)b::bytea[], %(single)b::bool[], %(sequence)b::text[], %(idempotency_key)b::text[])
       AS s(letter_id, blocked_reason, detail, ordering_key, key_hash, single, sequence, idempotency_key)
 WHERE l.id = s.letter_id AND l.state = %(state)b AND l.lane_id IS NULL
"""

# Letters parked without a place in a lane. If the DLQ's settings changed, or after an edit, they may get a place now.
_STRAYS = f"""
SELECT l.id, l.message_id, l.source_id, l.dlq_id, l.size, p.system,
       coalesce(v.attributes, p.attributes) AS attributes, coalesce(v.body, p.body) AS body, {_OF_TARGET}
  FROM (SELECT w.*, sum(greatest(w.size, length(e.body))) OVER (ORDER BY w.id)
                    - greatest(w.size, length(e.body)) AS before
          FROM redrive_letter w LEFT JOIN redrive_revision e ON e.id = w.revision_id
         WHERE w.id = ANY(%(letters)b::bigint[]) AND w.state = 'parked' AND w.lane_id IS NULL AND w.key_hash IS NULL
           AND w.source_id IS NOT NULL AND w.id > %(above)b) l
  JOIN redrive_payload p ON p.letter_id = l.id LEFT JOIN redrive_target t ON t.id = l.target_id
  LEFT JOIN redrive_revision v ON v.id = l.revision_id
 WHERE l.before < 16777216
 ORDER BY l.id
"""  # noqa: S608  # as above

# Plans that are not started select their letters again, because the letters' lanes may have changed.
_UNSELECT = """
WITH plans AS (
    UPDATE redrive_run SET selected = NULL, behind = NULL
     WHERE dlq_id = %(dlq)b AND kind = 'drain' AND state = 'planned' RETURNING id
)
UPDATE redrive_letter l SET run_id = NULL FROM plans p WHERE l.run_id = p.id AND l.state = 'captured'
"""

_NEW_VERSION = "UPDATE redrive_dlq SET places_version = places_version + 1 WHERE id = %(dlq)b"

# Letters without a run are placed again.
_REPLAN = """
UPDATE redrive_letter SET planned = false, blocked_reason = '', detail = ''
 WHERE dlq_id = %(dlq)b AND state = 'captured' AND run_id IS NULL AND planned
   AND blocked_reason NOT IN ('possible_return', 'moved_by_aws')
"""

# These letters get the target of their source queue; letters in progress or parked keep their target.
_LEAD = """
UPDATE redrive_letter l SET target_id = o.target_id
  FROM redrive_source o
 WHERE l.dlq_id = %(dlq)b AND l.state = 'captured' AND l.run_id IS NULL AND o.id = l.source_id
   AND l.target_id IS DISTINCT FROM o.target_id
"""

# A subquery for each letter: joined, a planner without statistics of this DLQ would read all its lanes for each letter.
_LANE_OF_LETTER: Final[LiteralString] = """(
       SELECT n.id FROM redrive_lane n
        WHERE n.dlq_id = l.dlq_id AND n.source_id = l.source_id AND n.key_hash = l.key_hash)"""

# True of a letter l if it was selected for the run, and (if letters are given) is one of the given letters.
_SELECTED: Final[LiteralString] = """l.dlq_id = %(dlq)b AND l.run_id = %(run)b AND l.state = 'captured'
       AND (%(letters)b::bigint[] IS NULL OR l.id = ANY(%(letters)b::bigint[]))"""

# True of a letter l if it is one of the given letters, and still has no run: the run takes it as it is enlisted.
_WITHOUT_RUN: Final[LiteralString] = """l.dlq_id = %(dlq)b AND l.run_id IS NULL AND l.state = 'captured'
       AND l.id = ANY(%(letters)b::bigint[])"""

#: True of a run r if the next run takes over (adopts) the lanes of r. A plan has lanes if its start failed after it had
#: adopted them. Only a running run adopts the lanes of a plan, since the plan's start may still finish.
RUN_LEAVES_LETTERS: Final[LiteralString] = """(r.id <> %(run)b AND (r.state IN ('finished', 'aborted') OR (
    r.state = 'planned' AND (SELECT h.state FROM redrive_run h WHERE h.id = %(run)b) = 'running')))"""

# True of a run r if it has lanes. This is checked before any join: otherwise, after one large run, the planner would
# read all lanes for ended runs.
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
# wait. Letters are found for each ended run by index (`OFFSET 0`): with a join, the planner may read all letters.
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

# `ahead`: lanes that no worker leases, in which a new letter comes before the former first letter.
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
        SELECT w.sequence, w.message_id FROM redrive_letter w
         WHERE w.lane_id = e.lane_id AND w.state IN ('waiting', 'sending', 'awaiting') AND NOT w.frees_lane
         ORDER BY w.sequence, w.message_id LIMIT 1) h ON true
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
    """The statements that enlist the letters of one condition on a letter l."""

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


def unplaced_letters(dlq: int, *, bodies: bool) -> list[UnplacedLetter]:
    """Return the next captured letters of a DLQ without a place in a lane. `bodies`: include the bodies."""
    return rows.fetch(UnplacedLetter, _UNPLACED, {"dlq": dlq, "bodies": bodies})


@dataclass(frozen=True, slots=True)
class UnplacedParkedLetter(UnplacedLetter):
    """A parked letter without a place in a lane."""

    dlq_id: int


def unplaced_parked_letters(letters: Collection[int]) -> Iterator[list[UnplacedParkedLetter]]:
    """Yield parked letters without a place in a lane, in chunks."""
    values = {"letters": list(letters), "above": 0}
    while found := rows.fetch(UnplacedParkedLetter, _STRAYS, values):
        yield found
        values["above"] = found[-1].id


def place_again(dlq: int) -> int:
    """Let the places of captured letters be determined again, and plans select again; return how many letters."""
    rows.execute(_NEW_VERSION, {"dlq": dlq})
    rows.execute(_UNSELECT, {"dlq": dlq})
    rows.execute(_LEAD, {"dlq": dlq})
    return rows.execute(_REPLAN, {"dlq": dlq})


def set_sources(sources: Mapping[int, int]) -> int:
    """Set source queue and target of letters without a source queue, by letter id; return how many letters."""
    if not sources:
        return 0
    return rows.execute(_NAME, {"letters": list(sources), "sources": list(sources.values())})


def set_places(places: Mapping[int, StoredPlace], *, state: LetterState = LetterState.CAPTURED) -> None:
    """Write the places of letters in lanes, by letter id. Letters in another state than `state` are not changed."""
    rows.execute(_PLACE, {"state": state, "letters": list(places), **rows.arrays(StoredPlace, places.values())})


def enlist_letters(dlq: int, run: int, *, letters: Sequence[int] | None = None, free: bool = False) -> Enlisted:
    """Put the selected letters of a run, and unfinished letters of ended runs, onto their lanes.

    Call it in one transaction, so that no letter overtakes an earlier letter. `letters`: only these letters; all
    letters before them in their lanes must be enlisted already. `free`: these letters have no run yet, and the caller
    has locked them.
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
