"""Record into which runs people released letters, and read these records and the states of released letters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from reprocessing.store import rows

# The bulk action's id is stored in `after`, not as a foreign key: a bulk action is deleted before the run is.
# `from_other_runs`: how many of the letters were in another run, or in none.
_RECORD = """
INSERT INTO redrive_audit_entry (act, run_id, dlq_id, by, reason, at, before, after)
SELECT 'released', l.run_id, l.dlq_id, %(by)b::text, %(reason)b::text, redrive_now(), '{}',
       jsonb_strip_nulls(jsonb_build_object(
           'letters', count(*), 'operation', %(operation)b::bigint,
           'from_other_runs', nullif(count(*) FILTER (WHERE l.run_id IS DISTINCT FROM b.run_id), 0)))
  FROM redrive_letter l JOIN unnest(%(letters)b::bigint[], %(runs)b::bigint[]) AS b(id, run_id) USING (id)
 WHERE l.id = ANY(%(letters)b::bigint[]) AND l.run_id IS NOT NULL
 GROUP BY l.run_id, l.dlq_id ORDER BY l.run_id
"""

_OF_RUN = """
SELECT v.by, v.reason, o.id AS operation, sum((v.after ->> 'letters')::bigint)::bigint AS letters, max(v.at) AS at
  FROM redrive_audit_entry v LEFT JOIN redrive_bulk_action o ON o.id = (v.after ->> 'operation')::bigint
 WHERE v.run_id = %(run)b AND v.act = 'released' GROUP BY v.by, v.reason, o.id ORDER BY at DESC LIMIT %(most)b
"""

# Reads the audit log by the runs, which are few: by the bulk action, it has an entry for each letter.
_OF_OPERATION = """
WITH found AS MATERIALIZED (
    SELECT v.run_id, v.after FROM redrive_run r JOIN redrive_audit_entry v ON v.run_id = r.id AND v.act = 'released'
     WHERE r.finished_at IS NULL OR r.finished_at >= %(since)b::timestamptz
)
SELECT r.id, r.name, r.state = 'paused' AS is_paused, sum((f.after ->> 'letters')::bigint)::bigint AS letters
  FROM found f JOIN redrive_run r ON r.id = f.run_id
 WHERE (f.after ->> 'operation')::bigint = %(operation)b::bigint GROUP BY r.id ORDER BY r.id LIMIT %(most)b
"""

_STATES_NOW = """
WITH released AS (
    SELECT DISTINCT letter_id FROM (
        SELECT letter_id FROM redrive_audit_entry WHERE operation_id = %(operation)b AND letter_id IS NOT NULL
         ORDER BY id DESC LIMIT %(most)b) newest
)
SELECT l.state, count(*) AS letters, count(*) FILTER (
           WHERE l.attempts - l.attempts_before_release > (l.state IN ('sending', 'awaiting'))::int
             AND l.state IN ('waiting', 'sending', 'awaiting', 'parked', 'discarded')) AS failed,
       array_remove(array_agg(DISTINCT l.target_id) FILTER (WHERE l.finished_at IS NULL), NULL) AS targets
  FROM released r JOIN redrive_letter l ON l.id = r.letter_id GROUP BY l.state
"""


@dataclass(frozen=True, slots=True)
class ReleaseIntoRun:
    """A release of letters into a run by a person.

    `operation`: id of the bulk action; None: no bulk action, or it was deleted.
    """

    by: str
    reason: str
    operation: int | None
    letters: int
    at: datetime


@dataclass(frozen=True, slots=True)
class RunReleasedInto:
    """A run into which a bulk action released letters, and the number of these letters."""

    id: int
    name: str
    is_paused: bool
    letters: int


@dataclass(frozen=True, slots=True)
class ReleasedLetters:
    """How many of the letters that a bulk action released are in one state now.

    `failed`: how many of these failed after the release, and were not delivered since. `targets`: ids of the targets
    of these letters, if the letters are not finished; else None.
    """

    state: str
    letters: int
    failed: int
    targets: list[int] | None


def record_release(letters: Mapping[int, int | None], *, by: str, reason: str, operation: int | None) -> None:
    """Write an audit log entry for each run into which these letters were released.

    `letters`: by letter id, the run of the letter before the release. `operation`: id of the bulk action; None: no bulk
    action.
    """
    values = {
        "letters": list(letters), "runs": list(letters.values()), "by": by, "reason": reason, "operation": operation,
    }  # fmt: skip
    rows.execute(_RECORD, values)


def releases_of_run(run: int, *, most: int) -> list[ReleaseIntoRun]:
    """Return up to `most` releases of letters into a run, the newest first."""
    return rows.fetch(ReleaseIntoRun, _OF_RUN, {"run": run, "most": most})


def runs_of_bulk_action(operation: int, *, since: datetime, most: int) -> list[RunReleasedInto]:
    """Return up to `most` runs into which a bulk action, begun at `since`, released letters."""
    return rows.fetch(RunReleasedInto, _OF_OPERATION, {"operation": operation, "since": since, "most": most})


def states_of_released(operation: int, *, most: int) -> list[ReleasedLetters]:
    """Return the present states of the last `most` letters that a bulk action released."""
    return rows.fetch(ReleasedLetters, _STATES_NOW, {"operation": operation, "most": most})
