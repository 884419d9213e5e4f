"""The README's own commands lead from an empty account to a sent letter, and to a doctor who finds nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.conditions import eventually
from tests.sandbox.launching import MANAGE, sandbox

pytestmark = [pytest.mark.soak, pytest.mark.timeout(300)]

README = (MANAGE.parent / "README.md").read_text(encoding="utf-8")
GETTING_STARTED = (MANAGE.parent / "docs" / "getting-started.md").read_text(encoding="utf-8")
PRODUCTION = (MANAGE.parent / "docs" / "production.md").read_text(encoding="utf-8")
PULSE = ".venv/bin/python manage.py check_pulse"
#: What a local SQS cannot tell, and that nobody set up notifications.
SOUND = [
    "unknown SQS's clock against this machine's: SQS did not return its time.",
    "warning No destination gets notifications.",
    "unknown orders: The state of their consumers is unknown: the queues are not in AWS, so CloudWatch has no metrics",
]
#: The demo, which the page starts with, makes the tables. The sandbox of this test does not.
MIGRATED = (". .sandbox/environment", ".venv/bin/python manage.py migrate")
DOCTOR = (". .sandbox/environment", ".venv/bin/python manage.py redrive_doctor")


def block(page: str, has: str) -> list[str]:
    """The lines of the one block of commands that has this in it."""
    found = [text for text in re.findall(r"```\n(.*?)```", page, re.DOTALL) if has in text]
    assert len(found) == 1, has
    return [line.partition("   #")[0].strip() for line in found[0].splitlines()]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder that looks like a clone whose environment was set up."""
    for entry in MANAGE.parent.iterdir():
        if entry.name not in {".sandbox", ".venv"}:
            (tmp_path / entry.name).symlink_to(entry)
    for name, target in (("python", sys.executable), ("celery", str(Path(sys.executable).with_name("celery")))):
        program = tmp_path / ".venv" / "bin" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f'#!/bin/sh\nexec {target} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
    return tmp_path


@contextmanager
def running(clone: Path, line: str) -> Iterator[None]:
    """A program of the service, until it is asked to stop."""
    begin = f". .sandbox/environment && exec .venv/bin/{line}"
    with (clone / "programs.log").open("a", encoding="utf-8") as log:
        program = subprocess.Popen(["bash", "-c", begin], cwd=clone, env=outside(), stdout=log, stderr=log)
        try:
            yield
        finally:
            program.terminate()
            assert program.wait(timeout=30) == 0


def shell(clone: Path, *lines: str) -> tuple[int, str]:
    """What lines of a person's shell end with, and what they print; the first that fails is the last."""
    script = "\n".join(["set -e", *lines])
    done = subprocess.run(["bash", "-c", script], cwd=clone, env=outside(), text=True, capture_output=True, check=False)
    return done.returncode, done.stdout + done.stderr


def found(answer: tuple[int, str]) -> tuple[int, list[str]]:
    """The doctor's exit status, and every line that does not say that something is well."""
    lines = [
        line for line in answer[1].splitlines() if line.startswith(("  error", "  warning", "  note", "  unknown"))
    ]
    return answer[0], [" ".join(line.split()) for line in lines]


def outside() -> dict[str, str]:
    """The environment, without what the tests have put there."""
    ours = ("AWS_", "PYTHON", "REDRIVE", "DATABASE", "DJANGO", "REDIS", "SECRET")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def test_an_empty_account_becomes_a_redriven_dlq_and_the_doctor_finds_nothing(clone: Path) -> None:
    made, three = block(GETTING_STARTED, "provision_queues orders"), block(README, "add_dlq orders --url")
    programs = [line for line in block(PRODUCTION, "celery -A redrive_service beat") if line.startswith("celery")]
    with ExitStack() as under_way:
        under_way.enter_context(sandbox(clone / ".sandbox"))
        status, told = shell(clone, *MIGRATED, *made, *three)
        assert status == 0, told
        assert re.findall(r"^orders-\w+: (1 message.*)$", told, re.MULTILINE) == ["1 message: 1 delivered."]
        for program in programs:
            under_way.enter_context(running(clone, program))
        eventually(lambda: shell(clone, ". .sandbox/environment", PULSE)[0] == 0, within=60, every=1)
        assert found(shell(clone, *DOCTOR)) == (0, SOUND)
