"""The long form: each dependency fails in each of its ways under a worker at work; then all, in turn."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterator

import pytest

from tests.proof.dependencies.outages import OUTAGES, Strike, is_felt
from tests.proof.dependencies.refusals import REFUSALS
from tests.proof.dependencies.world import Outcome, World, pass_seconds
from tests.proof.ledger import Ledger
from tests.proof.names import IN_TURN, MEASURED

pytestmark = pytest.mark.prove

LAYER = "dependencies"
FAULTS: dict[str, Strike] = {**OUTAGES, **REFUSALS}
TEN_MINUTES = 600.0
BEFORE, AFTER = 3.0, 2.0  # seconds that letters flow before and after a fault
#: Where a dlq seems to be dry and is not, later letters may go first; the earlier are then stale, and are parked.
PARKS = {"receives are falsely empty", IN_TURN}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with World(tmp_path_factory.mktemp("dependencies")) as one:
        yield one


def test_letters_are_finished_in_order_whatever_fails_under_the_worker(
    world: World, ledger: Ledger, is_time: Callable[[], bool]
) -> None:
    if asked := asked_for(IN_TURN, *MEASURED):
        pytest.skip(f"PROVE_CASE asks for {asked}")
    chosen = [name for name in ledger.turns(LAYER, FAULTS) if os.environ.get("PROVE_CASE", name) == name]
    failed = [name for name in chosen if is_time() and not _prove(world, ledger, name, [name])]
    assert failed == []


def test_one_worker_lives_through_everything_in_turn(world: World, ledger: Ledger) -> None:
    """For ten minutes, whatever MINUTES says: a fault's turn comes about once."""
    if not asked_for(IN_TURN) and "PROVE_CASE" in os.environ:
        pytest.skip(f"PROVE_CASE asks for {os.environ['PROVE_CASE']}")
    assert _prove(world, ledger, IN_TURN, list(FAULTS), seconds=TEN_MINUTES)


def asked_for(*names: str) -> str:
    """Which of these cases PROVE_CASE asks for; empty: for none of them."""
    asked = os.environ.get("PROVE_CASE", "")
    return asked if asked in names else ""


def _prove(world: World, ledger: Ledger, name: str, faults: list[str], seconds: float = 0.0) -> bool:
    """Have the faults strike in turn while letters flow, once or for so many seconds; note how it ended."""
    began, fired, broken, number = time.monotonic(), 0, list[str](), 0
    world.begin()
    while number < len(faults) or time.monotonic() < began + seconds:
        one = faults[number % len(faults)]
        number += 1
        pass_seconds(BEFORE)
        try:
            seen = FAULTS[one](world)
        except AssertionError as error:
            seen = {}
            broken.append(f"{one}: {error}")
        else:
            broken += [] if is_felt(seen) else [f"{one}: it was never felt: {seen}"]
        fired += sum(seen.values())
        _tell(f"  {one}: {seen}")
        pass_seconds(AFTER)
    outcome = world.end()
    broken += _broken(name, outcome)
    ledger.note(
        LAYER, name, passed=not broken, why="; ".join(broken)[:2000], faults=fired, letters=outcome.letters,
        repeats=outcome.repeats, seconds=round(time.monotonic() - began, 1),
    )  # fmt: skip
    _tell(
        f"{'passed' if not broken else 'FAILED'} {name}: {outcome.letters} letters, {fired} faults felt, "
        f"{outcome.repeats} repeats, {outcome.parked} parked, all finished {outcome.healed:.1f} s after; load "
        f"{os.getloadavg()[0]:.1f}"
    )
    for sentence in broken:
        _tell(f"  {sentence}\n  again: PROVE_CASE={shlex.quote(name)} make prove LAYER=dependencies")
    return not broken


def _broken(name: str, outcome: Outcome) -> Iterator[str]:
    yield from outcome.broken
    if outcome.parked and name not in PARKS:
        yield f"{outcome.parked} letters were parked"


def _tell(line: str) -> None:
    print(line, flush=True)  # noqa: T201  it is watched
