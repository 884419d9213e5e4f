"""Plant the bugs that are named, one after another; note and tell whether their tests notice: for who tries one."""

from __future__ import annotations

import os
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

from tests import servers
from tests.proof.asked import refused
from tests.proof.ledger import Ledger
from tests.proof.planted.bug import Bug
from tests.proof.planted.bugs import BUGS
from tests.proof.planted.stage import Stage
from tests.proof.planted.verdict import noted


def main() -> int:
    """0: each was noticed, or none was named and all were told."""
    parser = ArgumentParser(prog=".venv/bin/python -m tests.proof.planted", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="bugs to plant; none: tell which there are")
    names = parser.parse_args().names
    by_name = {bug.name: bug for bug in BUGS}
    if unknown := [name for name in names if name not in by_name]:
        parser.error(f"no bug is named {', '.join(unknown)}; without a name all of them are told")
    if names:
        ledger = Ledger()
        if why := refused(os.environ, ledger=ledger):
            sys.exit(why)
        return int(not all(_planted(ledger, [by_name[name] for name in names])))
    print("\n".join(f"{bug.name}: {bug.caught_by}" for bug in BUGS))  # noqa: T201  it is asked
    return 0


def _planted(ledger: Ledger, bugs: Sequence[Bug]) -> list[bool]:
    """Whether each was noticed; on servers that are started for it, as for every session of tests."""
    next(servers.pytest_load_initial_conftests())
    try:
        with tempfile.TemporaryDirectory(prefix="redrive-planted-") as folder, Stage(Path(folder)) as stage:
            before = stage.unbroken(bugs)
            if before.failed or before.trouble:
                sys.exit(f"Their tests do not pass without a bug: {before.trouble or before.failed}")
            return [_told(ledger, stage, bug) for bug in bugs]
    finally:
        servers.pytest_unconfigure()


def _told(ledger: Ledger, stage: Stage, bug: Bug) -> bool:
    ran = stage.broken(bug)
    said = noted(ledger, bug, ran)
    print(f"{bug.name}\n  {bug.file}\n  {bug.caught_by}\n  {ran.seconds:.0f} s: {said}", flush=True)  # noqa: T201  as above
    return ran.noticed


if __name__ == "__main__":
    sys.exit(main())
