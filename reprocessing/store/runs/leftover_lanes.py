"""Move the unfinished letters of ended runs into a run that will be started, in batches of one transaction each.

An aborted run may leave a million letters, too many for the transaction that starts the next run. So most letters are
taken over (adopted) before the start. The start itself takes over only letters that are left after the last batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from reprocessing.store import rows
from reprocessing.store.aws import aws_redrives
from reprocessing.store.runs.enlistment import ADOPT_LETTERS

#: Letters of one batch, which takes about 250 ms.
BATCH = 2_000

# Only the automatic run adopts the lanes of a plan whose start failed: two plans would take the lanes from each other.
# Letters are read for each ended run by index: with a join, the planner may read all letters.
_LEFT = """
SELECT l.id, l.lane_id FROM redrive_run r
 CROSS JOIN LATERAL (
    SELECT id, lane_id FROM redrive_letter WHERE run_id = r.id AND state IN ('waiting', 'sending', 'awaiting')
     ORDER BY run_id, state LIMIT %(limit)b) l
 WHERE r.dlq_id = %(dlq)b
   AND (r.state IN ('finished', 'aborted')
        OR (r.state = 'planned' AND (SELECT kind FROM redrive_run WHERE id = %(run)b) = 'automatic'))
 LIMIT %(limit)b
"""

# Of each ended run, one letter is read by index, as above.
_ANY = """
SELECT EXISTS (
    SELECT FROM redrive_run r
     CROSS JOIN LATERAL (
        SELECT FROM redrive_letter WHERE run_id = r.id AND state IN ('waiting', 'sending', 'awaiting')
         ORDER BY run_id, state LIMIT 1) l
     WHERE r.dlq_id = %(dlq)b AND r.state IN ('finished', 'aborted')
) AS so
"""

# Locks the run, then lanes by id. If the DLQ left mode automatic, its automatic run adopts nothing: a person decides.
_HEIR = """
SELECT r.id FROM redrive_run r JOIN redrive_dlq d ON d.id = r.dlq_id
 WHERE r.id = %(run)b
   AND (r.state = 'planned' OR (r.state = 'running' AND r.kind = 'automatic' AND d.mode = 'automatic')) FOR SHARE OF r
"""

_LOCK = "SELECT id FROM redrive_lane WHERE id = ANY(%(lanes)b::bigint[]) ORDER BY id FOR UPDATE"

_ADOPT = ADOPT_LETTERS.format(letters="l.id = ANY(%(letters)b::bigint[])", lanes="n.id = ANY(%(lanes)b::bigint[])")


@dataclass(frozen=True, slots=True)
class _Left:
    id: int
    lane_id: int


def has_leftovers(dlq: int) -> bool:
    """Return whether ended runs of the DLQ have unfinished letters."""
    return rows.value(bool, _ANY, {"dlq": dlq})


def adopt_leftovers(dlq: int, run: int, *, stop: Callable[[], bool] = lambda: False) -> bool:
    """Move the unfinished letters of the DLQ's ended runs into a plan or the automatic run, to wait for its start.

    Nothing is done if AWS redrives the DLQ, or if the plan was started or aborted meanwhile. An automatic run gets
    letters only while it runs, and its DLQ is in mode automatic. `stop` is called after each batch; if it returns true,
    no further batch is begun.

    Returns:
        False if `stop` ended the work, so that letters of ended runs may be left; else True.
    """
    if aws_redrives.current(dlq) is None:
        while rows.in_transaction(partial(_adopt, dlq, run)) == BATCH:
            if stop():
                return False
    return True


def _adopt(dlq: int, run: int) -> int:
    found = rows.fetch(_Left, _LEFT, {"dlq": dlq, "run": run, "limit": BATCH})
    if not found or not rows.execute(_HEIR, {"run": run}):
        return 0
    lanes = sorted({letter.lane_id for letter in found})
    rows.execute(_LOCK, {"lanes": lanes})
    rows.execute(_ADOPT, {"dlq": dlq, "run": run, "lanes": lanes, "letters": [letter.id for letter in found]})
    return len(found)
