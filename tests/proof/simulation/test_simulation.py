"""Seeded worlds keep every promise, one seed tells one tale, and a rig that sees nothing is noticed."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, islice
from time import monotonic
from typing import Any

import pytest

from reprocessing.domain.safety import wave_progression
from reprocessing.models.target import MAX_SECONDS
from reprocessing.pipeline.capture import capture
from reprocessing.pipeline.replay import settle
from reprocessing.store.safety import circuit_breakers
from tests.proof.ledger import Ledger
from tests.proof.progress import TELLS_EVERY, say
from tests.proof.simulation.outage import Kind, Outage
from tests.proof.simulation.plot import Plot, plot
from tests.proof.simulation.stage import Odds
from tests.proof.simulation.world import Ending, Theatre, again, last_words

pytestmark = [pytest.mark.soak, pytest.mark.django_db(transaction=True)]

LAYER, STREAMS = "simulation", 3
#: Seeds of worlds that are short, and have all kinds of faults.
SHORT = (2, 3, 7, 8, 9, 10, 13)
#: Seeds of small worlds, with several keys, whose consumers say nothing: without other faults, and with all of them.
CALM, STRICKEN = 126, 553
#: It takes half a minute.
THREE_DAYS = pytest.param("three days", marks=pytest.mark.long)


@pytest.fixture(scope="module")
def theatre(django_db_setup: None, django_db_blocker: pytest.FixtureRequest) -> Iterator[Theatre]:
    with django_db_blocker.unblock(), Theatre().opened() as opened:  # type: ignore[attr-defined]  # pytest-django's
        yield opened


def test_worlds_keep_every_promise_and_meet_faults(theatre: Theatre) -> None:
    struck: Counter[str] = Counter()
    for seed in SHORT:
        ending = theatre.play(plot(seed))
        struck += ending.struck
        assert not ending.broken, last_words(ending)
    assert sum(struck.values()) > len(SHORT)
    assert {"crash", "freeze", "connection cut", "commit unheard"} <= set(struck)


def test_a_seed_tells_the_same_tale_whenever_it_is_asked(theatre: Theatre) -> None:
    seed = 2  # which has crashes, frozen workers and lost connections
    once, again = theatre.play(plot(seed)), theatre.play(plot(seed))
    assert sum(once.struck.values()) > 1
    assert once.tale == again.tale


def test_a_world_without_faults_has_no_duplicates(theatre: Theatre) -> None:
    calm = plot(3, odds=Odds())
    ending = theatre.play(replace(calm, events=tuple(replace(one, copies=1) for one in calm.events)))
    assert ending.broken == ()
    assert (ending.struck, ending.duplicates) == (Counter(), 0)


def _patient(kind: Kind, **changed: Any) -> Plot:  # noqa: ANN401  fields of a dlq
    """A small world without other faults, whose run gives nothing up for a fortnight."""
    world = plot(CALM, kind=kind)
    return replace(world, dlq={**world.dlq, "give_up_after": MAX_SECONDS, **changed})


@pytest.mark.parametrize("kind", ["a second", pytest.param("ten minutes", marks=pytest.mark.long), THREE_DAYS])
def test_every_message_outlasts_an_outage_of_its_target(theatre: Theatre, kind: Kind) -> None:
    ending = theatre.play(_patient(kind))
    assert (ending.broken, [state.split()[1] for state in ending.states]) == ((), ["delivered"] * ending.letters)


@pytest.mark.long
@pytest.mark.parametrize("seed", [CALM, STRICKEN])
@pytest.mark.parametrize("kind", ["flapping", "half of the keys"])
def test_worlds_outlast_what_is_no_outage_of_all(theatre: Theatre, kind: Kind, seed: int) -> None:
    ending = theatre.play(plot(seed, kind=kind))
    assert not ending.broken, last_words(ending)


@pytest.mark.parametrize("kind", ["a second", pytest.param("ten minutes", marks=pytest.mark.long), THREE_DAYS])
def test_worlds_outlast_an_outage_with_faults_of_every_sort_beside_it(theatre: Theatre, kind: Kind) -> None:
    ending = theatre.play(plot(STRICKEN, kind=kind))
    assert not ending.broken, last_words(ending)
    assert ending.struck


@pytest.mark.long
@pytest.mark.parametrize("seed", [CALM, STRICKEN])
def test_poison_at_the_head_of_every_lane_holds_up_no_other_message(theatre: Theatre, seed: int) -> None:
    world = plot(seed, poison_heads=True)
    ending = theatre.play(world)
    assert not ending.broken, last_words(ending)
    ends = {name: state for name, state, *_ in (told.replace(":", "").split() for told in ending.states)}
    assert {event.name: ends[event.name] == "delivered" for event in world.events} == {
        event.name: event.temper != "poison" for event in world.events
    }


@pytest.mark.long
def test_an_outage_that_uses_up_attempts_is_seen(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is spared: an outage counts as in a manual run."""
    monkeypatch.setattr(circuit_breakers, "spare_epochs", lambda _: 0)
    monkeypatch.setattr(settle, "spare_late", lambda _: 0)
    monkeypatch.setattr(capture, "spare_late", lambda _: 0)
    ending = theatre.play(_patient("ten minutes"))
    assert any(said.startswith("An outage used up ") for said in ending.broken)


def test_an_automatic_run_that_stops_itself_is_seen(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed wave stops it, as it stops a manual run."""
    judge = wave_progression.judge_wave
    monkeypatch.setattr(
        wave_progression, "judge_wave", lambda *count, **options: judge(*count, **{**options, "is_automatic": False})
    )
    world = replace(_patient("usual", waves=True), outage=Outage(((0.0, 60.0),)))
    ending = theatre.play(world)
    assert any(said.startswith("The automatic run paused itself: Paused automatically: ") for said in ending.broken)


@pytest.mark.parametrize(
    ("changes", "where", "seeds"),
    [
        pytest.param(
            (r"ORDER BY lane_id, sequence, message_id", "ORDER BY lane_id, message_id"),
            "lane_state._NEXT", (12, 7, 5), id="order",
        ),
        pytest.param(
            (r"AND due_at <= (redrive_now\(\)|\(SELECT redrive_now\(\)\))", "AND due_at IS NOT NULL"),
            "lanes._LEASE", (12, 25, 2), id="lease",
        ),
    ],
)  # fmt: skip
def test_a_broken_promise_is_seen(
    theatre: Theatre, changes: tuple[str, str], where: str, seeds: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Letters in another order than theirs; lanes leased though another has them. No fault is needed to see it.

    Which worker comes first in a world depends on how many statements the product makes: not every world sees it.
    """
    changed = set[str]()
    for module in [module for name, module in sys.modules.items() if name.startswith("reprocessing.store.")]:
        for name, text in [item for item in vars(module).items() if isinstance(item[1], str)]:
            if re.search(changes[0], text):
                changed.add(f"{module.__name__.rpartition('.')[2]}.{name}")
                monkeypatch.setattr(module, name, re.sub(*changes, text))
    assert where in changed
    assert any(theatre.play(plot(seed, odds=Odds())).broken for seed in seeds)


def _seeds(ledger: Ledger, stream: int) -> Iterator[int]:
    """Those of a stream that failed when they were played last, and then those that nobody has played, without end."""
    tried = set(map(int, ledger.tried(LAYER)))  # with gaps: a person plays whichever they like
    yield from sorted(seed for name in ledger.failing(LAYER) if (seed := int(name)) % STREAMS == stream)
    yield from (seed for seed in count(stream, STREAMS) if seed not in tried)


def _note(ledger: Ledger, ending: Ending) -> None:
    why = f"{'; '.join(ending.broken[:3])}. Again: {again(ending.seed)}" if ending.broken else ""
    ledger.note(
        LAYER, str(ending.seed), passed=not ending.broken, why=why, steps=ending.steps, letters=ending.letters,
        faults=sum(ending.struck.values()), excused=ending.excused, duplicates=ending.duplicates,
    )  # fmt: skip


@pytest.mark.prove
@pytest.mark.parametrize("stream", range(STREAMS))
def test_seeds_that_nobody_has_played(
    theatre: Theatre, stream: int, ledger: Ledger, is_time: Callable[[], bool]
) -> None:
    """Those that failed last, and then those that nobody has played; ARGS="-n 3": each stream has its own process."""
    most = int(os.environ.get("PROVE_SEEDS", "1000000")) // STREAMS
    bad, told = 0, monotonic()
    for done, seed in enumerate(islice(_seeds(ledger, stream), most), 1):
        if not is_time():
            break
        ending = theatre.play(plot(seed))
        _note(ledger, ending)
        if ending.broken:
            bad += 1
            say(last_words(ending))
        if monotonic() - told > TELLS_EVERY:
            told = monotonic()
            say(f"simulation: {done} worlds of stream {stream}, {bad} broken; the latest seed is {seed}")
    assert not bad


@pytest.mark.prove
@pytest.mark.skipif(
    "PROVE_SEED" not in os.environ, reason=".venv/bin/python -m tests.proof.simulation SEED asks for it"
)
def test_one_seed_again(theatre: Theatre, ledger: Ledger) -> None:
    world = plot(int(os.environ["PROVE_SEED"]))
    ending = theatre.play(world)
    _note(ledger, ending)
    print("\n".join([*ending.tale, "", *theatre.seen(), "", str(world), "", *ending.states, "", *ending.broken]))  # noqa: T201
    assert not ending.broken, last_words(ending)
