"""docs/performance.md has the figures of docs/performance.json, and its scenarios are drains."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, Final

import pytest

from benchmarks import performance
from benchmarks.drains.drain_plan import Plan, add_options, plan_of
from benchmarks.drains.performance_page import page
from benchmarks.drains.scenarios import SCENARIOS, Scenario

ROUND: Final[dict[str, Any]] = {
    "service": 900.0, "movers": {"1": 600.0, "16": 1800.0}, "first_tenth": 800.0, "sent": 1000.0, "last_tenth": None,
    "others": None, "hot": None, "calls": 0.34, "statements": 0.05, "wal": 4_000.0,
    "processor": {"worker": {"capture": 0.5, "replay": 0.25}, "PostgreSQL": {"capture": 0.25, "replay": 0.25}},
    "memory": {"rss": 400_000_000}, "connections": 3, "seconds": {"all": 12.0, "capture": 2.0, "replay": 8.0},
}  # fmt: skip
FIGURES: Final[dict[str, Any]] = {
    "machine": "2 cores", "date": "2026-01-01", "commit": "abc", "load": 0.1, "options": "--letters 10000",
    "rounds": [ROUND, {**ROUND, "service": 1100.0}, {**ROUND, "service": 1000.0}],
}  # fmt: skip


def plan(options: str) -> Plan:
    """The plan of these options."""
    parser = argparse.ArgumentParser()
    add_options(parser)
    return plan_of(parser, parser.parse_args(options.split()))


def rows(text: str, name: str) -> list[str]:
    """The page's rows of a scenario."""
    return [line for line in text.splitlines() if line.startswith(f"| `{name}`")]


def test_the_page_shows_its_figures_and_nothing_else() -> None:
    written = performance.PAGE.read_text(encoding="utf-8")
    assert written == page(performance.kept()), "Run: .venv/bin/python -m benchmarks.performance --page"


def test_each_scenario_is_a_drain() -> None:
    assert [plan(scenario.options).rounds for scenario in SCENARIOS] == [1] * len(SCENARIOS)
    assert {plan(scenario.baseline).rounds for scenario in SCENARIOS if scenario.baseline} == {2}


def test_a_scenario_s_figures_are_medians_with_their_ranges() -> None:
    assert rows(page({"plain": FIGURES}), "plain") == [
        "| `plain` | 10,000 | 1,000 (900 to 1,100) | 600 (600 to 600) | 1.67 | 1,800 (1,800 to 1,800) | 0.56 |",
        "| `plain` | 5,000 | 1,250 | 1,000 | 2.08 |",
        "| `plain` | 0.34 | 0.050 | 4.0 | 0.50 | 0.25 | 0.50 | 0.00 | 0.00 |",
        "| `plain` | 800 | 1,000 | - | 400 | - | 3 |",
        "| `plain` | SQS answers at once | `--letters 10000` | 2026-01-01 | abc | 3 | 0.1 |",
    ]


def compared_with(service: float, sent: float, **round_: float) -> dict[str, Any]:
    """A round whose baseline drained so many messages per second, and made so many first attempts per second."""
    spent = {"PostgreSQL": {"capture": 0.2, "replay": 0.2}}
    return {**ROUND, **round_, "baseline": {**ROUND, "service": service, "sent": sent, "processor": spent}}


def test_a_scenario_s_ratio_is_the_median_of_its_rounds_ratios_to_plain() -> None:
    found = {**FIGURES, "rounds": [compared_with(900, 4_000), compared_with(450, 2_000), compared_with(1_800, 500)]}
    assert rows(page({"fifo": found}), "fifo")[4] == (
        "| `fifo` | 900 | 900 | 1.00 | 1,000 | 2,000 | 0.50 | 0.50 | 0.40 | 1.25 |"
    )


def test_the_other_keys_of_a_hot_key_are_compared_with_plain() -> None:
    found = {**FIGURES, "rounds": [compared_with(1_200, 2_000, others=1_900.0, hot=100.0)]}
    named = rows(page({"hot-key": found}), "hot-key")
    assert (named[4], len(named)) == ("| `hot-key` | 1,900 | 100 | 0.95 |", 6)


def test_the_bound_of_a_postgresql_is_computed_from_its_processor_time() -> None:
    assert "(2 cores: 4,000; 4 cores: 8,000; 8 cores: 16,000)" in page({"plain": FIGURES})


def test_figures_of_fewer_rounds_do_not_replace_those_of_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(performance, "FIGURES", tmp_path / "figures.json")
    monkeypatch.setattr(performance, "PAGE", tmp_path / "page.md")
    performance.write({"plain": FIGURES})
    short = {**FIGURES, "rounds": [ROUND], "date": "2026-02-02"}
    monkeypatch.setattr(performance, "measure", lambda scenario, _: {"plain": short, "fifo": short}[scenario.name])
    chosen = [scenario for scenario in SCENARIOS if scenario.name in {"plain", "fifo"}]
    assert performance.run(chosen, 1, is_trial=False) == []
    assert json.loads(performance.FIGURES.read_text()) == {"fifo": short, "plain": FIGURES}


def test_a_trial_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before, asked = performance.kept(), list[Any]()

    def measure(_: Scenario, arguments: list[str]) -> dict[str, Any]:
        asked.append(arguments)
        return FIGURES

    monkeypatch.setattr(performance, "measure", measure)
    chosen = [scenario for scenario in SCENARIOS if scenario.name == "history-10m"]
    assert performance.run(chosen, 1, is_trial=True) == []
    assert asked == [
        ["--letters", "1000", "--history", "10000", "--rounds", "1", "--baseline=--letters 1000 --rounds 2"]
    ]
    assert performance.kept() == before


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("--failures 0.1", "--failures needs --outcome absence"),
        ("--http 50 --kind fifo", "--http goes with neither"),
        ("--hot 30", "are shares"),
        ("--letters 0", "must be at least 1"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    options: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        plan(options)
    assert why in capsys.readouterr().err
