"""What is asked of the proof: refused in a sentence before servers start, or done."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.proof import conftest
from tests.proof.asked import refused
from tests.proof.ledger import Ledger
from tests.proof.names import LAYERS, begun

PROJECT = Path(__file__).parents[2]
#: An environment in which pytest does nothing but say that it was begun.
_PYTHON = """#!/bin/sh
if [ "$2" = pytest ]; then echo BEGUN; else exec {python} "$@"; fi
"""


@pytest.mark.parametrize(
    ("layer", "environment", "said"),
    [
        *((layer, {}, "") for layer in ("", *LAYERS, "poison/test_screens.py")),
        *((none, {}, f"LAYER is {none!r}; there are: ") for none in ("poison/nonsense", "simulation/..", "..", "/tmp")),
        *(
            ("", {"PROVE_MINUTES": minutes}, f"MINUTES is {minutes!r}: ")
            for minutes in ("x", "", "0", "-1", "nan", "inf")
        ),
        *(
            ("", {f"PROVE_{name}": asked}, f"PROVE_{name} is {asked!r}: it is a whole number" if bad else "")
            for name in ("SEED", "SEEDS", "REPETITION", "BOOTHS")
            for asked, bad in (("abc", True), ("-1", True), ("3", False))
        ),
        ("", {"PROVE_BOOTHS": "0"}, "PROVE_BOOTHS is 0: "),
    ],
)
def test_what_cannot_be_done_is_refused(layer: str, environment: dict[str, str], said: str, tmp_path: Path) -> None:
    answer = refused(environment, layer, Ledger(tmp_path / "ledger.jsonl"))
    assert answer.startswith(said) if said else not answer


def test_a_ledger_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    assert refused({}, ledger=Ledger(tmp_path)).startswith("The ledger of what is proved cannot be used: ")


@pytest.mark.parametrize(
    ("expression", "is_refused"), [("prove", True), ("not soak and not prove", False), ("", False)]
)
def test_only_who_asks_for_the_long_form_is_refused(
    expression: str, is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVE_MINUTES", "x")
    config: Any = SimpleNamespace(getoption={"markexpr": expression}.get)
    refusal = pytest.raises(pytest.UsageError, match="how many")
    outcome: AbstractContextManager[object] = refusal if is_refused else nullcontext()
    with outcome:
        conftest.pytest_configure(config)


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    folder = tmp_path / "venv"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").write_text(_PYTHON.format(python=sys.executable))
    (folder / "bin" / "python").chmod(0o755)
    (folder / "installed").touch()
    return folder


@pytest.mark.soak
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("LAYER=simulation machine", "LAYER is 'simulation machine'; there are: "),
        ("MINUTES=it's", 'MINUTES is "it\'s": '),
        pytest.param("LAYER=poison/test_screens.py", "", marks=pytest.mark.soak),
    ],
)
def test_make_begins_one_layer_and_nothing_that_cannot_be_done(asked: str, said: str, environment: Path) -> None:
    command = ["make", "prove", f"VENV={environment}", asked]
    path = {"PATH": os.environ["PATH"]}  # of what these tests were started with, `make` is to know nothing
    done = subprocess.run(command, cwd=PROJECT, env=path, capture_output=True, text=True, check=False)
    assert done.stdout.split("\n").count("BEGUN") == (0 if said else 1)
    assert (done.returncode, done.stderr[: len(said)]) == (2 if said else 0, said)


def test_a_name_of_poison_is_meant_before_those_that_begin_like_it() -> None:
    some = ["fifo/first/a", "fifo/first/a-b", "fifo/last/a", "screens/a", "screens/a-b"]
    assert {asked: begun(asked, some) for asked in ("fifo/first/a", "fifo/first/", "screens/a", "", "s")} == {
        "fifo/first/a": ["fifo/first/a"],
        "fifo/first/": ["fifo/first/a", "fifo/first/a-b"],
        "screens/a": ["screens/a"],
        "": ["fifo/first/a", "fifo/first/a-b", "fifo/last/a"],
        "s": [],
    }
