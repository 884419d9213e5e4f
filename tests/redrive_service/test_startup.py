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


def start(entry: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **variables}
    return subprocess.run(
        [sys.executable, *ENTRIES[entry]],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=PROJECT,
        timeout=60,
    )


@pytest.mark.parametrize("entry", ENTRIES)
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
    before = guards()

    start("manage.py check")

    assert guards() == before


def guards() -> set[int]:
    processes = psutil.process_iter(["cmdline"])
    return {process.pid for process in processes if any("guard.py" in word for word in process.info["cmdline"] or [])}
