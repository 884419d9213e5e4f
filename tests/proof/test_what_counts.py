"""What counts as proved: what was tried, within a time that has an end, and written down."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from errno import EACCES
from importlib import import_module
from itertools import count, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.proof import conftest
from tests.proof.asked import misnamed, refused
from tests.proof.dependencies.outages import is_felt
from tests.proof.ledger import Entry, Ledger
from tests.proof.names import LAYERS
from tests.proof.simulation.test_simulation import _seeds


def test_a_test_of_the_long_form_that_tried_nothing_fails(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
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


@pytest.mark.parametrize("minutes", ["x", "", "0", "-1", "nan", "inf"])
def test_a_time_without_end_and_none_at_all_are_refused(minutes: str, tmp_path: Path) -> None:
    assert refused({"PROVE_MINUTES": minutes}, ledger=_kept(tmp_path)) == (
        f"MINUTES is {minutes!r}: how many minutes each test may take, such as 10 or 0.5."
    )


@pytest.mark.parametrize("name", ["PROVE_SEED", "PROVE_SEEDS", "PROVE_REPETITION", "PROVE_BOOTHS"])
def test_a_number_that_is_none_is_refused(name: str, tmp_path: Path) -> None:
    for asked in ("abc", "-1", "1" * 19):  # the ledger passes over what is longer
        assert refused({name: asked}, ledger=_kept(tmp_path)) == (
            f"{name} is {asked!r}: it is a whole number of at most 18 figures, such as 3."
        )
    assert refused({name: "3"}, ledger=_kept(tmp_path)) == ""


def test_a_layer_that_is_none_is_refused_with_those_that_are(tmp_path: Path) -> None:
    assert refused({}, "nonsense", _kept(tmp_path)) == (
        "LAYER is 'nonsense'; there are: simulation, machine, failpoints, dependencies, planted, poison. "
        "It is one of them; several need several commands."
    )
    assert [refused({}, one, _kept(tmp_path)) for one in ("", *LAYERS, "poison/test_screens.py")] == [""] * 8
    for none in ("poison/nonsense", "simulation machine", "simulation/../../", "simulation/..", "..", "/tmp"):
        assert refused({}, none, _kept(tmp_path)).startswith(f"LAYER is {none!r}; there are: ")


@pytest.mark.parametrize(
    ("variable", "asked", "like"),
    [
        ("PROVE_CASE", "redis is stoped", "'redis is stopped'"),
        ("PROVE_CELL", "leased, no head through the gate: kill-9", "'lanes leased, no head through the gate: kill -9'"),
        ("POISON", "screens/nothing of this name at all", ""),
        ("POISON", "scr", ""),
        ("PROVE_CASE", "", ""),
    ],
)
def test_a_case_that_there_is_not_is_refused_with_what_is_like_it_and_where_all_are(
    variable: str, asked: str, like: str
) -> None:
    said = misnamed({variable: asked})
    layer = {"PROVE_CASE": "dependencies", "PROVE_CELL": "failpoints", "POISON": "poison"}[variable]
    assert said.startswith(f"{variable} is {asked!r}, and names no case; it is ")
    assert said.endswith(f"All names: .venv/bin/python -m tests.proof.names {layer}")
    assert like in said


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"PROVE_CASE": "redis is stopped"},
        {"PROVE_CASE": "all in turn for ten minutes"},
        {"PROVE_CELL": "kill -9"},
        {"POISON": "fifo/first"},
        {"POISON": "screens/"},
        {"POISON": ""},
    ],
)
def test_a_case_that_there_is_is_not_refused(asked: dict[str, str]) -> None:
    assert misnamed(asked) == ""


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


def test_a_ledger_that_is_shut_is_told_in_a_sentence_before_anything_is_tried(tmp_path: Path) -> None:
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.touch()
    folder.mkdir()
    said = [refused({}, ledger=Ledger(one)) for one in (file / "ledger.jsonl", folder)]
    cure = "move what is there away: the ledger is a file in a folder of its own."
    assert said == [
        f"The ledger of what is proved, {file}/ledger.jsonl, cannot be written: {file}: File exists; {cure}",
        f"The ledger of what is proved, {folder}, cannot be written: {folder}: Is a directory; {cure}",
    ]


@pytest.mark.parametrize("of_another", [False, True])
@pytest.mark.parametrize(("call", "done"), [("open", "written"), ("read_bytes", "read")])
def test_a_ledger_that_is_not_to_be_opened_is_told_with_its_cure(
    call: str, done: str, of_another: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the system says it to whoever is not root."""
    file, me = tmp_path / "ledger.jsonl", tmp_path.stat().st_uid + of_another
    monkeypatch.setattr(os, "geteuid", lambda: me)

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(EACCES, "Permission denied", str(file))

    with monkeypatch.context() as patch:
        patch.setattr(os if call == "open" else Path, call, denied)
        said = refused({}, ledger=Ledger(file))
    ours = f"let this user write and read it and its folder (chmod u+rwX {tmp_path} {file})"
    cure = f"it belongs to another user; as root: chown -R {me} {tmp_path}" if of_another else ours
    assert said == f"The ledger of what is proved, {file}, cannot be {done}: {file}: Permission denied; {cure}."


def test_a_ledger_for_which_there_is_no_folder_and_can_be_none_is_told_with_its_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ".proof"

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(EACCES, "Permission denied", str(folder))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", denied)
        said = refused({}, ledger=_kept(folder))
    assert said == (
        f"The ledger of what is proved, {folder}/ledger.jsonl, cannot be written: {folder}: Permission denied; "
        f"let this user write to {tmp_path}."
    )


def test_what_is_no_entry_is_passed_over(tmp_path: Path) -> None:
    ledger = _kept(tmp_path)
    whole = {"layer": "simulation", "name": "7", "passed": True, "why": "", "figures": {"steps": 2.0}, "at": "then"}
    wrong = {"name": ["7"], "passed": "yes", "figures": {"x": "1"}, "why": None, "at": 1, "layer": 3, "more": 1}
    figures = (float("nan"), float("inf"), -float("inf"), 1.1e15, 10**400)
    lines = [
        *({**whole, name: value} for name, value in wrong.items()),
        *({**whole, "figures": {"steps": one}} for one in figures),
        {**whole, "name": "seven"}, {**whole, "layer": "simulated"}, 7, [], whole,
    ]  # fmt: skip
    text = "\n".join(map(json.dumps, lines))
    (tmp_path / "ledger.jsonl").write_text(f'{text}\n{{"layer": "simul')
    assert list(ledger.entries()) == [Entry(**whole)]  # type: ignore[arg-type]  # as it was written


def test_of_the_ledger_no_line_is_empty_and_no_entry_is_lost_behind_a_torn_one(tmp_path: Path) -> None:
    ledger, file = _kept(tmp_path), tmp_path / "ledger.jsonl"
    for seed in ("1", "2"):
        ledger.note("simulation", seed, passed=True)
    with file.open("a") as torn:
        torn.write('{"layer": "simul')
    ledger.open_up()
    for seed in ("3", "4"):
        ledger.note("simulation", seed, passed=True)
    assert [line[:16] for line in file.read_text().split("\n")] == ['{"layer": "simul'] * 5 + [""]
    assert [one.name for one in ledger.entries()] == ["1", "2", "3", "4"]


def test_what_failed_last_comes_first_and_then_what_passed_least_often(tmp_path: Path) -> None:
    ledger = _kept(tmp_path)
    for name, passed in (("a", True), ("a", True), ("b", True), ("c", False), ("d", True), ("d", True), ("d", False)):
        ledger.note("planted", name, passed=passed)
    assert list(ledger.turns("planted", "abcde").items()) == [("c", 0), ("d", 0), ("e", 1), ("b", 2), ("a", 3)]


def test_seeds_that_failed_last_are_played_before_those_that_nobody_has_played(tmp_path: Path) -> None:
    ledger = _kept(tmp_path)
    for name, passed in (("0", True), ("3", False), ("6", True), ("6", False), ("1", False), ("9", True)):
        ledger.note("simulation", name, passed=passed)
    assert list(islice(_seeds(ledger, 0), 4)) == [3, 6, 12, 15]


def test_a_fault_that_reports_nothing_was_not_felt() -> None:
    assert [is_felt(seen) for seen in ({}, {"a": 0}, {"a": 1, "b": 0}, {"a": 1})] == [False, False, False, True]


def test_what_failed_last_is_known_until_it_passes(tmp_path: Path) -> None:
    ledger = _kept(tmp_path)
    for name, passed in (("a", True), ("b", False), ("c", False), ("a", False), ("c", True)):
        ledger.note("planted", name, passed=passed)
    ledger.note("poison", "d", passed=False)
    assert ledger.failing("planted") == ["a", "b"]


def test_the_handbook_says_how_many_tests_share_the_minutes_of_a_layer() -> None:
    here = Path(conftest.__file__).parent
    table = re.findall(r"^\| `(\w+)` \| (\d+) \|", (here.parents[1] / "docs" / "proof.md").read_text(), re.MULTILINE)
    assert {layer: int(tests) for layer, tests in table} == {layer: _long(here / layer) for layer in LAYERS}


def _kept(folder: Path) -> Ledger:
    return Ledger(folder / "ledger.jsonl")


def _long(layer: Path) -> int:
    modules = [import_module(f"tests.proof.{layer.name}.{file.stem}") for file in layer.glob("test_*.py")]
    tests = [(module, test) for module in modules for name, test in vars(module).items() if name.startswith("test_")]
    marked = [{one.name: one.args for one in [*_marks(module), *_marks(test)]} for module, test in tests]
    long = [marks for marks in marked if "prove" in marks and "skipif" not in marks]
    return sum(len(marks.get("parametrize", ("", [""]))[1]) for marks in long)


def _marks(of: object) -> list[pytest.MarkDecorator]:
    found: Any = getattr(of, "pytestmark", [])
    return found if isinstance(found, list) else [found]
