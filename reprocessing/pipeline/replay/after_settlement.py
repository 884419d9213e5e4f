"""Update circuit breakers, waves and ramp-ups after the outcomes of attempts were committed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from reprocessing.store.safety import circuit_breakers, rate_ramps, waves


class _Closed(Protocol):
    """A closed attempt. `breaker_id`: its target's circuit breaker. `run_id`: its run. None: it has none."""

    @property
    def breaker_id(self) -> int | None: ...
    @property
    def run_id(self) -> int | None: ...


def update_after_attempts(closed: Collection[_Closed]) -> None:
    """Update the circuit breakers of these closed attempts, and the waves of their runs."""
    update_breakers_and_waves(
        of_breakers=[attempt.breaker_id for attempt in closed], of_runs=[attempt.run_id for attempt in closed]
    )


def update_breakers_and_waves(*, of_breakers: Iterable[int | None], of_runs: Iterable[int | None]) -> None:
    """Update these circuit breakers, and the waves of these runs, after outcomes of their attempts were recorded.

    `of_breakers`: ids of breakers. `of_runs`: ids of runs. None among the ids is ignored.
    """
    if breakers := {breaker for breaker in of_breakers if breaker is not None}:
        circuit_breakers.move_breakers(breakers)
    if runs := {run for run in of_runs if run is not None}:
        waves.judge_waves(runs)


def raise_ramp_rates(some: Collection[int]) -> None:
    """Raise the rates of the circuit breakers with these ids by one step of ramp-up, if it is time for a step."""
    if some:
        rate_ramps.step_due_ramps(some)
