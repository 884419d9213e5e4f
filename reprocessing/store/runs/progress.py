"""Count the letters of runs by state, and finish runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final, LiteralString

from reprocessing.domain.lifecycle import LetterState
from reprocessing.store import rows
from reprocessing.store.notifications.run_events import announce_finished
from reprocessing.store.ordering.blocking_runs import BLOCKING_STATE
from reprocessing.store.replay.settlement_effects import REPORTED_FAILED
from reprocessing.store.safety import waves

#: The letters of a run with up to MAX_EXACT letters are counted exactly. In a larger run, up to MAX_COUNT letters of
#: each state are counted.
MAX_EXACT: Final = 10_000
MAX_COUNT: Final = 20_000

_UNSENT: Final = ("captured", "waiting", "sending")
_UNFINISHED: Final = frozenset({*_UNSENT, "awaiting"})
_ENDED_OTHERWISE: Final = (LetterState.PARKED, LetterState.DUPLICATE, LetterState.DISCARDED)
_COLUMNS: Final = {"duplicate": "closed_as_duplicate"}  # the states whose counts have another name

# A drain is finished when none of its letters is captured, queued, being sent or waiting for an outcome.
_LOCK = "SELECT id FROM redrive_run WHERE kind = 'drain' AND state = 'running' ORDER BY id FOR UPDATE SKIP LOCKED"

# Executed after the runs are locked: a transaction that adds a letter to a run locks the run too.
_FINISH = """
UPDATE redrive_run r SET state = 'finished', finished_at = redrive_now()
 WHERE r.id = ANY(%(runs)b::bigint[]) AND r.kind = 'drain' AND r.state = 'running'
   AND NOT EXISTS (SELECT FROM redrive_letter l WHERE l.run_id = r.id
                      AND l.state IN ('captured', 'waiting', 'sending', 'awaiting'))
RETURNING r.id
"""

_FAILED_ATTEMPTS: Final[LiteralString] = f"""
SELECT count(*) FROM redrive_attempt a
 WHERE a.run_id = %(run)b
   AND (a.outcome IN ('returned', 'refused', 'unknown') OR a.returned_at IS NOT NULL OR {REPORTED_FAILED})
"""  # noqa: S608  # the inserted text is a constant

# Each letter's lane is read by its id: with IN or EXISTS, PostgreSQL would read the lanes of all runs. It is read once
# (OFFSET 0), for both counts.
_COUNTS: Final[LiteralString] = f"""
SELECT count(*) AS letters,
       count(*) FILTER (WHERE state = 'delivered' AND NOT presumed) AS delivered,
       count(*) FILTER (WHERE state = 'delivered' AND presumed) AS presumed,
       count(*) FILTER (WHERE state = 'parked') AS parked,
       count(*) FILTER (WHERE state = 'duplicate') AS closed_as_duplicate,
       count(*) FILTER (WHERE state = 'discarded') AS discarded,
       count(*) FILTER (WHERE state IN ('captured', 'waiting', 'sending')) AS waiting,
       count(*) FILTER (WHERE state = 'captured') AS captured,
       count(*) FILTER (WHERE state = 'sending') AS sending,
       count(*) FILTER (WHERE state = 'awaiting') AS awaiting,
       count(*) FILTER (WHERE lane_is = 'held') AS held,
       count(*) FILTER (WHERE lane_is = 'blocked') AS blocked,
       {{failed_attempts}} AS failed_attempts
  FROM (SELECT l.state, l.presumed, CASE WHEN l.state = 'waiting' THEN (
                SELECT CASE WHEN n.phase = 'held' OR n.stopped_at IS NOT NULL THEN 'held'
                            WHEN n.run_id <> %(run)b AND {BLOCKING_STATE} IS NOT NULL THEN 'blocked' END
                  FROM redrive_lane n WHERE n.id = l.lane_id) END AS lane_is
          FROM redrive_letter l WHERE l.run_id = %(run)b {{which}} OFFSET 0) letter
"""  # noqa: S608  # the inserted texts are constants

_TALLY = _COUNTS.format(failed_attempts=f"({_FAILED_ATTEMPTS})", which="")
_UNFINISHED_TALLY = _COUNTS.format(
    failed_attempts="0::bigint", which="AND l.state IN ('captured', 'waiting', 'sending', 'awaiting')"
)

#: Up to `most` letters l of the run `run` in the state `state`, in the order of the index `letters_by_run_and_state`.
#: The values are compared as rows, for an ordered read: with `=`, the planner may read the whole table from its
#: beginning, where there may be no letter of this run and state.
LETTERS_OF_RUN: Final[LiteralString] = """
SELECT {columns} FROM redrive_letter l
 WHERE (l.run_id, l.state) >= ({run}, {state}) AND l.run_id IS NOT NULL AND (l.run_id, l.state) <= ({run}, {state})
 ORDER BY l.run_id, l.state LIMIT {most}"""

_OF_STATE = LETTERS_OF_RUN.format(columns="", run="%(run)b::bigint", state="s.state", most="%(most)b::bigint")
_STATES = f"""
SELECT s.state, (SELECT count(*) FROM ({_OF_STATE}) few) AS n FROM unnest(%(states)b::text[]) AS s(state)
"""  # noqa: S608  # the inserted text is a constant

_OF_DELIVERED = LETTERS_OF_RUN.format(
    columns="l.presumed", run="%(run)b::bigint", state="'delivered'", most="%(most)b::bigint"
)
_DELIVERED = f"""
SELECT CASE WHEN presumed THEN 'presumed' ELSE 'delivered' END AS state, count(*) AS n
  FROM ({_OF_DELIVERED}) few GROUP BY 1
"""  # noqa: S608  # the inserted text is a constant

# Counts letters that another run has taken over from this run, by the letters' attempts in this run.
_ELSEWHERE = """
SELECT count(DISTINCT a.letter_id) AS n FROM redrive_attempt a JOIN redrive_letter l ON l.id = a.letter_id
 WHERE a.run_id = %(run)b AND l.run_id <> %(run)b
"""

# A run gets selected, adopted (`enlistment.ADOPT_LETTERS`) and released (`released_into_runs`) letters. An aborted run
# loses its captured letters, and its queued letters when another run starts.
_SIZE = """
SELECT coalesce(%(selected)b::bigint + (
            SELECT coalesce(sum((v.after ->> 'from_other_runs')::bigint), 0) FROM redrive_audit_entry v
             WHERE v.run_id = r.id AND v.act IN ('changed', 'released')), 0)::bigint AS letters,
       r.state <> 'aborted' AS keeps_letters
  FROM redrive_run r WHERE r.id = %(run)b
"""

_RUNNING = "SELECT id FROM redrive_run WHERE dlq_id = %(dlq)b AND state = 'running' ORDER BY id"


@dataclass(frozen=True, slots=True)
class RunCounts:
    """The number of letters of a run by state.

    Attributes:
        delivered: letters that were delivered. Letters that are presumed delivered are counted in `presumed`.
        waiting: unsent letters. The next four are parts of this number.
        captured: letters that are on no lane yet. `sending`: letters that are being sent now.
        held: letters that wait for a parked letter of their lane, or whose lane is stopped.
        blocked: letters that wait for an earlier letter of their lane, whose run sends nothing.
        failed_attempts: None: not counted, because the run is large.
        capped: names of the fields whose true number may be higher; `letters` may then be higher, too.
    """

    letters: int
    delivered: int
    presumed: int
    parked: int
    closed_as_duplicate: int
    discarded: int
    waiting: int
    captured: int
    sending: int
    awaiting: int
    held: int
    blocked: int
    failed_attempts: int | None
    capped: frozenset[str] = frozenset()

    @property
    def open(self) -> int:
        """Return the number of unfinished letters."""
        return self.waiting + self.awaiting

    @property
    def under_way(self) -> int:
        """Return the number of unfinished letters that are not held or blocked, so that no person has to act."""
        return self.open - self.held - self.blocked

    @property
    def is_lower_bound(self) -> bool:
        """Return whether the true `percent` may be higher, because finished letters were not all counted."""
        return bool(self.capped)

    @property
    def percent(self) -> int:
        """Return the percentage of finished letters. If `is_lower_bound`, the true percentage may be higher."""
        ended = self.letters - self.open
        if self.is_lower_bound:
            ended = self.delivered + self.presumed + self.parked + self.closed_as_duplicate + self.discarded
        return 100 * ended // self.letters if self.letters else 100


@dataclass(frozen=True, slots=True)
class RoughRunCounts(RunCounts):
    """Counts of a run of more than 10,000 letters. To be fast, at most 20,000 letters of each state are counted.

    Held and blocked letters are not counted (0). `delivered` includes letters that are presumed delivered. The number
    of all letters is known from the plan, if the run kept its letters.
    """

    @property
    def is_lower_bound(self) -> bool:
        """Return whether the true `percent` may be higher, because unfinished letters were not all counted."""
        return not self.capped.isdisjoint({"waiting", "awaiting"})


@dataclass(frozen=True, slots=True)
class _Size:
    """How many letters a run ever had (0: not known), and whether it still has all of them."""

    letters: int
    keeps_letters: bool


@dataclass(frozen=True, slots=True)
class _States:
    state: str
    n: int


def count_letters(run: int) -> RunCounts:
    """Return how many letters a run has in each state, and how many of its attempts failed."""
    return rows.fetch(RunCounts, _TALLY, {"run": run})[0]


def count_unfinished(run: int) -> RunCounts:
    """Return how many unfinished letters a run has in each state. Finished letters and failed attempts do not count."""
    return rows.fetch(RunCounts, _UNFINISHED_TALLY, {"run": run})[0]


def count_capped(run: int) -> RunCounts:
    """Return a run's unfinished letters by state, and up to 20,000 of its finished letters in each state.

    This takes no longer for a run that has sent messages for months. Failed attempts are not counted (None).
    """
    found = _states(run, most=MAX_COUNT, states=_ENDED_OTHERWISE)
    unfinished = count_unfinished(run)
    delivered = {row.state: row.n for row in rows.fetch(_States, _DELIVERED, {"run": run, "most": MAX_COUNT})}
    ends = {"delivered": 0, "presumed": 0, **delivered}
    ends |= {_COLUMNS.get(state, state): found[state] for state in _ENDED_OTHERWISE}
    capped = {name for name, n in ends.items() if n == MAX_COUNT}
    if sum(delivered.values()) == MAX_COUNT:
        capped |= {"delivered", "presumed"}
    letters = unfinished.letters + sum(ends.values())
    not_all: dict[str, Any] = {"failed_attempts": None, "capped": frozenset(capped)}
    return RunCounts(**{**asdict(unfinished), "letters": letters, **ends, **not_all})


def estimate_counts(run: int, *, selected: int | None) -> RunCounts:
    """Return how many letters a run has in each state. In large runs, at most 20,000 letters of a state are counted.

    A run is large if it has more than 10,000 letters. `selected`: the number of letters that the plan selected. If only
    one state has more than 20,000 letters, its count is computed: all letters that the run got, minus the letters in
    the other states. This is not possible for an aborted run, since its letters may be in other runs by now.
    """
    found = _states(run, most=MAX_COUNT, states=list(LetterState))
    if sum(found.values()) <= MAX_EXACT:
        return count_letters(run)
    size = rows.fetch(_Size, _SIZE, {"run": run, "selected": selected})[0]
    capped = [state for state, n in found.items() if n == MAX_COUNT]
    if len(capped) == 1 and size.keeps_letters and size.letters >= sum(found.values()):
        found[capped.pop()] += size.letters - sum(found.values())
    whole = size.letters if size.keeps_letters or not _UNFINISHED.isdisjoint(capped) else 0
    waiting = sum(found[state] for state in _UNSENT)
    ends = {_COLUMNS.get(state, state): n for state, n in found.items() if state != "waiting"}
    return RoughRunCounts(
        letters=max(whole, sum(found.values())), waiting=waiting, presumed=0, held=0, blocked=0, failed_attempts=None,
        capped=frozenset("waiting" if state in _UNSENT else _COLUMNS.get(state, state) for state in capped), **ends,
    )  # fmt: skip


def _states(run: int, *, most: int, states: Sequence[LetterState]) -> dict[str, int]:
    asked = {"run": run, "most": most, "states": [state.value for state in states]}
    return {row.state: row.n for row in rows.fetch(_States, _STATES, asked)}


def count_in_other_runs(run: int) -> int:
    """Return how many letters that this run has sent are now in other runs."""
    return rows.value(int, _ELSEWHERE, {"run": run})


def running_runs(dlq: int) -> list[int]:
    """Return the ids of the running runs of a DLQ."""
    return rows.column(int, _RUNNING, {"dlq": dlq})


def run_state(run: int) -> str:
    """Return the state of a run."""
    return rows.value(str, "SELECT state FROM redrive_run WHERE id = %(run)b", {"run": run})


def finish_runs() -> int:
    """Finish the running manual runs (drains) that have no unfinished letters; return how many."""

    def finish() -> list[int]:
        found = rows.column(int, _LOCK, {})
        finished = rows.column(int, _FINISH, {"runs": found})
        announce_finished(finished)
        return finished

    done = rows.in_transaction(finish)
    for run in done:
        rows.in_transaction(partial(waves.close, run))
    return len(done)
