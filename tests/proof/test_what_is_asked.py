"""What is asked of the proof by commands: refused in a sentence before servers start, or answered to its end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.proof.asked import refused
from tests.proof.ledger import Ledger
from tests.proof.names import begun

PROJECT = Path(__file__).parents[2]
#: An environment in which pytest does nothing but say that it was begun.
_PYTHON = """#!/bin/sh
if [ "$2" = pytest ]; then echo BEGUN; else exec {python} "$@"; fi
"""


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    folder = tmp_path / "venv"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").write_text(_PYTHON.format(python=sys.executable))
    (folder / "bin" / "python").chmod(0o755)
    (folder / "installed").touch()
    return folder


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("LAYER=simulation machine", "LAYER is 'simulation machine'; there are: "),
        ("LAYER=simulation/../../", "LAYER is 'simulation/../../'; there are: "),
        ("LAYER=it's", 'LAYER is "it\'s"; there are: '),
        ("MINUTES=it's", 'MINUTES is "it\'s": '),
        ("layer=machine", "LAYER and MINUTES are written in capitals; nobody reads layer."),
    ],
)
def test_make_begins_nothing_of_which_it_knows_that_it_cannot_be_done(asked: str, said: str, environment: Path) -> None:
    done = _make(asked, environment)
    assert (done.returncode, done.stderr[: len(said)], "BEGUN" in done.stdout) == (2, said, False)


@pytest.mark.soak
def test_make_begins_one_layer(environment: Path) -> None:
    assert _make("LAYER=poison/test_screens.py", environment).stdout.split("\n").count("BEGUN") == 1


def test_what_make_reads_in_capitals_alone_is_refused_in_small_letters(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    assert refused({"minutes": "1", "layer": "machine"}, ledger=ledger) == (
        "LAYER and MINUTES are written in capitals; nobody reads layer and minutes."
    )


def test_a_name_of_poison_is_meant_before_those_that_begin_like_it() -> None:
    some = ["fifo/first/a", "fifo/first/a-b", "fifo/last/a", "screens/a", "screens/a-b"]
    assert {asked: begun(asked, some) for asked in ("fifo/first/a", "fifo/first/", "screens/a", "", "s")} == {
        "fifo/first/a": ["fifo/first/a"],
        "fifo/first/": ["fifo/first/a", "fifo/first/a-b"],
        "screens/a": ["screens/a"],
        "": ["fifo/first/a", "fifo/first/a-b", "fifo/last/a"],
        "s": [],
    }


@pytest.mark.soak
def test_who_reads_only_the_first_names_is_told_nothing_else() -> None:
    with _program("tests.proof.names", "poison") as naming:
        assert naming.stdout
        assert naming.stderr
        naming.stdout.close()
        assert naming.stderr.read() == ""


@pytest.mark.parametrize(
    "words",
    [("tests.proof",), ("tests.proof.names",), ("tests.proof.simulation",), ("tests.proof.machine",)],
    ids=" ".join,
)
def test_a_command_that_is_asked_for_nonsense_says_how_it_is_used(words: tuple[str, ...]) -> None:
    with _program(*words, "nonsense") as asked:
        told, said = asked.communicate()
    assert (asked.returncode, told, said.startswith(f"Usage: .venv/bin/python -m {words[0]}")) == (2, "", True)


def _make(asked: str, environment: Path) -> subprocess.CompletedProcess[str]:
    command = ["make", "prove", f"VENV={environment}", asked]
    path = {"PATH": os.environ["PATH"]}  # of what these tests were started with, `make` is to know nothing
    return subprocess.run(command, cwd=PROJECT, env=path, capture_output=True, text=True, check=False)


def _program(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", *words]
    return subprocess.Popen(command, cwd=PROJECT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
