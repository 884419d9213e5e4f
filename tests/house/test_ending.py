"""A test session that is told to end leaves neither servers nor their data."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

PROJECT = Path(__file__).parents[2]
LONG = """
import time

def test_that_takes_long():
    print("begun", flush=True)
    time.sleep(600)
"""


@pytest.mark.soak
def test_a_session_that_is_told_to_end_leaves_nothing_behind(tmp_path: Path) -> None:
    test, data = tmp_path / "test_long.py", tmp_path / "data"
    test.write_text(LONG)
    data.mkdir()
    left = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", str(test), "-s", "-p", "no:cacheprovider", "-c", "pyproject.toml"],
        cwd=PROJECT, env={**left, "TMPDIR": str(data)}, stdout=subprocess.PIPE, text=True,
    ) as session:  # fmt: skip
        assert session.stdout is not None
        assert any("begun" in line for line in session.stdout)
        started = psutil.Process(session.pid).children(recursive=True)
        there = len(list(data.glob("redrive-tests-*")))
        session.send_signal(signal.SIGTERM)
        told = session.stdout.read()
    psutil.wait_procs(started, timeout=30)
    running = [one for one in started if one.is_running()]
    assert (session.returncode, there, bool(started), running) == (143, 1, True, [])
    assert list(data.glob("redrive-tests-*")) == []
    assert "It was told to end (SIGTERM)." in told
