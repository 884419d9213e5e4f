"""How long it takes: a worker is killed, and Postgres is restarted, in the middle of a drain."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles

import pytest

from tests.conditions import eventually
from tests.faults import outage
from tests.faults.fleet import Beat, Worker
from tests.faults.orphans import Orphans
from tests.proof.dependencies.flow import Kind
from tests.proof.dependencies.test_prove_dependencies import LAYER
from tests.proof.dependencies.verdict import moments
from tests.proof.dependencies.world import World, pass_seconds
from tests.proof.ledger import Ledger
from tests.proof.names import KILLED, RESTARTED
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.prove

ORPHANS, KILLS, DRAINS, PROMISED = 200, 10, 20, 15.0  # lanes and kills at the least, drains at the most; seconds
LETTERS, KEYS = 2_000, 500
RESTARTS, WINDOW, RECOVERED, SHARE = 2, 30.0, 10.0, 0.99  # seconds
RATE = 50.0  # letters a second, which a busy machine holds, too
BACKLOG = int((RESTARTS * (2 * WINDOW + RECOVERED) + 40) * RATE)
POLICY = {"ordering_key": "attribute:key", "sequence": "attribute:n"}
NO_LETTERS = Kind(name="steady", a_second=0, keys=1_000, rate=RATE)


@pytest.mark.django_db(transaction=True)
def test_the_lanes_of_a_killed_worker_are_leased_again_within_fifteen_seconds(
    tmp_path: Path, ledger: Ledger, is_time: Callable[[], bool]
) -> None:
    """Without rate and waves. In each drain one of two workers is killed, at a random moment."""
    _is_asked_for(KILLED)
    dice, times, orphaned, kills = random.Random(6), list[float](), 0, 0
    with Beat(), Worker(tmp_path, "the-other"):
        while (orphaned < ORPHANS or kills < KILLS) and kills < DRAINS and is_time():
            bench = Workbench(fields=POLICY)
            with Worker(tmp_path, f"worker-{kills}") as worker, Orphans(bench) as orphans:
                outage.bury(bench, range(LETTERS), keys=KEYS)
                outage.give_to_beat(bench)
                outage.await_delivered(bench, dice.randrange(100, LETTERS - 600), within=120)
                worker.kill()
                orphans.note(worker.process.pid)
                outage.await_delivered(bench, LETTERS, within=120)
                eventually(lambda one=orphans: len(one.times) == one.count, within=30)  # type: ignore[misc]
            times, orphaned, kills = times + orphans.times, orphaned + orphans.count, kills + 1
    found = quantiles(times, n=100, method="inclusive") if len(times) > 1 else [0.0] * 99
    p50, p99, most = found[49], found[98], max(times, default=0.0)
    told = f"p50 {p50:.1f} s, p99 {p99:.1f} s, max {most:.1f} s of {orphaned} lanes, {kills} kills"
    if p99 <= PROMISED and (orphaned < ORPHANS or kills < KILLS) and not is_time():
        pytest.skip(f"there was no time for {KILLS} kills and {ORPHANS} lanes; {told}")
    kept = orphaned >= ORPHANS and kills >= KILLS and p99 <= PROMISED
    _note(ledger, KILLED, kept, told, kills=kills, orphans=orphaned)
    assert kept


def test_ten_seconds_after_postgres_was_restarted_the_rate_is_what_it_was(
    tmp_path: Path, ledger: Ledger, is_time: Callable[[], bool]
) -> None:
    """At a rate that the worker holds easily: what is measured is recovery, not how fast the machine is."""
    _is_asked_for(RESTARTED)
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
    _note(
        ledger, RESTARTED, kept,
        f"{', '.join(f'{one:.1%}' for one in shares)} of the rate; {outcome.repeats} repeats; "
        f"{'; '.join(outcome.broken) or 'no promise broken'}",
        restarts=len(shares), letters=outcome.letters,
    )  # fmt: skip
    assert kept


def _is_asked_for(name: str) -> None:
    if os.environ.get("PROVE_CASE", name) != name:
        pytest.skip(f"PROVE_CASE asks for {os.environ['PROVE_CASE']}")


def _note(ledger: Ledger, name: str, kept: bool, told: str, **figures: float) -> None:
    ledger.note(LAYER, name, passed=kept, why=told, **figures)
    _tell(f"{'passed' if kept else 'FAILED'} {name}: {told}; load {os.getloadavg()[0]:.1f}")


def _tell(line: str) -> None:
    print(line, flush=True)  # noqa: T201  it is watched


def _now() -> float:
    return time.time_ns() / 1e9
