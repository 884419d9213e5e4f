"""Close or open circuit breakers by hand. The same statement writes the audit log entry."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, Final, Literal

from reprocessing.models.safety import BreakerState
from reprocessing.store import rows
from reprocessing.store.notifications.breaker_events import OpenedBreaker, announce_opened, conclude_closed
from reprocessing.store.safety.breaker_status import OF_TARGETS, STATUS_COLUMNS, BreakerStatus

logger = logging.getLogger(__name__)

State = Literal["closed", "open", "half_open"]
_DID: Final = {"closed": "closed", "open": "opened", "half_open": "half opened"}

_RESET = f"""
WITH clock AS MATERIALIZED (
    SELECT redrive_now() AS now, %(state)b::text = 'closed' AS closes
), was AS (
    SELECT * FROM (SELECT {STATUS_COLUMNS} FROM redrive_breaker b {OF_TARGETS} FOR UPDATE OF b) b
     WHERE %(breaker)b::bigint IS NULL
        OR (b.breaker_id = %(breaker)b::bigint AND b.state = %(was)b::text AND b.epoch = %(epoch)b::bigint)
), moved AS (
    UPDATE redrive_breaker b
       SET state = %(state)b::text, epoch = b.epoch + 1, since = k.now, why = %(why)b::text, successes = 0,
           canary_until = NULL, failing_since = CASE WHEN NOT k.closes THEN b.failing_since END,
           current_cooldown = CASE WHEN k.closes THEN 0 ELSE b.cooldown END,
           retry_at = CASE WHEN %(state)b::text = 'open'
                           THEN k.now + make_interval(secs => coalesce(%(seconds)b::float8, b.cooldown)) END,
           ramp = CASE WHEN k.closes THEN b.ramp_from ELSE b.ramp END,
           ramp_failure_ratio = CASE WHEN k.closes THEN 0 ELSE b.ramp_failure_ratio END,
           ramp_at = CASE WHEN k.closes THEN k.now ELSE b.ramp_at END,
           ramp_reason = CASE WHEN k.closes THEN 'from its start: the breaker was closed by hand' ELSE b.ramp_reason END
      FROM clock k, was WHERE b.id = was.breaker_id RETURNING b.*
), noted AS (
    INSERT INTO redrive_audit_entry (act, target_id, by, reason, before, after)
    SELECT 'reset', w.target_id, %(by)b::text, %(reason)b::text,
           jsonb_build_object('breaker', w.name, 'state', w.state, 'since', w.since, 'why', w.why, 'epoch', w.epoch,
                              'retry_at', w.retry_at, 'ramp', w.ramp),
           jsonb_build_object('breaker', w.name, 'state', m.state, 'epoch', m.epoch, 'retry_at', m.retry_at,
                              'ramp', m.ramp)
      FROM was w JOIN moved m ON m.id = w.breaker_id ORDER BY w.breaker_id
)
SELECT w.breaker_id, w.target_id, w.name, w.rate_class, m.state, m.since, m.why, m.epoch, m.cooldown, m.retry_at,
       m.canary_until, m.ramp, m.ramp_reason, w.rate, w.class_rate
  FROM was w JOIN moved m ON m.id = w.breaker_id ORDER BY w.target_id, w.rate_class NULLS FIRST
"""  # noqa: S608  # the inserted texts are constants


def reset(  # noqa: PLR0913  # each by its name
    targets: Collection[int],
    *,
    to: Literal["closed", "open"],
    by: str,
    reason: str,
    seconds: float | None = None,
    rate_class: int | None = None,
) -> list[BreakerStatus]:
    """Close or open the circuit breakers of these targets, as a person requested; return their new states.

    `rate_class`: id of a rate class; only the breakers for its letters are changed. None: all breakers. If a breaker is
    closed, earlier outcomes no longer count, and its ramp-up restarts. If a breaker is opened, it stays open for
    `seconds` (None: for its cooldown). Then a canary, a single letter that tests the target, is sent.
    """
    which = {"targets": sorted(set(targets)), "class": rate_class, "breaker": None, "was": None, "epoch": None}
    return _reset(which, to, by, reason, seconds)


def reset_one(
    seen: BreakerStatus, *, to: State, by: str, reason: str, seconds: float | None = None
) -> BreakerStatus | None:
    """Set the state of one breaker, as a person requested; return the new state.

    None: the breaker changed after the person saw it (`seen`), so nothing was done. `to`: the new state. Half open
    means that only the next letter is sent, as a canary. `seconds`: how long an opened breaker stays open; None: for
    its cooldown.
    """
    it = {"breaker": seen.breaker_id, "was": seen.state, "epoch": seen.epoch}
    done = _reset({"targets": [seen.target_id], "class": None, **it}, to, by, reason, seconds)
    return done[0] if done else None


def _reset(which: Mapping[str, Any], to: State, by: str, reason: str, seconds: float | None) -> list[BreakerStatus]:
    why = f'{_DID[to]} by {by}: "{reason}"'
    values = {**which, "state": to, "by": by, "reason": reason, "seconds": seconds, "why": why}
    done = rows.in_transaction(partial(_move, values))
    for breaker in done:
        level = logging.WARNING if breaker.state == BreakerState.OPEN else logging.INFO
        logger.log(level, "The circuit breaker of %s was %s", breaker.name, why, extra={"target": breaker.name})
    return done


def _move(values: Mapping[str, Any]) -> list[BreakerStatus]:
    done = rows.fetch(BreakerStatus, _RESET, values)
    why = f"a person opened it: {values['by']}"
    announce_opened(
        [
            OpenedBreaker(breaker.breaker_id, breaker.name, why, values["seconds"] or breaker.cooldown)
            for breaker in done
            if breaker.state == BreakerState.OPEN
        ]
    )
    conclude_closed([breaker.breaker_id for breaker in done if breaker.state == BreakerState.CLOSED])
    return done
