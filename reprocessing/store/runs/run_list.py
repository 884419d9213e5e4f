"""Read the figures that a list of runs shows for each run, each counted up to a limit."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from reprocessing.store import rows

#: Parked letters of a run are counted up to this number.
MAX_PARKED: Final = 1_000
#: Unfinished letters of a run are counted up to a number: 100,000 divided by the number of runs on the page, but at
#: least 2,000.
_MOST_OPEN, _LEAST_OPEN = 100_000, 2_000

# Both counts read a bounded part of the index of each run's letters. The state parked is the value of a column: as a
# literal, PostgreSQL with old statistics would read the parked letters of all runs.
_FIGURES = """
SELECT r.id AS run_id, CASE WHEN r.state NOT IN ('running', 'paused') THEN 0 ELSE (
            SELECT count(*) FROM (
                   SELECT FROM redrive_letter l
                    WHERE l.run_id = r.id AND l.state IN ('captured', 'waiting', 'sending', 'awaiting')
                    LIMIT %(most)b::bigint) u) END AS unfinished,
       (SELECT count(*) FROM unnest(ARRAY['parked']) AS s(state) CROSS JOIN LATERAL (
               SELECT FROM redrive_letter l WHERE l.run_id = r.id AND l.state = s.state
                LIMIT %(parked)b::bigint) p) AS parked,
       (SELECT coalesce(sum(m.sent), 0) / (60 + extract(second FROM redrive_now())) FROM redrive_run_minute m
         WHERE m.run_id = r.id AND r.state = 'running'
           AND m.minute BETWEEN (SELECT date_trunc('minute', redrive_now()) - interval '1 minute') AND 'infinity'
       )::float8 AS rate
  FROM redrive_run r WHERE r.id = ANY(%(runs)b::bigint[])
"""


@dataclass(frozen=True, slots=True)
class RunFigures:
    """The figures that a list shows for one run.

    Attributes:
        unfinished: unfinished letters, counted up to `most`; 0 if the run is neither running nor paused.
        parked: parked letters, counted up to 1,000 (`MAX_PARKED`).
        rate: how many letters per second a running run sent in this minute and the minute before.
    """

    run_id: int
    unfinished: int
    parked: int
    rate: float
    most: int = 0


def figures_of(runs: Collection[int]) -> dict[int, RunFigures]:
    """Return the figures that a list shows for these runs, by the run's id."""
    most = max(_MOST_OPEN // max(len(runs), 1), _LEAST_OPEN)
    values = {"runs": list(runs), "most": most, "parked": MAX_PARKED}
    found = rows.fetch(_Counted, _FIGURES, values)
    return {row.run_id: RunFigures(row.run_id, row.unfinished, row.parked, row.rate, most) for row in found}


@dataclass(frozen=True, slots=True)
class _Counted:
    run_id: int
    unfinished: int
    parked: int
    rate: float
