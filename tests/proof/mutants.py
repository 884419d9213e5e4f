"""Break the code of `reprocessing/domain` at random with mutmut, and count how many of the faults its tests notice.

A mutant is the code with one small change, such as `and` for `or`. The same --sample and --seed give the same mutants,
until the code changes. The score is the share of mutants with which a test of `tests/reprocessing/domain` fails. Some
mutants behave like the code itself, so the score of good tests is not 100 %.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import chdir
from itertools import chain
from multiprocessing import Pool
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.stats import status_by_exit_code
from mutmut.utils.format_utils import get_mutant_name

from tests.proof.names import without_servers

PROJECT: Final = Path(__file__).resolve().parents[2]
DOMAIN: Final = Path("reprocessing/domain")
#: The least share of mutants that the tests have to notice.
LEAST: Final = 0.9
_NOTICED: Final = frozenset({"killed", "timeout"})
_PROCESSES: Final = 2


def main() -> int:
    """Return 0 if the score is at least `LEAST`, else 1."""
    parser = ArgumentParser(prog=".venv/bin/python -m tests.proof.mutants", description=__doc__)
    parser.add_argument("--sample", type=int, default=400, metavar="N", help="how many mutants (400)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="which mutants (1)")
    asked = parser.parse_args()
    without_servers()
    with TemporaryDirectory(prefix="redrive-mutants-") as folder:
        copy = Path(folder) / "project"
        shutil.copytree(PROJECT, copy, ignore=shutil.ignore_patterns(".*", "static", "__pycache__"))
        with chdir(copy):
            every = all_mutants()
            chosen = sampled(every, asked.sample, random.Random(asked.seed))
            _tell(f"{len(chosen):,} of {len(every):,} mutants, with seed {asked.seed}: a minute for each 50")
            return report(run(chosen))


def all_mutants() -> list[str]:
    """Return the names of all mutants of the domain."""
    with Pool(_PROCESSES) as pool:
        return sorted(chain.from_iterable(pool.imap_unordered(_mutants_of, DOMAIN.rglob("*.py"))))


def _mutants_of(file: Path) -> list[str]:
    mutated = mutate_file_contents(str(file), file.read_text())
    return [get_mutant_name(file, name) for name in mutated.mutant_names]


def sampled(every: Sequence[str], size: int, dice: random.Random) -> list[str]:
    """Return `size` of the names: one of each of as many equal parts, so that all modules have their share."""
    size = min(size, len(every))
    return [every[dice.randrange(part * len(every) // size, (part + 1) * len(every) // size)] for part in range(size)]


def run(chosen: Sequence[str]) -> dict[str, str]:
    """Run the tests with each mutant; return by mutant what mutmut says of it: killed, survived, no tests."""
    program = Path(sys.executable).with_name("mutmut")
    done = subprocess.run(
        [program, "run", "--max-children", str(_PROCESSES), *chosen], env=os.environ, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"mutmut ended with {done.returncode}: {(done.stdout + done.stderr)[-2_000:]}")
    codes: dict[str, int | None] = {}
    for file in DOMAIN.rglob("*.py"):
        data = SourceFileMutationData(path=file)
        data.load()
        codes |= data.exit_code_by_key
    return {name: status_by_exit_code[codes[name]] for name in chosen}


def report(found: Mapping[str, str]) -> int:
    """Print the mutants that no test noticed, and the score of each module and of all; return the exit status."""
    by_module: dict[str, list[bool]] = defaultdict(list)
    for name, status in found.items():
        module = name.removeprefix("reprocessing.domain.").rpartition(".")[0]
        by_module[module].append(status in _NOTICED)
        if status not in _NOTICED:
            changed = [line for line in get_diff_for_mutant(name).splitlines()[2:] if line.startswith(("-", "+"))]
            _tell("\n".join([f"{status}: {name}", *changed]))
    for module, noticed in sorted(by_module.items()):
        _tell(f"{sum(noticed):>5} of {len(noticed):>3}  {module}")
    score = sum(map(sum, by_module.values())) / len(found)
    _tell(f"{score:.1%} of {len(found):,} mutants were noticed; at least {LEAST:.0%} are required.")
    return int(score < LEAST)


def _tell(text: str) -> None:
    print(text, flush=True)  # noqa: T201  it is asked


if __name__ == "__main__":
    sys.exit(main())
