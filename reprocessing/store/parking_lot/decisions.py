"""Release and discard parked letters, with audit log entries."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final, LiteralString

from reprocessing.domain.lifecycle import LetterState
from reprocessing.models.audit import AuditAct
from reprocessing.store import rows
from reprocessing.store.ordering import lane_state, lanes
from reprocessing.store.parking_lot import failure_groups
from reprocessing.store.routing.routing_decisions import BY_HAND

#: Highest number of lanes in one transaction.
_GROUP = 500


@dataclass(frozen=True, slots=True)
class LockedLetter:
    """A locked letter that a person wants to release, discard or restore.

    Attributes:
        refusal: why the release, discard or restore is not possible; empty: it is possible.
        reason, target_id, run_id: the parking reason, the target and the run before the change.
        finished_at: when the letter was parked or discarded.
    """

    letter_id: int
    dlq_id: int
    lane_id: int | None
    reason: str
    target_id: int | None
    run_id: int | None
    finished_at: datetime | None
    refusal: str


# Finds the lane of a letter's ordering key; each letter without a key has a separate lane.
LANE_KEY_HASH: Final[LiteralString] = "coalesce(l.key_hash, sha256(convert_to('released ' || l.message_id, 'UTF8')))"

# True of a letter l whose payload can never be decrypted: it gets no lane, because it cannot be sent. It was decrypted
# just now (`readable`) if its bytes were restored from a backup.
_LOST: Final[LiteralString] = (
    "(l.reason = 'payload_lost' AND l.key_hash IS NULL AND l.id <> ALL(%(readable)b::bigint[]))"
)

# Creates the lanes of parked letters that have none.
_LANES = f"""
INSERT INTO redrive_lane (dlq_id, source_id, key_hash, single, phase)
SELECT DISTINCT l.dlq_id, l.source_id, {LANE_KEY_HASH}, l.key_hash IS NULL OR l.single, 'idle'
  FROM redrive_letter l
 WHERE l.id = ANY(%(letters)b::bigint[]) AND l.state = 'parked' AND l.lane_id IS NULL AND l.source_id IS NOT NULL
   AND NOT {_LOST}
ON CONFLICT (dlq_id, source_id, key_hash) DO NOTHING
"""  # noqa: S608  # the inserted text is a constant

_SETTLE_DOWN = f"""
UPDATE redrive_letter l
   SET lane_id = n.id, planned = true, sequence = coalesce(l.sequence, ''), single = n.single, key_hash = n.key_hash
  FROM redrive_lane n
 WHERE l.id = ANY(%(letters)b::bigint[]) AND l.state = 'parked' AND l.lane_id IS NULL AND n.dlq_id = l.dlq_id
   AND n.source_id = l.source_id AND n.key_hash = {LANE_KEY_HASH} AND NOT {_LOST}
"""  # noqa: S608  # as above

_LOCK_LANES = """
SELECT n.id AS lane_id FROM redrive_lane n
 WHERE n.id IN (SELECT lane_id FROM redrive_letter WHERE id = ANY(%(letters)b::bigint[]))
 ORDER BY n.id FOR UPDATE
"""

# Returns why a letter cannot be released, discarded or restored. A FIFO target needs a message group; some targets
# accept only tasks or events.
_ASK = f"""
SELECT l.id AS letter_id, l.dlq_id, l.lane_id, l.reason, l.target_id, l.run_id, l.finished_at,
       CASE WHEN l.state <> %(state)b::text THEN 'it is no longer ' || %(state)b::text || ': it is ' || l.state
            WHEN l.body_deleted_at IS NOT NULL
            THEN 'its body was deleted on ' || to_char(l.body_deleted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')
                 || ', because ' || d.name || ' keeps bodies for fewer days than history'
            WHEN l.lane_id IS NULL AND {_LOST} AND %(need_lane)b::bool
            THEN 'its payload cannot be decrypted, so it cannot be sent; restore it from a backup, or discard it'
            WHEN l.lane_id IS NULL AND %(need_lane)b::bool
            THEN 'its source queue is not known; add the queue to ' || d.name
                 || ', on its page in the admin or with manage.py add_dlq ' || d.name || ' --source URL --confirm'
                 || coalesce('; it failed in ' || nullif(p.system ->> 'DeadLetterQueueSourceArn', ''),
                             '; ' || nullif(l.detail, ''), '')
            WHEN t.id IS NULL AND o.removed_at IS NOT NULL AND %(need_lane)b::bool
            THEN 'its source was removed; add it again: manage.py add_dlq ' || d.name || ' --source '
                 || o.arn || ' --confirm'
            WHEN t.fifo AND NOT coalesce(p.system ? 'MessageGroupId', false)
            THEN 'the other target is FIFO, and the message has no message group'
            WHEN t.kind IN ('celery', 'bus') AND h.kind IS DISTINCT FROM t.kind
            THEN 'the other target accepts only ' || CASE t.kind WHEN 'bus' THEN 'events' ELSE 'tasks' END
                 || ', and the message was sent to something else'
            ELSE '' END AS refusal
  FROM redrive_letter l JOIN redrive_dlq d ON d.id = l.dlq_id LEFT JOIN redrive_payload p ON p.letter_id = l.id
  LEFT JOIN redrive_source o ON o.id = l.source_id LEFT JOIN redrive_target h ON h.id = o.target_id
  LEFT JOIN redrive_target t ON t.id = %(target)b::bigint
 WHERE l.id = ANY(%(letters)b::bigint[]) ORDER BY l.id FOR UPDATE OF l
"""  # noqa: S608  # as above

# Locks active runs. If a run is ending at this moment, the statement waits until the run has ended.
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

# A letter of an ended run goes to the DLQ's newest running run. If a person gave a target, rules do not decide about
# the letter until it is released without a target. A time given by a person replaces the delay of a rule.
_RELEASE = f"""
UPDATE redrive_letter l
   SET state = 'waiting', reason = '', detail = '', blocked_reason = '', due_at = %(due)b::timestamptz,
          finished_at = NULL,
       released_by = %(by)b, attempts_before_release = l.attempts, spared = 0,
       target_id = CASE WHEN %(target)b::bigint IS NOT NULL THEN %(target)b::bigint
                        WHEN l.rulebook_version = {BY_HAND}
                        THEN coalesce((SELECT o.target_id FROM redrive_source o WHERE o.id = l.source_id), l.target_id)
                        ELSE l.target_id END,
       rulebook_version = CASE WHEN %(target)b::bigint IS NOT NULL THEN {BY_HAND}
                            WHEN l.rulebook_version = {BY_HAND} THEN 0 ELSE l.rulebook_version END,
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
       SET state = 'discarded', reason = '', finished_at = redrive_now(), due_at = NULL, blocked_reason = ''
     WHERE l.id = ANY(%(letters)b::bigint[]) AND l.state = ANY(%(states)b::text[])
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

# Lanes that were held by a parked letter, and may continue. If a lane has no parked letter, either a rule holds it, or
# its letter is no longer parked.
_HELD = """
SELECT n.id AS lane_id FROM redrive_lane n JOIN redrive_dlq d ON d.id = n.dlq_id
 WHERE n.dlq_id = %(dlq)b AND n.phase = 'held'
   AND CASE WHEN EXISTS (SELECT FROM redrive_letter p WHERE p.lane_id = n.id AND p.state = 'parked')
            THEN d.when_parked <> 'hold'
            ELSE NOT EXISTS (SELECT FROM redrive_letter l WHERE l.lane_id = n.id AND l.route IN ('hold', 'erred')
                                AND l.state IN ('waiting', 'sending', 'awaiting') AND NOT l.frees_lane) END
 ORDER BY n.id
"""

_RECORD = """
INSERT INTO redrive_audit_entry (act, letter_id, dlq_id, by, reason, at, before, after, operation_id)
SELECT %(act)b, l.id, l.dlq_id, %(by)b, %(reason)b, redrive_now(),
       jsonb_build_object('state', %(was)b::text)
       || CASE WHEN a.reason = '' THEN '{}'::jsonb ELSE jsonb_build_object('reason', a.reason) END
       || CASE WHEN a.reason = '' OR a.finished_at IS NOT DISTINCT FROM l.finished_at THEN '{}'::jsonb
               ELSE jsonb_build_object('parked_at', a.finished_at) END
       || CASE WHEN a.target_id IS NOT DISTINCT FROM l.target_id THEN '{}'::jsonb
               ELSE jsonb_build_object('target', (SELECT arn FROM redrive_target WHERE id = a.target_id)) END,
       jsonb_build_object('state', l.state)
       || CASE WHEN l.reason = '' THEN '{}'::jsonb ELSE jsonb_build_object('reason', l.reason) END
       || CASE WHEN a.target_id IS NOT DISTINCT FROM l.target_id THEN '{}'::jsonb
               ELSE jsonb_build_object('target', (SELECT arn FROM redrive_target WHERE id = l.target_id)) END
       || CASE WHEN l.due_at IS NULL THEN '{}'::jsonb ELSE jsonb_build_object('due', l.due_at) END,
       %(operation)b::bigint
  FROM unnest(%(letters)b::bigint[], %(reasons)b::text[], %(targets)b::bigint[],
              %(finished)b::timestamptz[]) AS a(letter_id, reason, target_id, finished_at)
  JOIN redrive_letter l ON l.id = a.letter_id
 ORDER BY l.id
"""


def lock_letters(
    letters: Collection[int], *, need_lane: bool, state: LetterState = LetterState.PARKED, target: int | None = None,
    readable: Collection[int] = (),
) -> list[LockedLetter]:  # fmt: skip
    """Lock letters and their lanes; return each letter, with the reason if the person's decision is not possible.

    `need_lane`: the letters will be queued, so each of them must have a lane. `state`: the state that the letters must
    have. `target`: id of the target to which the letters will be sent; None: their target is unchanged. `readable`: ids
    of letters that the caller has just decrypted: they may be released, even if they were parked as `payload_lost`.
    """
    values = {
        "letters": list(letters), "need_lane": need_lane, "state": state.value, "target": target,
        "readable": list(readable),
    }  # fmt: skip
    if need_lane:
        rows.execute(_LANES, values)
        rows.execute(_SETTLE_DOWN, values)
    rows.execute(_LOCK_LANES, values)
    return rows.fetch(LockedLetter, _ASK, values)


def release_letters(
    letters: Sequence[int], *, by: str, due: datetime | None = None, target: int | None = None
) -> set[int]:
    """Queue parked letters again; return the ids of their lanes.

    `due`: when they may be sent; None: at once. `target`: id of another target; rules then do not decide about the
    letters. None: their target is unchanged.
    """
    values = {"letters": list(letters), "by": by, "due": due, "target": target}
    touched = set(rows.column(int, _RELEASE, values))
    failure_groups.record_release(letters)
    return touched


def dlqs_without_run(letters: Sequence[int]) -> list[int]:
    """Return the ids of the DLQs in which some of these letters would not be sent, because no run would send them.

    A letter is sent if a run of its DLQ is running, or if the letter's own run is paused and later resumes. The running
    and paused runs of the DLQs are locked until the commit, so that none ends meanwhile.
    """
    rows.execute(_LOCK_RUNS, {"letters": list(letters)})
    return rows.column(int, _IDLE_DLQS, {"letters": list(letters)})


def discard_letters(letters: Sequence[int], *, states: Sequence[str] = ("parked",)) -> set[int]:
    """Discard letters in these states, and mark their idempotency keys as discarded; return the ids of their lanes."""
    return set(rows.column(int, _DISCARD, {"letters": list(letters), "states": list(states)}))


def advance_held_lanes(dlq: int) -> None:
    """Continue the lanes of a DLQ that were held by a parked letter, and need not wait any more.

    A lane need not wait if the letter left the parking lot, or if the DLQ's setting `when_parked` is no longer hold.

    Lanes that a rule holds stay held. This function commits by itself. Do not call it with a lock on the DLQ's row,
    because other transactions lock lanes first: both would wait for each other.
    """
    held = rows.column(int, _HELD, {"dlq": dlq})
    for first in range(0, len(held), _GROUP):
        rows.in_transaction(partial(_advance_locked, held[first : first + _GROUP]))


def _advance_locked(some: list[int]) -> None:
    lanes.lock(some, [None] * len(some))
    lane_state.advance(some, [None] * len(some))


def record_decisions(  # noqa: PLR0913  # each by its name
    asked: Sequence[LockedLetter],
    act: AuditAct,
    *,
    was: LetterState,
    by: str,
    reason: str,
    operation: int | None = None,
) -> None:
    """Write an audit log entry for each letter, with the state that all the letters had before (`was`).

    `operation`: id of the bulk action; None: a person acted on single letters.
    """
    values = {
        "letters": [letter.letter_id for letter in asked], "reasons": [letter.reason for letter in asked],
        "targets": [letter.target_id for letter in asked],
        "finished": [letter.finished_at for letter in asked], "act": act.value, "was": was.value, "by": by,
        "reason": reason, "operation": operation,
    }  # fmt: skip
    rows.execute(_RECORD, values)
