"""What counts as proved: what was tried, within a time that has an end, and written down."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from itertools import count, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.proof import conftest
from tests.proof.dependencies.outages import is_felt
from tests.proof.ledger import Ledger
from tests.proof.machine.test_machine import _chunks
from tests.proof.names import LAYERS
from tests.proof.simulation.test_simulation import _seeds


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.jsonl")


def note(ledger: Ledger, layer: str, *results: tuple[str, bool]) -> None:
    for name, passed in results:
        ledger.note(layer, name, passed=passed)


def test_a_test_of_the_long_form_that_tried_nothing_fails(ledger: Ledger) -> None:
    item: Any = SimpleNamespace(funcargs={"ledger": ledger})
    for tries in (0, 1):
        calling = conftest.pytest_runtest_call(item)
        next(calling)
        for number in range(tries):
            ledger.note("planted", str(number), passed=True)
        with pytest.raises(StopIteration if tries else pytest.fail.Exception, match=None if tries else "Nothing was"):
            calling.send(None)


def test_time_begins_when_it_is_first_asked(is_time: Callable[[], bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was done before, one case is begun."""
    now = [1_000_000.0]
    monkeypatch.setattr(conftest, "monotonic", lambda: now[0])
    monkeypatch.setenv("PROVE_MINUTES", "2")
    seen = []
    for seconds in (5_000, 119, 2):
        now[0] += seconds
        seen.append(is_time())
    assert seen == [True, True, False]


def test_one_case_is_begun_however_little_time_there_is(
    is_time: Callable[[], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = count()
    monkeypatch.setattr(conftest, "monotonic", lambda: float(next(seconds)))
    monkeypatch.setenv("PROVE_MINUTES", "0.001")
    assert [is_time(), is_time()] == [True, False]


def test_of_the_ledger_no_line_is_empty_and_no_entry_is_lost_behind_a_torn_one(ledger: Ledger, tmp_path: Path) -> None:
    file = tmp_path / "ledger.jsonl"
    note(ledger, "simulation", ("1", True), ("2", True))
    with file.open("a") as torn:
        torn.write('{"layer": "simul')
    ledger.open_up()
    note(ledger, "simulation", ("3", True), ("4", True))
    assert [line[:16] for line in file.read_text().split("\n")] == ['{"layer": "simul'] * 5 + [""]
    assert [entry.name for entry in ledger.entries()] == ["1", "2", "3", "4"]


def test_what_failed_last_comes_first_until_it_passes_and_then_what_passed_least_often(ledger: Ledger) -> None:
    note(ledger, "planted", ("a", True), ("a", True), ("b", True), ("c", False), ("d", True), ("d", True), ("d", False))
    note(ledger, "planted", ("f", False), ("f", True))
    note(ledger, "poison", ("e", False))
    turns = [("c", 0), ("d", 0), ("e", 1), ("b", 2), ("f", 2), ("a", 3)]
    assert (list(ledger.turns("planted", "abcdef").items()), ledger.failing("planted")) == (turns, ["c", "d"])


def test_seeds_and_chunks_that_failed_last_are_played_before_those_that_nobody_has_played(ledger: Ledger) -> None:
    """A number that a person chose, far from the others, leaves out none before it."""
    note(ledger, "simulation", ("0", True), ("3", False), ("6", True), ("6", False), ("1", False), ("9", True))
    note(ledger, "simulation", ("1000000", True))
    note(ledger, "machine", ("1", True), ("4", False), ("1000000", True))
    assert list(islice(_seeds(ledger, 0), 4)) == [3, 6, 12, 15]
    assert list(islice(_seeds(ledger, 1), 3)) == [1, 4, 7]
    assert list(islice(_chunks(ledger), 4)) == [4, 0, 2, 3]


def test_a_fault_that_reports_nothing_was_not_felt() -> None:
    assert [is_felt(seen) for seen in ({}, {"a": 0}, {"a": 1, "b": 0}, {"a": 1})] == [False, False, False, True]


def test_the_handbook_says_how_many_tests_share_the_minutes_of_a_layer() -> None:
    here = Path(conftest.__file__).parent
    table = re.findall(r"^\| `(\w+)` \| (\d+) \|", (here.parents[1] / "docs" / "proof.md").read_text(), re.MULTILINE)
    assert {layer: int(tests) for layer, tests in table} == {layer: _long(here / layer) for layer in LAYERS}


def _long(layer: Path) -> int:
    """How many tests its long form has, without those that play one case again."""
    modules = [import_module(f"tests.proof.{layer.name}.{file.stem}") for file in layer.glob("test_*.py")]
    tests = [(module, test) for module in modules for name, test in vars(module).items() if name.startswith("test_")]
    marked = [{one.name: one.args for one in [*_marks(module), *_marks(test)]} for module, test in tests]
    long = [marks for marks in marked if "prove" in marks and "skipif" not in marks]
    return sum(len(marks.get("parametrize", ("", [""]))[1]) for marks in long)


def _marks(of: object) -> list[pytest.MarkDecorator]:
    found: Any = getattr(of, "pytestmark", [])
    return found if isinstance(found, list) else [found]
