"""Update breakers, waves and ramps after outcomes were committed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from reprocessing.store.safety import circuit_breakers, rate_ramps, waves


class _Closed(Protocol):
    """Anything that ended an attempt."""

    @property
    def breaker_id(self) -> int | None: ...
    @property
    def run_id(self) -> int | None: ...


def look_at_attempts(closed: Collection[_Closed]) -> None:
    """Look at the breakers and the runs of attempts that were closed."""
    look_at_outcomes(
        of_breakers=[attempt.breaker_id for attempt in closed], of_runs=[attempt.run_id for attempt in closed]
    )


def look_at_outcomes(*, of_breakers: Iterable[int | None], of_runs: Iterable[int | None]) -> None:
    """Look at the breakers, and at the waves of the runs, of which outcomes were recorded."""
    if breakers := {breaker for breaker in of_breakers if breaker is not None}:
        circuit_breakers.move_breakers(breakers)
    if runs := {run for run in of_runs if run is not None}:
        waves.judge_waves(runs)


def climb_ramps(some: Collection[int]) -> None:
    """Take the next step of these breakers' ramps, if it is due."""
    if some:
        rate_ramps.step_due_ramps(some)
