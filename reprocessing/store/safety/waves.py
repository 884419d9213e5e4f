"""Judge the open wave of a run (1, 10, 100, then all letters) by its letters' outcomes, and open the next wave.

A repeated call changes nothing. If a process is killed before its call, a later call does the work. A transaction that
changes a run and its waves locks first the run, then the wave. It locks the run FOR NO KEY UPDATE. So a transaction
that has locked the wave to commit attempts need not wait for the run.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Final, LiteralString, assert_never

from reprocessing.domain.safety import wave_progression
from reprocessing.domain.safety.wave_progression import (
    LAST,
    SIZES,
    NextWave,
    OpenBreakers,
    PauseRun,
    RepeatWave,
    RestartWaves,
    WaitForOutcomes,
    WaveCounts,
)
from reprocessing.store import rows
from reprocessing.store.ordering.lane_head import first_letters
from reprocessing.store.safety import circuit_breakers
from reprocessing.store.safety.paused_runs import PausedRun, pause_run
from reprocessing.store.safety.send_limits import IS_INCONCLUSIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open(WaveCounts):
    """An open wave of a running run, with the counts of its outcomes."""

    id: int
    run_id: int
    name: str
    success: float
    is_automatic: bool


# The result of an attempt for its wave. If a letter's first attempt had no result (not sent, lost worker, no report),
# its next attempt counts. A letter whose next attempt waits for an earlier letter or a held lane is not counted: wave
# and letter would wait for each other. A letter that the target refused for its content (poison) counts as failed,
# because a wave tests letters; a breaker tests the target.
_FATE: Final[LiteralString] = f"""
CASE WHEN a.outcome = 'refused' AND a.returned_at IS NULL AND a.counts_as_failure IS NULL THEN 'poison'
     WHEN a.returned_at IS NOT NULL OR a.counts_as_failure OR a.outcome IN ('returned', 'refused', 'failed')
            THEN 'failed'
     WHEN a.closed_at IS NULL THEN 'open'
     WHEN NOT {IS_INCONCLUSIVE} THEN 'well' END
"""  # the inserted text is constant

# True of a letter l that a person's release or a rule delays, so that its wave does not wait for it. But a wave waits
# for a delay that the target asked for, because the target would also ask it for the next letter.
_FOR_LATER: Final[LiteralString] = """
(l.due_at > redrive_now() AND (l.route = 'delay' OR l.due_at = (
    SELECT (v.after ->> 'due')::timestamptz FROM redrive_audit_entry v
     WHERE v.letter_id = l.id AND v.act = 'released' ORDER BY v.at DESC, v.id DESC LIMIT 1)))
"""

# Later attempts are found by the letter: a planner without statistics would read all attempts of the run.
_FATES_OF: Final[LiteralString] = f"""
SELECT a.id, coalesce(mine.fate, later.fate, CASE
           WHEN l.state IN ('sending', 'awaiting') THEN 'open'
           WHEN l.state <> 'waiting' OR {_FOR_LATER} OR EXISTS (
                SELECT FROM redrive_lane n
                 WHERE n.id = l.lane_id AND (n.phase = 'held' OR n.stopped_at IS NOT NULL)) THEN 'silent'
           WHEN l.id = (SELECT h.id FROM {first_letters("h", "l.lane_id")}) THEN 'open'
           ELSE 'silent' END) AS fate
  FROM {{some}} a
  JOIN redrive_letter l ON l.id = a.letter_id
 CROSS JOIN LATERAL (SELECT {_FATE} AS fate) mine
  LEFT JOIN LATERAL (
        SELECT tried.fate FROM (SELECT a.id, {_FATE} AS fate FROM redrive_attempt a
                                 WHERE a.letter_id = l.id AND coalesce(a.run_id, 0) = w.run_id) tried
         WHERE mine.fate IS NULL AND tried.id > a.id AND tried.fate IS NOT NULL ORDER BY tried.id LIMIT 1) later ON true
"""  # noqa: S608  # the inserted texts are the constants above

_FATES: Final[LiteralString] = _FATES_OF.format(some="(SELECT * FROM redrive_attempt WHERE wave_id = w.id)")

# The newest attempts of a wave, at most a thousand. In the last wave, attempts of an earlier epoch of a breaker do not
# count. The breaker has stopped the sends for their failures, and closes by itself; a paused run does not resume by
# itself.
_NEWEST: Final[LiteralString] = """(
    SELECT a.* FROM (
            SELECT * FROM redrive_attempt x
             WHERE x.wave_id IS NOT NULL AND (x.wave_id, x.id)
                   <= (w.id, CASE WHEN w.size IS NULL THEN newest.id ELSE 9223372036854775807 END)
             ORDER BY x.wave_id DESC, x.id DESC LIMIT 1000) a
     WHERE a.wave_id = w.id
       AND (w.size IS NOT NULL OR EXISTS (
            SELECT FROM redrive_breaker b WHERE b.id = a.breaker_id AND b.epoch = a.breaker_epoch))
     ORDER BY a.id DESC LIMIT %(last)b)
"""
_COUNTS = f"""
SELECT w.id, w.run_id, r.name, r.kind = 'automatic' AS is_automatic, d.wave_success AS success, w.size,
       (SELECT count(*) FROM redrive_wave f
         WHERE f.run_id = w.run_id AND f.no < w.no AND f.size = 1 AND f.failed = 1
           AND f.no > coalesce((SELECT b.no FROM redrive_wave b
                                 WHERE b.run_id = w.run_id AND b.no < w.no
                                   AND (b.size IS DISTINCT FROM 1 OR b.failed IS DISTINCT FROM 1)
                                 ORDER BY b.no DESC LIMIT 1), 0)) AS tries,
       c.sent, c.open, c.failed, c.silent, c.poison
  FROM redrive_wave w JOIN redrive_run r ON r.id = w.run_id JOIN redrive_dlq d ON d.id = r.dlq_id
 CROSS JOIN LATERAL (
        SELECT (SELECT s.id FROM (
                    SELECT x.id, x.wave_id FROM redrive_attempt x
                     WHERE x.wave_id IS NOT NULL AND (x.wave_id, x.id) <= (w.id, 9223372036854775807)
                       AND x.closed_at IS NOT NULL
                     ORDER BY x.wave_id DESC, x.id DESC LIMIT 1) s
                 WHERE s.wave_id = w.id) AS id) newest
 CROSS JOIN LATERAL (
        SELECT count(*) AS sent, count(*) FILTER (WHERE fate = 'open') AS open,
               count(*) FILTER (WHERE fate IN ('failed', 'poison')) AS failed,
               count(*) FILTER (WHERE fate = 'silent') AS silent, count(*) FILTER (WHERE fate = 'poison') AS poison
          FROM ({_FATES_OF.format(some=_NEWEST)}) fates) c
 WHERE w.run_id = ANY(%(runs)b::bigint[]) AND w.settled_at IS NULL AND r.state = 'running'
"""  # noqa: S608  # the inserted text is a constant

_LOCK_RUN = "SELECT id FROM redrive_run WHERE id = %(run)b AND state = 'running' FOR NO KEY UPDATE"

_LOCK_WAVE = "SELECT id FROM redrive_wave WHERE run_id = %(run)b AND settled_at IS NULL FOR UPDATE"

_SETTLE = f"""
UPDATE redrive_wave w SET settled_at = redrive_now(), sent = c.sent, failed = c.failed
  FROM (SELECT w.id, (SELECT count(*) FROM redrive_attempt a WHERE a.wave_id = w.id) AS sent,
               (SELECT count(*) FROM ({_FATES}) fates WHERE fate IN ('failed', 'poison')) AS failed
          FROM redrive_wave w WHERE w.run_id = %(run)b AND w.settled_at IS NULL) c
 WHERE w.id = c.id
"""  # noqa: S608  # the inserted text is a constant

_OPEN = """
INSERT INTO redrive_wave (run_id, no, size, opened_at)
SELECT r.id, coalesce((SELECT max(no) FROM redrive_wave WHERE run_id = r.id), 0) + 1, %(size)b::int, redrive_now()
  FROM redrive_run r WHERE r.id = %(run)b AND r.waves
"""

# The breakers (with epochs) of the failed attempts of a failed wave. Poison letters count only in a wave of one letter.
_FAILURES = f"""
SELECT DISTINCT a.breaker_id, a.breaker_epoch AS epoch
  FROM redrive_wave w
 CROSS JOIN LATERAL (SELECT * FROM redrive_attempt x WHERE x.wave_id = w.id ORDER BY x.id DESC LIMIT %(last)b) a
 WHERE w.run_id = %(run)b AND w.settled_at IS NULL AND a.breaker_id IS NOT NULL
   AND (({_FATE}) = 'failed' OR (w.size = 1 AND ({_FATE}) = 'poison'))
"""  # noqa: S608  # the inserted text is a constant

# A run without queued letters and open outcomes. A run whose waves have just begun is left out: it has an open wave of
# one letter, in which nothing was sent yet.
_FRESH = """
SELECT r.id FROM redrive_run r
 WHERE r.id = %(run)b AND r.state = 'running' AND r.waves
   AND (SELECT l.id FROM redrive_letter l
         WHERE l.run_id = r.id AND l.state IN ('waiting', 'sending', 'awaiting')
         ORDER BY l.run_id, l.state LIMIT 1) IS NULL
   AND NOT EXISTS (SELECT FROM redrive_wave w WHERE w.run_id = r.id AND w.settled_at IS NULL AND w.size = 1
                      AND NOT EXISTS (SELECT FROM redrive_attempt a WHERE a.wave_id = w.id))
"""

_RUNNING = """
SELECT r.id FROM redrive_run r JOIN redrive_wave w ON w.run_id = r.id AND w.settled_at IS NULL
 WHERE r.state = 'running' ORDER BY r.id
"""


def begin(run_id: int) -> None:
    """Close the run's open wave, if there is one. If the run is sent in waves, open a wave of one letter.

    Call it in a transaction that has locked the run by a plain UPDATE or FOR NO KEY UPDATE.
    """
    close(run_id)
    rows.execute(_OPEN, {"run": run_id, "size": SIZES[0]})


def close(run_id: int) -> None:
    """Close the run's open wave, whatever its outcomes are. Call this in a transaction that has locked the run."""
    rows.execute(_LOCK_WAVE, {"run": run_id})
    rows.execute(_SETTLE, {"run": run_id})


def restart_when_empty(run_id: int) -> None:
    """Begin the waves of a running run again with one letter, if none of its letters is in progress.

    Letters in progress are queued, being sent, or awaiting their outcome. Call this function in the transaction that
    adds letters to the run, before the letters are added.
    """
    if rows.execute(_FRESH, {"run": run_id}):
        rows.execute(_LOCK_RUN, {"run": run_id})
        begin(run_id)


def judge_waves(run_ids: Collection[int]) -> list[PausedRun]:
    """Judge the open wave of each of these runs. Open the next wave, or pause the run; return the paused runs.

    If too many letters of an automatic run failed, the circuit breakers of their targets are opened. Call this function
    outside transactions; it commits by itself.
    """
    if not run_ids:
        return []
    judged = {wave.run_id: _verdict(wave) for wave in _counts(run_ids)}
    due = sorted(run for run, verdict in judged.items() if not isinstance(verdict, WaitForOutcomes))
    for run in due:
        if isinstance(verdict := judged[run], OpenBreakers):
            _open_breakers(run, verdict.why)  # first, so that nothing is sent between this wave and the next
    paused = [rows.in_transaction(partial(_move, run)) for run in due]
    return [run for run in paused if run]


@dataclass(frozen=True, slots=True)
class _Failure:
    breaker_id: int
    epoch: int


def _open_breakers(run: int, why: str) -> None:
    failures = rows.fetch(_Failure, _FAILURES, {"run": run, "last": LAST})
    circuit_breakers.open_after({(failure.breaker_id, failure.epoch) for failure in failures}, why=why)


def open_wave_counts(run: int) -> WaveCounts | None:
    """Return how the newest letters of a run's open wave went; None: no wave is open, or the run is not running."""
    return next(iter(_counts([run])), None)


def judge_all_waves() -> list[PausedRun]:
    """Judge the open waves of all running runs, since a worker may have been killed before it called `judge_waves`.

    Return the paused runs.
    """
    return judge_waves(rows.column(int, _RUNNING, {}))


def _counts(run_ids: Collection[int]) -> list[_Open]:
    return rows.fetch(_Open, _COUNTS, {"runs": list(run_ids), "last": LAST})


def _verdict(wave: _Open) -> wave_progression.WaveVerdict:
    return wave_progression.judge_wave(wave, success=wave.success, is_automatic=wave.is_automatic)


def _move(run: int) -> PausedRun | None:
    """Judge the run's open wave again, with run and wave locked, and open the next wave, or pause the run.

    Return the run if it was paused; else None.
    """
    rows.execute(_LOCK_RUN, {"run": run})
    rows.execute(_LOCK_WAVE, {"run": run})
    for wave in _counts([run]):
        verdict = _verdict(wave)
        match verdict:
            case WaitForOutcomes():
                return None
            case NextWave(size):
                _open_next(run, size)
            case RepeatWave():
                _open_next(run, wave.size)
            case OpenBreakers() | RestartWaves():
                _open_next(run, SIZES[0])
            case PauseRun(why):
                rows.execute(_SETTLE, {"run": run})
                return pause_run(run, f"Paused automatically: {why}.")
            case _:
                assert_never(verdict)
    return None


def _open_next(run: int, size: int | None) -> None:
    rows.execute(_SETTLE, {"run": run})
    rows.execute(_OPEN, {"run": run, "size": size})
