"""Pause a run by the service's own decision: store the reason, an audit log entry and an incident."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, LiteralString

from reprocessing.store import rows
from reprocessing.store.notifications.run_events import announce_stopped

#: The name under which the service pauses a run.
THE_SERVICE: Final[LiteralString] = "the service"

_PAUSE: Final[LiteralString] = """
WITH paused AS (
    UPDATE redrive_run SET state = 'paused', stopped_by = %(by)b::text, why = %(why)b::text, changed_at = redrive_now()
     WHERE id = %(run)b AND state = 'running' RETURNING id, dlq_id, name
), noted AS (
    INSERT INTO redrive_audit_entry (act, run_id, dlq_id, by, reason, at, before, after)
    SELECT 'paused', id, dlq_id, %(by)b::text, %(why)b::text, redrive_now(), '{"state": "running"}',
           '{"state": "paused"}'
      FROM paused
)
SELECT p.id AS run_id, p.name, %(why)b::text AS why, p.dlq_id, d.name AS dlq
  FROM paused p JOIN redrive_dlq d ON d.id = p.dlq_id
"""


@dataclass(frozen=True, slots=True)
class PausedRun:
    """A run that the service has just paused."""

    run_id: int
    name: str
    why: str
    dlq_id: int
    dlq: str


def pause_run(run_id: int, why: str, *, public_why: str | None = None) -> PausedRun | None:
    """Pause a running run, in the caller's transaction; return None if the run is not running any more.

    `why`: the reason on the run's page; it may quote a target's answer. `public_why`: the reason in notifications,
    which must not quote a target's answer; None: `why`.
    """
    paused = rows.first(PausedRun, _PAUSE, {"run": run_id, "by": THE_SERVICE, "why": why})
    if paused:
        announce_stopped(
            paused.run_id, paused.name, dlq_id=paused.dlq_id, dlq=paused.dlq,
            why=why if public_why is None else public_why,
        )  # fmt: skip
    return paused
