"""A process that cannot start says why in sentences, through every entry."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

PROJECT = Path(__file__).parents[2]
CELERY = ["-m", "celery", "-A", "redrive_service"]
ENTRIES = {
    "manage.py check": ["manage.py", "check"],
    "manage.py migrate": ["manage.py", "migrate"],
    "manage.py check_pulse": ["manage.py", "check_pulse"],
    "worker": [*CELERY, "worker"],
    "beat": [*CELERY, "beat"],
    "web": ["-m", "gunicorn", "redrive_service.wsgi", "--bind", "127.0.0.1:0"],
}


def launch(entry: str, **variables: str) -> subprocess.Popen[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **variables}
    return subprocess.Popen(
        [sys.executable, *ENTRIES[entry]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=PROJECT,
    )


def start(entry: str, **variables: str) -> subprocess.CompletedProcess[str]:
    process = launch(entry, **variables)
    output, errors = process.communicate(timeout=60)
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(entry, marks=pytest.mark.soak if entry in ("manage.py migrate", "manage.py check_pulse") else ())
        for entry in ENTRIES
    ],
)
def test_without_an_environment_nothing_starts_and_everything_missing_is_named(entry: str) -> None:
    done = start(entry)

    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith("  - ")] == [
        line
        for line in done.stderr.splitlines()
        if line.startswith(
            (
                "  - SECRET_KEY is not set. ",
                "  - ALLOWED_HOSTS is not set. ",
                "  - DATABASE_URL is not set. ",
                "  - REDIS_URL is not set. ",
                "  - REDRIVE_CONTROL_QUEUE_URL is not set. ",
                "  - REDRIVE_CAPTURE_QUEUE_URL is not set. ",
                "  - REDRIVE_REPLAY_QUEUE_URL is not set. ",
                "  - AWS_DEFAULT_REGION is not set. ",
            )
        )
    ]
    assert done.stderr.count("  - DATABASE_URL is not set. ") == 1


def test_no_server_is_started_when_the_environment_is_missing() -> None:
    process = launch("manage.py check")
    process.communicate()

    assert [guard for guard in guards() if str(process.pid) in guard] == []


def guards() -> list[list[str]]:
    """The command lines of all guards on this machine; each names its parent."""
    commands = (process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"]))
    return [command for command in commands if any("guard.py" in word for word in command)]


NOBODY_LISTENS = "postgres://redrive:hunter2@127.0.0.1:1/redrive"


@pytest.mark.parametrize("entry", ["manage.py migrate", pytest.param("manage.py check_pulse", marks=pytest.mark.soak)])
def test_a_database_that_does_not_answer_is_told_in_a_sentence(entry: str) -> None:
    done = start(entry, **{**os.environ, "DATABASE_URL": NOBODY_LISTENS})

    assert done.returncode == 1
    assert done.stderr.startswith("PostgreSQL cannot be used: ")
    assert "Traceback" not in done.stderr
    assert "hunter2" not in done.stderr


def test_a_database_without_tables_is_told_in_a_sentence() -> None:
    empty = os.environ["DATABASE_URL"].rpartition("/")[0] + "/template1"

    done = start("manage.py check_pulse", **{**os.environ, "DATABASE_URL": empty})

    assert done.returncode == 1
    assert done.stderr == "The database has not all of its tables yet. Run: python manage.py migrate\n"
