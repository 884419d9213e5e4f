"""The statements of the parking lot: parked letters released, discarded, and the record of who did it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final, LiteralString

from reprocessing.domain.lifecycle import LetterState
from reprocessing.models.audit import Act
from reprocessing.store import rows
from reprocessing.store.ordering import lanes
from reprocessing.store.parking_lot import failure_groups
from reprocessing.store.routing.routing_decisions import BY_HAND

#: Lanes that are moved in one transaction.
_GROUP = 500


@dataclass(frozen=True, slots=True)
class Asked:
    """A letter somebody wants to move; `refusal` says why it is left alone, empty when it is not.

    What it was before: `reason`, why it is parked; `target_id`, where it would go.
    """

    letter_id: int
    lane_id: int | None
    reason: str
    target_id: int | None
    refusal: str


# By chunks of bounded bytes, from the one after the last.
_NAMELESS = """
SELECT l.id, l.dlq_id, p.body, p.attributes, p.system
  FROM (SELECT id, dlq_id, sum(size) OVER (ORDER BY id) - size AS before FROM redrive_letter
         WHERE id = ANY(%(letters)b::bigint[]) AND state = 'parked' AND origin_id IS NULL AND id > %(above)b) l
  JOIN redrive_payload p ON p.letter_id = l.id
 WHERE l.before < 16777216
 ORDER BY l.id
"""

# The lane of a letter's key; without a key, one of its own.
KEY_HASH: Final[LiteralString] = "coalesce(l.key_hash, sha256(convert_to('released ' || l.message_id, 'UTF8')))"

# Letters of no lane yet (their place was not known) come to a lane of their own.
_LANES = f"""
INSERT INTO redrive_lane (dlq_id, origin_id, key_hash, single, phase)
SELECT DISTINCT l.dlq_id, l.origin_id, {KEY_HASH}, l.key_hash IS NULL OR l.single, 'idle'
  FROM redrive_letter l
 WHERE l.id = ANY(%(letters)b::bigint[]) AND l.state = 'parked' AND l.lane_id IS NULL AND l.origin_id IS NOT NULL
ON CONFLICT (dlq_id, origin_id, key_hash) DO NOTHING
"""  # noqa: S608  # the inserted text is a constant

_SETTLE_DOWN = f"""
UPDATE redrive_letter l
   SET lane_id = n.id, planned = true, sequence = coalesce(l.sequence, ''), single = n.single, key_hash = n.key_hash
  FROM redrive_lane n
 WHERE l.id = ANY(%(letters)b::bigint[]) AND l.state = 'parked' AND l.lane_id IS NULL AND n.dlq_id = l.dlq_id
   AND n.origin_id = l.origin_id AND n.key_hash = {KEY_HASH}
"""  # noqa: S608  # as above

_LOCK_LANES = """
SELECT n.id AS lane_id FROM redrive_lane n
 WHERE n.id IN (SELECT lane_id FROM redrive_letter WHERE id = ANY(%(letters)b::bigint[]))
 ORDER BY n.id FOR UPDATE
"""

# What is FIFO orders by a group that the letter has to bring along; tasks and events are what some targets take alone.
_ASK = """
SELECT l.id AS letter_id, l.lane_id, l.reason, l.target_id,
       CASE WHEN l.state <> %(state)b::text THEN 'it is no longer ' || %(state)b::text || ': it is ' || l.state
            WHEN l.lane_id IS NULL AND %(need_lane)b::bool
            THEN 'the queue it goes back to is not known; name it as an origin of ' || d.name
                 || ', on its page in the admin or with manage.py add_dlq ' || d.name || ' --origin URL --confirm'
                 || coalesce('; it failed in ' || nullif(p.system ->> 'DeadLetterQueueSourceArn', ''),
                             '; ' || nullif(l.detail, ''), '')
            WHEN t.id IS NULL AND o.removed_at IS NOT NULL AND %(need_lane)b::bool
            THEN 'its origin was removed; add it again: manage.py add_dlq ' || d.name || ' --origin '
                 || o.arn || ' --confirm'
            WHEN t.fifo AND NOT coalesce(p.system ? 'MessageGroupId', false)
            THEN 'the other target is FIFO, and the letter has no message group to be ordered by there'
            WHEN t.kind IN ('celery', 'bus') AND h.kind IS DISTINCT FROM t.kind
            THEN 'the other target takes ' || CASE t.kind WHEN 'bus' THEN 'events' ELSE 'tasks' END
                 || ' alone, and the letter was sent to something else'
            ELSE '' END AS refusal
  FROM redrive_letter l JOIN redrive_dlq d ON d.id = l.dlq_id LEFT JOIN redrive_payload p ON p.letter_id = l.id
  LEFT JOIN redrive_origin o ON o.id = l.origin_id LEFT JOIN redrive_target h ON h.id = o.target_id
  LEFT JOIN redrive_target t ON t.id = %(target)b::bigint
 WHERE l.id = ANY(%(letters)b::bigint[]) ORDER BY l.id FOR UPDATE OF l
"""

# A run that is being ended at this moment is waited for, and then it is none.
_LOCK_RUNS = """
SELECT r.id AS dlq_id FROM redrive_run r
 WHERE r.state IN ('running', 'paused') AND r.dlq_id IN (
        SELECT dlq_id FROM redrive_letter WHERE id = ANY(%(letters)b::bigint[]))
 ORDER BY r.id FOR SHARE
"""

_IDLE_DLQS = """
SELECT DISTINCT l.dlq_id FROM redrive_letter l
 WHERE l.id = ANY(%(letters)b::bigint[])
   AND NOT EXISTS (SELECT FROM redrive_run r WHERE r.id = l.run_id AND r.state = 'paused')
   AND NOT EXISTS (SELECT FROM redrive_run r WHERE r.dlq_id = l.dlq_id AND r.state = 'running')
"""

# A letter whose run has ended goes to the dlq's newest running one; in one that is paused it waits with the others.
# Where a person named a target, no rule is asked: until somebody releases it without one. A time that a person said is
# not a rule's delay, which ends with the rule.
_RELEASE = f"""
UPDATE redrive_letter l
   SET state = 'waiting', reason = '', detail = '', objection = '', due_at = %(due)b::timestamptz, finished_at = NULL,
       released_by = %(by)b, forgiven = l.attempts, spared = 0,
       target_id = CASE WHEN %(target)b::bigint IS NOT NULL THEN %(target)b::bigint
                        WHEN l.route_version = {BY_HAND}
                        THEN coalesce((SELECT o.target_id FROM redrive_origin o WHERE o.id = l.origin_id), l.target_id)
                        ELSE l.target_id END,
       route_version = CASE WHEN %(target)b::bigint IS NOT NULL THEN {BY_HAND}
                            WHEN l.route_version = {BY_HAND} THEN 0 ELSE l.route_version END,
       rule_id = CASE WHEN %(target)b::bigint IS NOT NULL THEN NULL ELSE l.rule_id END,
       rate_class_id = CASE WHEN %(target)b::bigint IS NOT NULL THEN NULL ELSE l.rate_class_id END,
       route = CASE WHEN %(target)b::bigint IS NOT NULL OR (%(due)b::timestamptz IS NOT NULL AND l.route = 'delay')
                    THEN 'replay' ELSE l.route END,
       run_id = coalesce((SELECT r.id FROM redrive_run r WHERE r.id = l.run_id AND r.state IN ('running', 'paused')),
                         (SELECT r.id FROM redrive_run r WHERE r.dlq_id = l.dlq_id AND r.state = 'running'
                           ORDER BY r.id DESC LIMIT 1), l.run_id)
 WHERE l.id = ANY(%(letters)b::bigint[]) AND l.state = 'parked' AND l.lane_id IS NOT NULL
RETURNING l.lane_id
"""  # noqa: S608  # the inserted text is a constant

_DISCARD = """
WITH moved AS (
    UPDATE redrive_letter l
       SET state = 'discarded', reason = '', finished_at = redrive_now(), due_at = NULL
     WHERE l.id = ANY(%(letters)b::bigint[]) AND l.state = 'parked'
    RETURNING l.id, l.lane_id, l.dlq_id, l.target_id, l.idempotency_key, l.body_hash
), claims AS (
    INSERT INTO redrive_claim AS c (target_id, key_space, key_hash, letter_id, state, body_hash)
    SELECT DISTINCT ON (target_id, dlq_id, idempotency_key) target_id, dlq_id::text,
           sha256(convert_to(idempotency_key, 'UTF8')), id, 'discarded', body_hash
      FROM moved WHERE idempotency_key IS NOT NULL AND target_id IS NOT NULL
     ORDER BY target_id, dlq_id, idempotency_key, id
    ON CONFLICT (target_id, key_space, key_hash) DO UPDATE
       SET state = 'discarded', letter_id = excluded.letter_id, body_hash = excluded.body_hash
     WHERE c.state = 'free' OR (c.state = 'held' AND c.letter_id = excluded.letter_id)
)
SELECT DISTINCT lane_id FROM moved WHERE lane_id IS NOT NULL
"""

# Or what was parked is none any more: its message has been seen again. Where neither is so, a rule holds the lane.
_HELD = """
SELECT n.id AS lane_id FROM redrive_lane n JOIN redrive_dlq d ON d.id = n.dlq_id
 WHERE n.dlq_id = %(dlq)b AND n.phase = 'held'
   AND CASE WHEN EXISTS (SELECT FROM redrive_letter p WHERE p.lane_id = n.id AND p.state = 'parked')
            THEN d.parked_head <> 'hold'
            ELSE NOT EXISTS (SELECT FROM redrive_letter l WHERE l.lane_id = n.id AND l.route IN ('hold', 'erred')
                                AND l.state IN ('waiting', 'sending', 'awaiting') AND NOT l.lets_pass) END
 ORDER BY n.id
"""

_RECORD = """
INSERT INTO redrive_review (act, letter_id, dlq_id, by, reason, at, before, after, operation_id)
SELECT %(act)b, l.id, l.dlq_id, %(by)b, %(reason)b, redrive_now(),
       jsonb_build_object('state', %(was)b::text)
       || CASE WHEN a.reason = '' THEN '{}'::jsonb ELSE jsonb_build_object('reason', a.reason) END
       || CASE WHEN a.target_id IS NOT DISTINCT FROM l.target_id THEN '{}'::jsonb
               ELSE jsonb_build_object('target', (SELECT arn FROM redrive_target WHERE id = a.target_id)) END,
       jsonb_build_object('state', l.state)
       || CASE WHEN l.reason = '' THEN '{}'::jsonb ELSE jsonb_build_object('reason', l.reason) END
       || CASE WHEN a.target_id IS NOT DISTINCT FROM l.target_id THEN '{}'::jsonb
               ELSE jsonb_build_object('target', (SELECT arn FROM redrive_target WHERE id = l.target_id)) END
       || CASE WHEN l.due_at IS NULL THEN '{}'::jsonb ELSE jsonb_build_object('due', l.due_at) END,
       %(operation)b::bigint
  FROM unnest(%(letters)b::bigint[], %(reasons)b::text[], %(targets)b::bigint[]) AS a(letter_id, reason, target_id)
  JOIN redrive_letter l ON l.id = a.letter_id
 ORDER BY l.id
"""


@dataclass(frozen=True, slots=True)
class Nameless:
    """A parked letter whose origin was not known when it was captured. One may have been named since."""

    id: int
    dlq_id: int
    body: bytes
    attributes: bytes
    system: dict[str, Any]


def nameless(letters: Collection[int]) -> Iterator[list[Nameless]]:
    """Those of the letters whose origin is not known, some at a time."""
    values = {"letters": list(letters), "above": 0}
    while found := rows.fetch(Nameless, _NAMELESS, values):
        yield found
        values["above"] = found[-1].id


def lock(
    letters: Collection[int],
    *,
    need_lane: bool,
    state: LetterState = LetterState.PARKED,
    target: int | None = None,
) -> list[Asked]:
    """Lock these letters, their lanes first; which can be moved, and why others cannot.

    Args:
        letters: ids.
        need_lane: they go back to their lanes.
        state: where they are to be moved from.
        target: where they are to go instead; None: where they would go.
    """
    values = {"letters": list(letters), "need_lane": need_lane, "state": state.value, "target": target}
    if need_lane:
        rows.execute(_LANES, values)
        rows.execute(_SETTLE_DOWN, values)
    rows.execute(_LOCK_LANES, values)
    return rows.fetch(Asked, _ASK, values)


def release(letters: Sequence[int], *, by: str, due: datetime | None = None, target: int | None = None) -> set[int]:
    """Parked letters wait again on their lanes, whose ids are returned; until `due`, for `target`, where that is said.

    One that goes where a person said is asked about by no rule.
    """
    values = {"letters": list(letters), "by": by, "due": due, "target": target}
    touched = set(rows.column(int, _RELEASE, values))
    failure_groups.replayed(letters)
    return touched


def without_run(letters: Sequence[int]) -> list[int]:
    """The dlqs of these letters that have no run for them; those that they have stay as they are until the commit."""
    rows.execute(_LOCK_RUNS, {"letters": list(letters)})
    return rows.column(int, _IDLE_DLQS, {"letters": list(letters)})


def discard(letters: Sequence[int]) -> set[int]:
    """Parked letters are given up, and so are their keys; the ids of their lanes."""
    return set(rows.column(int, _DISCARD, {"letters": list(letters)}))


def let_go(dlq: int) -> None:
    """Lanes that are held behind parked letters go on where the dlq's policy holds none any more, or none is parked.

    In transactions of its own: its caller has locked no row of the dlq, which those who lock lanes first wait for.
    """
    held = rows.column(int, _HELD, {"dlq": dlq})
    for first in range(0, len(held), _GROUP):
        rows.whole(partial(_go_on, held[first : first + _GROUP]))


def _go_on(some: list[int]) -> None:
    lanes.lock(some, [None] * len(some))
    lanes.advance(some, [None] * len(some))


def record(  # noqa: PLR0913  # each by its name
    asked: Sequence[Asked], act: Act, *, was: LetterState, by: str, reason: str, operation: int | None = None
) -> None:
    """Who did it, why, and what each letter was before; as part of which operation."""
    values = {
        "letters": [one.letter_id for one in asked],
        "reasons": [one.reason for one in asked],
        "targets": [one.target_id for one in asked],
        "act": act.value,
        "was": was.value,
        "by": by,
        "reason": reason,
        "operation": operation,
    }
    rows.execute(_RECORD, values)
