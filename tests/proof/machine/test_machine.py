"""Every promise is kept after every step; a guard that is taken out is missed."""

from __future__ import annotations

import os
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from time import monotonic
from types import ModuleType

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.stateful import run_state_machine_as_test

from reprocessing.store.ordering import lane_state, lanes, orphaned_lanes
from reprocessing.store.replay import intent
from tests.proof.ledger import HOME, Ledger
from tests.proof.machine.ground import Ground
from tests.proof.machine.machine import Machine

pytestmark = [pytest.mark.soak, pytest.mark.django_db(transaction=True)]

LAYER = "machine"
AGAIN = ".venv/bin/python -m tests.proof.machine"
EXAMPLES, STEPS = 15, 20
_CHUNK, _LONG = 12, 50
_ANY = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=False)


@pytest.fixture(scope="module")
def ground(django_db_setup: None, django_db_blocker: pytest.FixtureRequest) -> Iterator[Ground]:
    with django_db_blocker.unblock(), Ground().opened() as opened:  # type: ignore[attr-defined]  # pytest-django's
        yield opened


def test_every_promise_is_kept_after_every_step(ground: Ground) -> None:
    run_state_machine_as_test(
        lambda: Machine(ground),  # type: ignore[arg-type]  # whatever makes one
        settings=settings(_ANY, max_examples=EXAMPLES, stateful_step_count=STEPS, derandomize=True, database=None),
    )


@pytest.mark.parametrize(
    ("module", "guard", "instead"),
    [
        (lanes, "(n.fence = m.fence AND n.phase = 'leased')", "true"),
        (lane_state, "n.fence = head.my_fence AND n.phase = 'leased'", "true"),
        (orphaned_lanes, "AND l.state = 'sending'", "AND false"),
        (
            intent,
            "attempts = l.attempts + 1",
            "attempts = l.attempts + 1, attempts_before_release = l.attempts_before_release + 1",
        ),
    ],
    ids=["a lane's fence", "a lane's fence for its next letter", "what a dead owner left", "attempts that count"],
)
def test_a_guard_that_is_taken_out_is_missed(
    ground: Ground, module: ModuleType, guard: str, instead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded = {name: text for name, text in vars(module).items() if isinstance(text, str) and guard in text}
    assert guarded, "no statement has this guard"
    for name, text in guarded.items():
        monkeypatch.setattr(module, name, text.replace(guard, instead))
    quick = settings(_ANY, max_examples=EXAMPLES, stateful_step_count=STEPS, database=None, phases=[Phase.generate])
    with pytest.raises(AssertionError):
        run_state_machine_as_test(seed(7)(lambda: Machine(ground)), settings=quick)  # type: ignore[arg-type]  # as above


def _play(ground: Ground, which: int, seen: Counter[str]) -> str:
    """One chunk of examples of this seed; the tale of what failed, empty when nothing did."""

    def made() -> Machine:
        seen["examples"] += 1
        return Machine(ground, told=lambda: seen.update(("steps",)))

    kept = DirectoryBasedExampleDatabase(HOME / "examples")
    chosen = settings(_ANY, max_examples=_CHUNK, stateful_step_count=_LONG, database=kept)
    try:
        run_state_machine_as_test(seed(which)(made), settings=chosen)  # type: ignore[arg-type]  # as above
    except Exception as error:  # noqa: BLE001  whatever it is, it is what was looked for
        return "".join([*traceback.format_exception_only(error)])
    return ""


def _noted(ground: Ground, ledger: Ledger, which: int) -> str:
    seen: Counter[str] = Counter()
    began = monotonic()
    tale = _play(ground, which, seen)
    why = tale and f"{tale.partition(chr(10))[0][:300]} Again: {AGAIN} {which}"
    ledger.note(LAYER, str(which), passed=not tale, why=why, **seen)
    print(f"machine: chunk {which}, {dict(seen)} in {monotonic() - began:.0f} s", flush=True)  # noqa: T201
    return tale


def _chunks(ledger: Ledger) -> Iterator[int]:
    tried = set(map(int, ledger.tried(LAYER)))  # with gaps: a person plays whichever they like
    yield from map(int, ledger.failing(LAYER))
    yield from (which for which in count() if which not in tried)


@pytest.mark.prove
def test_chunks_that_nobody_has_played(ground: Ground, ledger: Ledger, is_time: Callable[[], bool]) -> None:
    bad = 0
    for which in _chunks(ledger):
        if not is_time():
            break
        if tale := _noted(ground, ledger, which):
            bad += 1
            print(f"{AGAIN} {which}\n{tale}", flush=True)  # noqa: T201  somebody waits
    assert not bad


@pytest.mark.prove
@pytest.mark.skipif("PROVE_SEED" not in os.environ, reason=".venv/bin/python -m tests.proof.machine CHUNK asks for it")
def test_one_chunk_again(ground: Ground, ledger: Ledger) -> None:
    tale = _noted(ground, ledger, int(os.environ["PROVE_SEED"]))
    assert not tale, tale
