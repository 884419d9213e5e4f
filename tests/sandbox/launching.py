"""`manage.py sandbox` as a person starts it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from pathlib import Path

import psutil
import pytest

from redrive_service.sandbox.management.commands.sandbox import Command

MANAGE = Path(__file__).parents[2] / "manage.py"
Environment = dict[str, str]


@contextmanager
def sandbox(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], Environment]]:
    """`manage.py sandbox` in a folder, and the environment it prints; ended at the end, if it still runs."""
    command = [sys.executable, str(MANAGE), "sandbox", "--folder", str(folder), *options]
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHON"))}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=outside, cwd=folder.parent
    )
    try:
        yield process, printed_environment(process)
    finally:
        process.terminate()
        process.communicate(timeout=30)


def printed_environment(process: subprocess.Popen[str]) -> Environment:
    assert process.stdout is not None
    printed: Environment = {}
    while "REDRIVE_REPLAY_QUEUE_URL" not in printed:
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        name, _, value = line.removeprefix("export ").strip().partition("=")
        printed[name] = shlex.split(value)[0]
    return printed


def processes_of(folder: Path) -> list[str]:
    commands = (" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"]))
    return [command for command in commands if str(folder) in command]


def refusal(*options: str) -> tuple[int, str]:
    command = [sys.executable, str(MANAGE), "sandbox", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr.strip()


def refused_here(*options: str) -> tuple[int | str | None, str]:
    """As `refusal`, of the command itself: what is refused starts no server, so it needs no process of its own."""
    with redirect_stderr(StringIO()) as told, pytest.raises(SystemExit) as ended:
        Command().run_from_argv(["manage.py", "sandbox", *options])
    return ended.value.code, told.getvalue().strip()
