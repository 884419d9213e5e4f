"""Commit attempts before their letters are sent (the intent), so that no send is forgotten after a crash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from reprocessing.models.rule import RULE_BACKOFF
from reprocessing.store import rows
from reprocessing.store.ordering.active_runs import ACTIVE_RUNS
from reprocessing.store.ordering.lane_head import first_letters
from reprocessing.store.payloads import content
from reprocessing.store.replay.settlement_effects import CLAIM_HAS_LAPSED, COPY_ENDS
from reprocessing.store.safety import send_limits
from reprocessing.store.safety.send_limits import ATTEMPTS_OF_WAVE, UNHEALTHY_TARGETS

# The parts of the statement (CTEs), in order:
# `mine`: lanes that the caller still leases, with enough time left.
# `wanted`: letters that are still the first of these lanes, with no rule changed since.
# `asked`, `admitted`: letters that breakers, waves and the limit of unsettled letters allow. A wave's size limits only
# letters that were not sent in the run before. A half-open breaker allows one letter, the canary.
# `claimed`: idempotency keys that these letters have reserved. A key of a finished letter is reserved only after a
# person's release. `CLAIM_HAS_LAPSED` reads a claim as it was when the statement began.
# With old statistics, the planner might use a wrong index. So the run is checked after the lanes are found, lanes are
# found by id, attempts by letter, and `holds_lane` is looked up for each lane.
# `l.lane_id + 0 = m.lane_id` is written so because no index fits `l.lane_id + 0`: the letter is found by its id. With
# `l.lane_id = m.lane_id` and old statistics, the planner would read the whole lane through the foreign key's index.
_INTENT = f"""
WITH mine AS (
    SELECT a.lane_id, a.letter_id, n.fence, n.run_id,
           extract(epoch FROM n.due_at - redrive_now())::float8 AS lease_left
      FROM unnest(%(lanes)b::bigint[], %(fences)b::bigint[], %(letters)b::bigint[]) AS a(lane_id, fence, letter_id)
      JOIN redrive_lane n ON n.id = a.lane_id
     WHERE n.fence = a.fence AND n.phase || '' = 'leased'
       AND n.stopped_at IS NULL
       AND n.due_at > redrive_now() + make_interval(secs => %(margin)b::float8)
     ORDER BY n.id FOR UPDATE OF n
), wanted AS (
    SELECT m.fence, m.lease_left, l.* FROM mine m JOIN redrive_letter l ON l.id = m.letter_id
     WHERE l.state = 'waiting' AND l.lane_id + 0 = m.lane_id AND l.blocked_reason <> 'moved_by_aws'
       AND l.id = (SELECT h.id FROM {first_letters("h", "m.lane_id")})
       AND (SELECT a.id FROM redrive_attempt a WHERE a.lane_id = m.lane_id AND a.holds_lane) IS NULL
       AND m.run_id IN ({ACTIVE_RUNS}) AND l.target_id NOT IN ({UNHEALTHY_TARGETS})
       AND coalesce((SELECT version FROM redrive_rulebook WHERE id = 1), 0) <= %(book)b::bigint
     ORDER BY l.id FOR UPDATE OF l
), asked AS (
    SELECT w.*, b.id AS breaker_id, b.state AS breaker_state, b.epoch AS breaker_epoch,
           v.id AS wave_id, v.size AS wave_size, v.id IS NOT NULL AND (
                w.attempts + w.not_sent = w.earlier OR NOT EXISTS (
                    SELECT FROM redrive_attempt a
                     WHERE a.letter_id = w.id AND a.run_id IS NOT DISTINCT FROM w.run_id)) AS fresh,
           row_number() OVER (PARTITION BY b.id ORDER BY w.id) AS of_breaker,
           row_number() OVER (PARTITION BY w.target_id ORDER BY w.id) AS of_target
      FROM wanted w
      JOIN redrive_breaker b ON b.target_id = w.target_id AND b.rate_class_id IS NOT DISTINCT FROM w.rate_class_id
      LEFT JOIN redrive_wave v ON v.run_id = w.run_id AND v.settled_at IS NULL
     WHERE b.state = 'closed' OR b.retry_at <= redrive_now()
        OR (b.state = 'half_open' AND (b.canary_until IS NULL OR b.canary_until <= redrive_now()))
), rooms AS MATERIALIZED (
    SELECT t.id AS target_id, CASE WHEN t.proof <> 'accepted' THEN %(most)b::int - (
                SELECT count(*) FROM redrive_attempt a WHERE a.target_id = t.id AND a.closed_at IS NULL) END AS room
      FROM redrive_target t WHERE t.id IN (SELECT target_id FROM asked)
), waves AS MATERIALIZED (
    SELECT w.id, w.size - (SELECT count(*) FROM ({ATTEMPTS_OF_WAVE}) counted) AS room
      FROM redrive_wave w WHERE w.size IS NOT NULL AND w.id IN (SELECT wave_id FROM asked)
), admitted AS (
    SELECT * FROM (
        SELECT a.*, v.room AS wave_room, row_number() OVER (PARTITION BY a.wave_id, a.fresh ORDER BY a.id) AS of_wave
          FROM asked a JOIN rooms r USING (target_id) LEFT JOIN waves v ON v.id = a.wave_id
         WHERE (r.room IS NULL OR a.of_target <= r.room) AND (a.breaker_state = 'closed' OR a.of_breaker = 1)) a
     WHERE NOT a.fresh OR a.wave_room IS NULL OR a.of_wave <= a.wave_room
), claimed AS (
    INSERT INTO redrive_claim AS c (target_id, key_space, key_hash, letter_id, state, body_hash, until)
    SELECT DISTINCT ON (target_id, dlq_id, idempotency_key) target_id, dlq_id::text,
           sha256(convert_to(idempotency_key, 'UTF8')), id, 'held', body_hash,
           redrive_now() + make_interval(secs => %(hold)b::float8)
      FROM admitted WHERE idempotency_key IS NOT NULL
     ORDER BY target_id, dlq_id, idempotency_key, first_sent_at, id
    ON CONFLICT (target_id, key_space, key_hash) DO UPDATE
       SET letter_id = excluded.letter_id, state = 'held', body_hash = excluded.body_hash, until = excluded.until
     WHERE c.state = 'free' OR c.letter_id = excluded.letter_id
        OR ({CLAIM_HAS_LAPSED} AND c.until = (SELECT seen.until FROM redrive_claim seen
                                     WHERE (seen.target_id, seen.key_space, seen.key_hash)
                                         = (c.target_id, c.key_space, c.key_hash)))
        OR (c.state <> 'held' AND coalesce(c.until <= redrive_now(), true) AND EXISTS (
                SELECT FROM admitted w WHERE w.id = excluded.letter_id AND w.released_by IS NOT NULL))
    RETURNING c.letter_id
), ready AS (
    SELECT * FROM admitted
     WHERE idempotency_key IS NULL OR EXISTS (SELECT FROM claimed WHERE claimed.letter_id = admitted.id)
), canaries AS (
    UPDATE redrive_breaker b
       SET state = 'half_open', epoch = b.epoch + 1, retry_at = NULL,
           canary_until = redrive_now() + make_interval(secs => %(canary)b::float8),
           since = CASE b.state WHEN 'open' THEN redrive_now() ELSE b.since END
      FROM ready r
     WHERE b.id = r.breaker_id AND r.breaker_state <> 'closed'
       AND (b.retry_at <= redrive_now()
            OR (b.state = 'half_open' AND (b.canary_until IS NULL OR b.canary_until <= redrive_now())))
    RETURNING r.id AS letter_id, b.epoch
), moved AS (
    UPDATE redrive_letter l SET state = 'sending', attempts = l.attempts + 1, due_at = NULL,
           route = CASE l.route WHEN 'delay' THEN 'replay' ELSE l.route END
      FROM ready r LEFT JOIN canaries k ON k.letter_id = r.id
     WHERE l.id = r.id AND l.state = 'waiting' AND (r.breaker_state = 'closed' OR k.letter_id IS NOT NULL)
    RETURNING l.id, l.lane_id, l.target_id, l.run_id, l.attempts, l.attempts_before_release, l.spared, l.not_sent,
           l.epoch, l.sequence,
              l.public_id, l.message_id, l.idempotency_key, l.dlq_id, l.source_id, l.rule_id, l.rate_class_id,
              l.released_by IS NOT NULL AS released, l.revision_id,
              r.fence, r.lease_left, r.breaker_id, coalesce(k.epoch, r.breaker_epoch) AS breaker_epoch,
              CASE WHEN r.fresh THEN r.wave_id END AS wave_id, r.wave_size
), opened AS (
    INSERT INTO redrive_attempt (letter_id, lane_id, target_id, run_id, no, epoch, fence, opened_at, holds_lane,
                                 breaker_id, breaker_epoch, wave_id)
    SELECT id, lane_id, target_id, run_id, attempts + not_sent, epoch, fence, redrive_now(), true,
           breaker_id, breaker_epoch, wave_id
      FROM moved ORDER BY id RETURNING id, letter_id, no, opened_at
)
SELECT o.id AS attempt_id, o.no, o.opened_at, m.id AS letter_id, m.lane_id, m.fence, m.target_id, m.dlq_id,
       m.attempts - m.attempts_before_release - m.spared AS attempts, m.attempts - m.attempts_before_release AS tries,
       w.kind = 'automatic' AS is_automatic, w.waits_for_outcomes, m.not_sent, m.epoch, m.sequence, m.public_id,
       m.message_id,
       m.idempotency_key, m.released, coalesce(v.body, p.body, '') AS body, p.letter_id IS NULL AS bare,
       coalesce(v.attributes, p.attributes, '{{}}') AS attributes, coalesce(p.system, '{{}}') AS system,
       g.arn AS source_arn, m.run_id, m.breaker_id,
       m.wave_id, m.wave_size, m.lease_left, m.attempts + m.not_sent > 1 AND EXISTS (
            SELECT FROM redrive_attempt a JOIN redrive_target t ON t.id = a.target_id
             WHERE a.letter_id = m.id AND a.id <> o.id AND a.outcome = 'unknown' AND a.returned_at IS NULL
               AND {COPY_ENDS} > redrive_now()) AS unsure,
       {RULE_BACKOFF}
  FROM opened o JOIN moved m ON m.id = o.letter_id LEFT JOIN redrive_payload p ON p.letter_id = m.id
  LEFT JOIN redrive_revision v ON v.id = m.revision_id
  LEFT JOIN redrive_source g ON g.id = m.source_id
  LEFT JOIN redrive_run w ON w.id = m.run_id
  LEFT JOIN redrive_rule u ON u.id = m.rule_id LEFT JOIN redrive_rate_class c ON c.id = m.rate_class_id
 ORDER BY o.id
"""  # noqa: S608  # the inserted text is a constant


@dataclass(frozen=True, slots=True)
class IntendedSend:
    """A letter that the caller sends now, with its attempt, which is already committed."""

    attempt_id: int
    no: int
    opened_at: datetime
    letter_id: int
    lane_id: int
    fence: int
    target_id: int
    dlq_id: int
    attempts: int  #: attempts that count against `max_attempts`; `tries`: all since a person released the letter
    tries: int
    is_automatic: bool | None  #: whether the run is automatic
    not_sent: int
    epoch: int
    sequence: str
    public_id: UUID
    message_id: str
    idempotency_key: str | None
    released: bool
    body: bytes
    attributes: bytes
    system: dict[str, Any]
    bare: bool  #: the payload was deleted
    source_arn: str | None
    run_id: int | None
    breaker_id: int
    wave_id: int | None
    wave_size: int | None  #: size of the run's open wave; None: no limit
    lease_left: float  #: seconds until the lane's lease ends
    unsure: bool  #: the result of an earlier attempt is unknown: a copy may still be in its target
    backoff_base: float | None
    backoff_cap: float | None
    backoff_jitter: str | None
    waits_for_outcomes: bool | None = None  #: false: a lane's next letter is sent when the last is accepted
    unreadable: str = ""  #: why the payload cannot be decrypted, so that it is not sent; empty: it can


def intend(  # noqa: PLR0913  # each by its name
    lanes: Sequence[int],
    fences: Sequence[int],
    letters: Sequence[int],
    *,
    margin: float,
    hold: float,
    canary: float | None = None,
    most: int = 2**31 - 1,
    book: int = 2**63 - 1,
) -> list[IntendedSend]:
    """Commit attempts for the first letters of these lanes, before they are sent; return the letters to send.

    A letter is left out if its lane, claim or run changed, or if it is not the first of its lane any more. It is also
    left out if a circuit breaker, a wave or stopped sends forbid to send it.

    `margin`: seconds that each lease must still last. `hold`: seconds for which an idempotency key is claimed.
    `canary`: seconds without an outcome after which another canary may be sent; None: four times `hold`. `most`:
    highest number of letters that await their outcome at one target; no limit for targets with outcome `accepted`.
    `book`: the version of the rules that decided about the letters; if there is a newer version, nothing is sent.
    """
    values = {
        "lanes": list(lanes), "fences": list(fences), "letters": list(letters), "margin": margin, "hold": hold,
        "canary": 4 * hold if canary is None else canary, "most": most, "book": book,
    }  # fmt: skip

    def commit() -> list[IntendedSend]:
        send_limits.lock_for_intent(letters, lanes, fences)
        return rows.fetch(IntendedSend, _INTENT, values)

    return _opened(rows.in_transaction(commit))


def _opened(intended: list[IntendedSend]) -> list[IntendedSend]:
    """Return the letters with their payloads decrypted. Call it after the commit, because AWS KMS may be called."""
    readable, problems = content.opened_or_why(intended)
    if not problems:
        return readable
    opened = {attempt.attempt_id: attempt for attempt in readable}
    return [
        opened.get(attempt.attempt_id) or replace(attempt, unreadable=problems[attempt.message_id])
        for attempt in intended
    ]
