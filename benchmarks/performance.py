"""Run the scenarios of docs/performance.md, and write the page from their figures.

    .venv/bin/python -m benchmarks.performance --short                   # one round of four scenarios: some minutes
    .venv/bin/python -m benchmarks.performance --only history-1m         # five rounds of one scenario
    .venv/bin/python -m benchmarks.performance                           # five rounds of all: many hours
    .venv/bin/python -m benchmarks.performance --page                    # writes the page again, runs nothing
    .venv/bin/python -m benchmarks.performance --try                     # 1,000 messages each; writes nothing

The figures are stored in docs/performance.json, each with its date. Scenarios that are not run now keep their figures.
Figures of more rounds are not replaced by figures of fewer rounds. Run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks.drains.performance_page import page
from benchmarks.drains.scenarios import ROUNDS, SCENARIOS, Scenario

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "performance.md"
FIGURES: Final = ROOT / "docs" / "performance.json"
#: What `--try` runs instead: enough to see that a scenario works, too little to measure anything.
TRIED: Final = {"--letters": 1_000, "--history": 10_000}
_BASELINE: Final = "--baseline="


def kept() -> dict[str, Any]:
    """Return the stored figures, by scenario."""
    found: dict[str, Any] = json.loads(FIGURES.read_text(encoding="utf-8"))
    return found


def write(figures: dict[str, Any]) -> None:
    """Store the figures, and write docs/performance.md from them."""
    FIGURES.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(page(figures), encoding="utf-8")


def measure(scenario: Scenario, arguments: Sequence[str]) -> dict[str, Any] | None:
    """Run a scenario in a process of its own; return its figures, None if it failed."""
    load, began = os.getloadavg()[0], datetime.now(UTC)  # noqa: TID251  # a program's own clock
    with tempfile.TemporaryDirectory(prefix="redrive-figures-") as folder:
        file = Path(folder) / "figures.json"
        command = [sys.executable, str(ROOT / "benchmarks" / "drain.py"), *arguments, "--figures", str(file)]
        print(f"\n== {scenario.name}: {scenario.about}", flush=True)
        subprocess.run(command, check=False)  # its limits are no limits of this page
        if not file.exists():
            return None
        figures: dict[str, Any] = json.loads(file.read_text())
    for result in figures["rounds"]:
        del result["longest"]
    told = {"date": f"{began:%Y-%m-%d}", "commit": _commit(), "load": round(load, 1), "options": scenario.options}
    return {**figures, **told}


def _commit() -> str:
    """Return the commit of the code, with `+` if files were changed since the commit."""
    code = ["benchmarks", "redrive_service", "reprocessing"]
    here, changed = (
        subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
        for command in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "--", *code])
    )
    return f"{here or 'unknown'}{'+' if changed else ''}"


def tried(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of `drain.py`, changed to few letters (`--try`)."""
    small = list(arguments)
    for number, argument in enumerate(small):
        if argument in TRIED:
            small[number + 1] = str(min(int(small[number + 1]), TRIED[argument]))
        elif argument.startswith(_BASELINE):
            small[number] = _BASELINE + " ".join(tried(argument.removeprefix(_BASELINE).split()))
    return small


def run(scenarios: Sequence[Scenario], rounds: int, *, is_trial: bool) -> list[str]:
    """Run scenarios, and write the page after each, unless `is_trial`; return the names of those that failed."""
    failed = []
    for scenario in scenarios:
        arguments = scenario.arguments(rounds)
        found = measure(scenario, tried(arguments) if is_trial else arguments)
        if found is None:
            failed.append(scenario.name)
        elif not is_trial:
            _keep(scenario, found)
    return failed


def _keep(scenario: Scenario, found: dict[str, Any]) -> None:
    figures = kept()
    before = len(figures.get(scenario.name, {"rounds": []})["rounds"])
    if before > len(found["rounds"]):
        print(f"{PAGE.name} keeps the figures of {scenario.name}: they are of {before} rounds.")
        return
    write({**figures, scenario.name: found})


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the given options."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.performance", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    names = [scenario.name for scenario in SCENARIOS]
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=f"one of {', '.join(names)}")
    parser.add_argument("--short", action="store_true", help="one round of the scenarios of `make bench`")
    parser.add_argument("--rounds", type=int, help=f"(default: {ROUNDS}, with --short or --try 1)")
    parser.add_argument("--try", action="store_true", dest="is_trial", help="few messages; write nothing")
    parser.add_argument("--page", action="store_true", help="write the page from the kept figures, run nothing")
    given = parser.parse_args(arguments)
    if given.rounds is not None and given.rounds < 1:
        parser.error("--rounds must be at least 1.")
    return given


def main() -> int:
    """Run what was asked for; return 1 if a scenario failed."""
    given = parse()
    if given.page:
        write(kept())
        return 0
    chosen = [
        scenario
        for scenario in SCENARIOS
        if (scenario.name in given.only if given.only else scenario.is_short or not given.short)
    ]
    rounds = given.rounds or (1 if given.short or given.is_trial else ROUNDS)
    failed = run(chosen, rounds, is_trial=given.is_trial)
    if failed:
        print(f"Failed: {', '.join(failed)}. Their figures are as they were.", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
