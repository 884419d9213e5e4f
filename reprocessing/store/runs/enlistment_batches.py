"""Put the letters of large plans, and of automatic runs, onto lanes (enlist them), one batch per transaction.

A batch takes the first remaining letters of each lane, so no letter overtakes an earlier letter (see `selection`). The
letters of an automatic run (kind `automatic`) are selected in the transaction that enlists them. Until then, other runs
may take these letters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from reprocessing.store import rows
from reprocessing.store.aws import aws_redrives
from reprocessing.store.runs import enlistment, selection
from reprocessing.store.runs.enlistment import Enlisted

#: Letters of one batch, which takes about a second. A plan with fewer letters enlists all of them when it starts.
BATCH_LETTERS = 2_000
#: Highest number of letters that are taken from one sort. Each sort reads all remaining letters.
MAX_LOOKAHEAD = 200_000

_OWING = """
SELECT r.id, r.dlq_id FROM redrive_run r JOIN redrive_dlq d ON d.id = r.dlq_id AND d.aws_redrive_since IS NULL
 WHERE r.kind = 'drain' AND r.state = 'running'
   AND EXISTS (SELECT FROM redrive_letter l WHERE l.run_id = r.id AND l.state = 'captured')
 ORDER BY r.id LIMIT %(limit)b
"""

# Lanes are read in the order of their oldest letter, so that old letters are sent first.
_NEXT = """
SELECT id FROM (
    SELECT id, source_id, key_hash, sequence, message_id,
           min(first_sent_at) OVER (PARTITION BY source_id, coalesce(key_hash, int8send(id))) AS first
      FROM redrive_letter WHERE run_id = %(run)b AND state = 'captured') l
 ORDER BY first, key_hash, source_id, sequence, message_id LIMIT %(limit)b
"""

# One batch of a run at a time, so that no batch overtakes an earlier one.
_TURN = "SELECT pg_try_advisory_xact_lock(1381126742, %(run)b::int) AS mine"

# A transaction that pauses or aborts the run waits for the batch. A release of parked letters does not wait, because it
# locks lanes first.
_LOCK = "SELECT id, dlq_id FROM redrive_run WHERE id = %(run)b AND state = 'running' FOR SHARE"

# Locks an automatic run if its DLQ is in mode automatic. Else a person decides about captured letters. A paused run
# also gets letters, which wait on their lanes.
_LOCK_AUTOMATIC = """
SELECT r.id, r.dlq_id FROM redrive_run r JOIN redrive_dlq d ON d.id = r.dlq_id
 WHERE r.id = %(run)b AND r.state = ANY(%(states)b::text[]) AND d.mode = 'automatic' FOR SHARE OF r
"""

_FREE = """
SELECT count(*) AS n, coalesce(max(id), 0) AS newest FROM (
    SELECT id FROM redrive_letter WHERE dlq_id = %(dlq)b AND state = 'captured' AND planned AND run_id IS NULL
       AND (%(through)b::bigint IS NULL OR id <= %(through)b::bigint)) l
"""


@dataclass(frozen=True, slots=True)
class FreeLetters:
    """How many letters of a DLQ have a place in a lane but no run, and the highest id of these letters (0: none)."""

    n: int
    newest: int


@dataclass(frozen=True, slots=True)
class UnenlistedRun:
    """A running run some of whose letters are not on their lanes yet."""

    id: int
    dlq_id: int


def unenlisted_runs(*, limit: int) -> list[UnenlistedRun]:
    """Return up to `limit` running runs some of whose letters are not on their lanes yet.

    Runs whose DLQ is redriven by AWS are left out: none of their letters may be enlisted now.
    """
    return rows.fetch(UnenlistedRun, _OWING, {"limit": limit})


def next_batches(run: int) -> list[list[int]]:
    """Return the letter ids of a run's next batches (2,000 letters each), in the order in which to enlist them."""
    return _batches(rows.column(int, _NEXT, {"run": run, "limit": MAX_LOOKAHEAD}))


def count_free(dlq: int, *, through: int | None = None) -> FreeLetters:
    """Return how many letters of a DLQ the automatic run could take, with the highest id of these letters.

    `through`: only letters with ids up to this id; None: all letters.
    """
    return rows.fetch(FreeLetters, _FREE, {"dlq": dlq, "through": through})[0]


def takes_letters(run: int) -> bool:
    """Return whether an automatic run may get letters: it has not ended, and its DLQ is still in mode automatic.

    Call it in the transaction that enlists the letters, because the DLQ's mode may have changed shortly before.
    """
    return bool(rows.fetch(UnenlistedRun, _LOCK_AUTOMATIC, {"run": run, "states": ["running", "paused"]}))


def next_automatic_batches(dlq: int, run: int, *, through: int) -> list[list[int]]:
    """Return the letter ids of an automatic run's next batches, in the order in which to enlist them.

    `through`: only letters with ids up to this id.
    """
    return _batches(selection.next_letters(dlq, run, through=through, most=MAX_LOOKAHEAD))


def enlist_batch(run: int, letters: Sequence[int]) -> Enlisted | None:
    """Enlist one batch of a run in a transaction; return the numbers of letters and lanes.

    None: the run is not running, AWS redrives the DLQ, or another worker enlists letters of the run now.
    """
    return rows.in_transaction(partial(_enlist, run, letters))


def enlist_automatic_batch(dlq: int, run: int, letters: Sequence[int]) -> Enlisted | None:
    """Select and enlist one batch of an automatic run in a transaction; return the numbers of letters and lanes.

    None: the run is not running, its DLQ is not automatic any more, or another worker enlists letters of the run now.

    Raises:
        NativeRedriveConflict: AWS's own redrive moves the messages of this DLQ.
    """
    return rows.in_transaction(partial(_enlist_automatic, dlq, run, letters))


def _enlist_automatic(dlq: int, run: int, letters: Sequence[int]) -> Enlisted | None:
    aws_redrives.lock_out_aws(dlq)
    if not rows.value(bool, _TURN, {"run": run}):
        return None
    selection.lock_selection(dlq)
    if not rows.fetch(UnenlistedRun, _LOCK_AUTOMATIC, {"run": run, "states": ["running"]}):
        return None
    return enlistment.enlist_letters(dlq, run, letters=selection.lock_free_letters(dlq, run, letters), free=True)


def _batches(ids: list[int]) -> list[list[int]]:
    return [ids[first : first + BATCH_LETTERS] for first in range(0, len(ids), BATCH_LETTERS)]


def _enlist(run: int, letters: Sequence[int]) -> Enlisted | None:
    if not rows.value(bool, _TURN, {"run": run}):
        return None
    found = rows.fetch(UnenlistedRun, _LOCK, {"run": run})
    if not found or aws_redrives.current(found[0].dlq_id) is not None:
        return None
    return enlistment.enlist_letters(found[0].dlq_id, run, letters=letters)
