"""Read the figures that a list of runs shows for each run, each counted up to a limit."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from reprocessing.store import rows
from reprocessing.store.runs.progress import LETTERS_OF_RUN

#: Parked letters of a run are counted up to this number.
MAX_PARKED: Final = 1_000
#: Unfinished letters of a run are counted up to a number: 100,000 divided by the number of runs on the page, but at
#: least 2,000.
_MOST_OPEN, _LEAST_OPEN = 100_000, 2_000

_OF_OPEN_STATE = LETTERS_OF_RUN.format(columns="", run="r.id", state="s.state", most="%(most)b::bigint")
_PARKED = LETTERS_OF_RUN.format(columns="", run="r.id", state="'parked'", most="%(parked)b::bigint")

_FIGURES = f"""
SELECT r.id AS run_id, CASE WHEN r.state NOT IN ('running', 'paused') THEN 0 ELSE (
            SELECT least(count(*), %(most)b::bigint)
              FROM unnest(ARRAY['captured', 'waiting', 'sending', 'awaiting']) AS s(state)
             CROSS JOIN LATERAL ({_OF_OPEN_STATE}) u) END AS unfinished,
       (SELECT count(*) FROM ({_PARKED}) p) AS parked,
       (SELECT coalesce(sum(m.sent), 0) / (60 + extract(second FROM redrive_now())) FROM redrive_run_minute m
         WHERE m.run_id = r.id AND r.state = 'running'
           AND m.minute BETWEEN (SELECT date_trunc('minute', redrive_now()) - interval '1 minute') AND 'infinity'
       )::float8 AS rate
  FROM redrive_run r WHERE r.id = ANY(%(runs)b::bigint[])
"""  # noqa: S608  # the inserted texts are constants


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
