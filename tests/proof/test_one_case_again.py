"""One case again, by its own command: what came of it is in the ledger, and what failed is told until it passes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.proof.ledger import Ledger
from tests.proof.machine import test_machine as machine
from tests.proof.planted import __main__ as planted
from tests.proof.planted.bugs import BUGS
from tests.proof.planted.stage import Ran
from tests.proof.simulation import test_simulation as simulation


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.jsonl")


def test_a_seed_that_is_played_again_is_noted(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROVE_SEED", "7")
    ledger.note("simulation", "7", passed=False)
    ended = SimpleNamespace(
        seed=7, broken=(), steps=3, letters=2, struck=Counter(crash=1), excused=0, duplicates=0, tale=(), states=()
    )
    theatre: Any = SimpleNamespace(play=lambda _: ended, seen=list)
    simulation.test_one_seed_again(theatre, ledger)
    assert ledger.failing("simulation") == []
    *_, last = ledger.entries()
    assert last.figures == {"steps": 3, "letters": 2, "faults": 1, "excused": 0, "duplicates": 0}


def test_a_chunk_that_is_played_again_is_noted(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def play(_: object, which: int, seen: Counter[str]) -> str:
        seen.update(examples=12, steps=600)
        return ""

    monkeypatch.setenv("PROVE_SEED", "7")
    monkeypatch.setattr(machine, "_play", play)
    ledger.note("machine", "7", passed=False)
    ground: Any = None
    machine.test_one_chunk_again(ground, ledger)
    assert ledger.failing("machine") == []
    *_, last = ledger.entries()
    assert last.figures == {"examples": 12, "steps": 600}


@pytest.mark.parametrize("noticed", [True, False])
def test_a_bug_that_is_planted_again_is_noted(noticed: bool, ledger: Ledger) -> None:
    ran = Ran(0, {"a test": "assert 1 == 2"} if noticed else {}, "", 1.23)
    stage: Any = SimpleNamespace(broken=lambda _: ran)
    assert planted._told(ledger, stage, BUGS[0]) == noticed
    assert [(one.name, one.passed, one.figures) for one in ledger.entries("planted")] == [
        (BUGS[0].name, noticed, {"seconds": 1.2})
    ]
