"""Pause a run in the service's own name, with its reason and its entry in the audit log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, LiteralString

from reprocessing.models import rows

#: Who paused a run that no person paused.
THE_SERVICE: Final[LiteralString] = "the service"

_PAUSE: Final[LiteralString] = """
WITH paused AS (
    UPDATE redrive_run SET state = 'paused', stopped_by = %(by)b::text, why = %(why)b::text, changed_at = redrive_now()
     WHERE id = %(run)b AND state = 'running' RETURNING id, dlq_id, name
), noted AS (
    INSERT INTO redrive_review (act, run_id, dlq_id, by, reason, at, before, after)
    SELECT 'paused', id, dlq_id, %(by)b::text, %(why)b::text, redrive_now(), '{"state": "running"}',
           '{"state": "paused"}'
      FROM paused
)
SELECT id AS run_id, name, %(why)b::text AS why FROM paused
"""


@dataclass(frozen=True, slots=True)
class PausedRun:
    """A run that the service has just paused."""

    run_id: int
    name: str
    why: str


def pause_run(run_id: int, why: str) -> PausedRun | None:
    """Pause a running run; None when it does not run any more. In a transaction of the caller's."""
    found = rows.fetch(PausedRun, _PAUSE, {"run": run_id, "by": THE_SERVICE, "why": why})
    return found[0] if found else None
