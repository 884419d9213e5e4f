"""The long form: each dependency fails in each of its ways under a worker at work; then all, in turn."""

from __future__ import annotations

import os
import shlex
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conditions import eventually
from tests.proof.dependencies.flow import Kind
from tests.proof.dependencies.outages import OUTAGES, Strike, is_felt
from tests.proof.dependencies.refusals import REFUSALS
from tests.proof.dependencies.verdict import moments
from tests.proof.dependencies.world import Outcome, World, pass_seconds
from tests.proof.ledger import Ledger
from tests.proof.names import IN_TURN, RESTARTED

pytestmark = pytest.mark.prove

LAYER = "dependencies"
FAULTS: dict[str, Strike] = {**OUTAGES, **REFUSALS}
TEN_MINUTES = 600.0
RESTARTS, WINDOW, RECOVERED, SHARE = 2, 30.0, 10.0, 0.99  # seconds
RATE = 50.0  # letters a second, which a busy machine holds, too
BACKLOG = int((RESTARTS * (2 * WINDOW + RECOVERED) + 40) * RATE)
NO_LETTERS = Kind(name="steady", a_second=0, keys=1_000, rate=RATE)
BEFORE, AFTER = 3.0, 2.0  # seconds that letters flow before and after a fault
#: Where a dlq seems to be dry and is not, later letters may go first; the earlier are then stale, and are parked.
PARKS = {"receives are falsely empty", IN_TURN}


def test_ten_seconds_after_postgres_was_restarted_the_rate_is_what_it_was(
    tmp_path: Path, ledger: Ledger, is_time: Callable[[], bool]
) -> None:
    """At a rate that the worker holds easily: what is measured is recovery, not how fast the machine is.

    It comes before the tests with `world`: two worlds at once would measure each other.
    """
    _skip_unless_asked_for(RESTARTED)
    shares = list[float]()
    with World(tmp_path, kinds=(NO_LETTERS,)) as world:
        world.begin()
        (flow,) = world.flows
        flow.bury_at_once(BACKLOG)
        eventually(lambda: flow.states()["delivered"] > 5 * RATE, within=60)
        while len(shares) < RESTARTS and is_time():
            began = _now()
            pass_seconds(WINDOW)
            struck = _now()
            world.servers.kill("postgres", signal.SIGQUIT)
            world.servers.start_again("postgres")
            pass_seconds(RECOVERED + WINDOW - (_now() - struck))
            sent = list(moments(flow, world.since))
            before = sum(began <= at < struck for at in sent) / (struck - began)
            after = sum(struck + RECOVERED <= at < struck + RECOVERED + WINDOW for at in sent) / WINDOW
            meanwhile = sum(struck <= at < struck + RECOVERED for at in sent) / RECOVERED
            shares.append(after / before)
            _tell(f"  {before:.1f} letters/s before, {meanwhile:.1f} in the ten seconds, {after:.1f} from then on")
        outcome = world.end(within=240)
    kept = min(shares) >= SHARE and not outcome.broken
    told = f"{', '.join(f'{one:.1%}' for one in shares)} of the rate; {outcome.repeats} repeats; {outcome.broken}"
    ledger.note(LAYER, RESTARTED, passed=kept, why=told, restarts=len(shares), letters=outcome.letters)
    _tell(f"{'passed' if kept else 'FAILED'} {RESTARTED}: {told}; load {os.getloadavg()[0]:.1f}")
    assert kept


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with World(tmp_path_factory.mktemp("dependencies")) as one:
        yield one


def test_letters_are_finished_in_order_whatever_fails_under_the_worker(
    world: World, ledger: Ledger, is_time: Callable[[], bool]
) -> None:
    if (asked := os.environ.get("PROVE_CASE")) in (IN_TURN, RESTARTED):
        pytest.skip(f"PROVE_CASE asks for {asked}")
    chosen = [name for name in ledger.turns(LAYER, FAULTS) if os.environ.get("PROVE_CASE", name) == name]
    failed = [name for name in chosen if is_time() and not _prove(world, ledger, name, [name])]
    assert failed == []


def test_one_worker_lives_through_everything_in_turn(world: World, ledger: Ledger) -> None:
    """For ten minutes, whatever MINUTES says: a fault's turn comes about once."""
    _skip_unless_asked_for(IN_TURN)
    assert _prove(world, ledger, IN_TURN, list(FAULTS), seconds=TEN_MINUTES)


def _skip_unless_asked_for(name: str) -> None:
    if os.environ.get("PROVE_CASE", name) != name:
        pytest.skip(f"PROVE_CASE asks for {os.environ['PROVE_CASE']}")


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


def _now() -> float:
    return time.time_ns() / 1e9
