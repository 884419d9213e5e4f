"""Run the tests; run those that failed once more, each alone, and say in the closing lines which passed then.

    python -m tests.flaky PYTEST'S ARGUMENTS

A test that passes the second time is flaky: a defect of the test or of the product, whose cause has to be found. It is
reported, and does not fail the run. A test that fails twice does.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

#: Pytest's exit status where tests failed.
_FAILED: Final = 1
#: More failures than these are no accident: they are not run again.
MOST: Final = 10


def run(arguments: Sequence[str]) -> int:
    """Run pytest with these arguments, and again with what failed.

    Returns:
        An exit status of pytest's: 0 where every test passed in one of its two runs.
    """
    with tempfile.TemporaryDirectory(prefix="redrive-flaky-") as folder:
        status = _pytest(folder, *arguments)
        failed = _failed(Path(folder))
        if status != _FAILED or not 0 < len(failed) <= MOST:
            return status
        print(f"\nRun again, alone: {len(failed)} that failed.", flush=True)
        status = _pytest(folder, *arguments, "--last-failed", "--last-failed-no-failures=none", "-n", "0")
        twice = _failed(Path(folder))
    for test in sorted(failed - twice):
        print(f"FLAKY {test}: failed once, passed alone. Find its cause.", flush=True)
    for test in sorted(twice):
        print(f"FAILED TWICE {test}", flush=True)
    return status


def _pytest(folder: str, *arguments: str) -> int:
    command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={folder}", *arguments]
    return subprocess.run(command, check=False).returncode


def _failed(folder: Path) -> set[str]:
    """The tests that pytest remembers as failed."""
    memory = folder / "v/cache/lastfailed"
    return set(json.loads(memory.read_text())) if memory.exists() else set()


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
