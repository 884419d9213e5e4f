"""Update breakers, waves and ramps after outcomes were committed."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from reprocessing.store.safety import circuit_breakers, rate_ramps, waves


def outcomes(*, of_breakers: Iterable[int | None], of_runs: Iterable[int | None]) -> None:
    """Look at the breakers, and at the waves of the runs, of which outcomes were recorded."""
    if breakers := {breaker for breaker in of_breakers if breaker is not None}:
        circuit_breakers.look(breakers)
    if runs := {run for run in of_runs if run is not None}:
        waves.look(runs)


def ramps(some: Collection[int]) -> None:
    """Take the next step of these breakers' ramps, if it is due."""
    if some:
        rate_ramps.climb(some)
