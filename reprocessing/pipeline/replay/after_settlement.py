"""Tell breakers and waves that outcomes were recorded: after the commit, since they read what is written."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from reprocessing.store.safety import circuit_breakers, rate_ramps, waves


def outcomes(*, of_breakers: Iterable[int | None], of_runs: Iterable[int | None]) -> None:
    """Outcomes of these breakers, and of letters in waves of these runs, were recorded; both may be told in vain."""
    if asked := {one for one in of_breakers if one is not None}:
        circuit_breakers.look(asked)
    if runs := {one for one in of_runs if one is not None}:
        waves.look(runs)


def ramps(some: Collection[int]) -> None:
    """The ramps of these breakers may take their next step."""
    if some:
        rate_ramps.climb(some)
