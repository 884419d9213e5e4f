"""A process that cannot start says why in sentences, through every entry."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from django.core.management import get_commands

pytestmark = pytest.mark.soak

PROJECT = Path(__file__).parents[2]
CELERY = ["-m", "celery", "-A", "redrive_service"]
ENTRIES = {
    "manage.py check": ["manage.py", "check"],
    "manage.py migrate": ["manage.py", "migrate"],
    "manage.py check_pulse": ["manage.py", "check_pulse"],
    "worker": [*CELERY, "worker"],
    "beat": [*CELERY, "beat"],
    "web": ["manage.py", "serve", "--bind", "127.0.0.1:0", "--health", "127.0.0.1:0"],
}


def start_as(words: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **variables}
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, env=environment, cwd=PROJECT, check=False, timeout=60
    )


def start(entry: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return start_as(ENTRIES[entry], **variables)


#: Variables of which each is named once when it is missing.
NEEDED = (
    "SECRET_KEY", "ALLOWED_HOSTS", "DATABASE_URL", "REDIS_URL", "AWS_DEFAULT_REGION", "REDRIVE_CONTROL_QUEUE_URL",
    "REDRIVE_CAPTURE_QUEUE_URL", "REDRIVE_REPLAY_QUEUE_URL",
)  # fmt: skip


@pytest.mark.parametrize("entry", ENTRIES)
def test_without_an_environment_nothing_starts_and_everything_missing_is_named(entry: str) -> None:
    done = start(entry)

    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    named = [line.partition(" is not set. ")[0] for line in done.stderr.splitlines() if line.startswith("  - ")]
    assert named == [f"  - {name}" for name in NEEDED]


def test_a_python_without_django_is_named_with_what_to_type() -> None:
    typed = ".venv/bin/python manage.py drain_dlq 'my orders'"
    done = start_as(["-S", "manage.py", "drain_dlq", "my orders"])  # -S: without installed packages

    assert (done.returncode, done.stdout, done.stderr.splitlines()) == (
        1, "", [
            f"This Python, {sys.executable}, has no Django, which the service needs. Type: {typed}",
            "If the folder .venv does not exist, or its setup did not finish, type first: make setup",
        ],
    )  # fmt: skip


HELP = """
import django
from django.core.management import get_commands, load_command_class
django.setup()
for name, app in sorted(get_commands().items()):
    help = load_command_class(app, name).create_parser("manage.py", name).format_help()
    print(name, help.startswith(f"usage: manage.py {name} "))
"""


def test_without_an_environment_every_command_says_what_it_is_for() -> None:
    done = start_as(["-c", HELP], DJANGO_SETTINGS_MODULE="redrive_service.help_settings")

    ours = sorted(name for name, app in get_commands().items() if app != "redrive_service.sandbox")
    assert (done.stderr, done.stdout.splitlines()) == ("", [f"{name} True" for name in ours])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["help"], "\n  drain_dlq  "), (["help", "sandbox"], "usage: manage.py sandbox "),
        (["drain_dlq", "orders", "--help"], "usage: manage.py drain_dlq "),
    ],
)  # fmt: skip
def test_help_is_printed_without_an_environment(words: list[str], told: str) -> None:
    done = start_as(["manage.py", *words])

    assert (done.returncode, done.stderr, told in done.stdout) == (0, "", True)


def test_who_asks_for_what_is_only_named_help_is_refused_without_an_environment() -> None:
    done = start_as(["manage.py", "peek_dlq", "--", "--help"])

    assert (done.returncode, "The redrive service cannot start:" in done.stderr.splitlines()) == (1, True)


MANAGED = shlex.join([sys.executable, "manage.py"])
NOBODY_LISTENS = "postgres://redrive:hunter2@127.0.0.1:1/redrive"


@pytest.mark.parametrize("entry", ["manage.py migrate", pytest.param("manage.py check_pulse", marks=pytest.mark.soak)])
def test_a_database_that_does_not_answer_is_told_in_a_sentence(entry: str) -> None:
    done = start(entry, **{**os.environ, "DATABASE_URL": NOBODY_LISTENS})

    assert done.returncode == 1
    problem = "CommandError: PostgreSQL cannot be reached: " if "check" in entry else "PostgreSQL cannot be used: "
    assert done.stderr.startswith(problem)
    started = f"If the sandbox is stopped, start it in another terminal: make demo, or: {MANAGED} sandbox. If it runs"
    assert started in done.stderr
    assert done.stderr.endswith(", load its variables: . .sandbox/environment\n")
    assert "Traceback" not in done.stderr
    assert "hunter2" not in done.stderr


def test_a_database_without_tables_is_told_in_a_sentence() -> None:
    empty = os.environ["DATABASE_URL"].rpartition("/")[0] + "/template1"

    done = start("manage.py check_pulse", **{**os.environ, "DATABASE_URL": empty})

    assert done.returncode == 1
    invoked = shlex.join([sys.executable, "manage.py"])
    why = 'relation "redrive_heartbeat" does not exist'
    assert done.stderr == (f"CommandError: The database does not match this version: {why}. Run: {invoked} migrate\n")


@pytest.mark.parametrize("made", ["TABLE django_content_type (id int)", "TYPE django_content_type AS (id int)"])
def test_what_a_migration_makes_and_is_there_already_is_told_in_a_sentence(made: str) -> None:
    server, name = os.environ["DATABASE_URL"].rpartition("/")[0], f"half_made_{os.getpid()}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE template0".encode())
        try:
            with psycopg.connect(f"{server}/{name}") as other:
                other.execute(f"CREATE {made}".encode())
            done = start("manage.py migrate", **{**os.environ, "DATABASE_URL": f"{server}/{name}"})
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())

    assert done.returncode == 1
    assert done.stderr.startswith("The migration creates something that exists already: ")
    assert done.stderr.endswith(
        "If another migrate was running, run this again. "
        "If the database is new and empty, drop it and create it again.\n"
    )
    assert "Traceback" not in done.stderr


def test_what_is_there_already_without_a_migrate_is_not_taken_for_one() -> None:
    twice = "connection.cursor().execute('CREATE TEMP TABLE a (); CREATE TEMP TABLE a ()')"
    done = start_as(["manage.py", "shell", "-c", f"from django.db import connection; {twice}"], **os.environ)

    assert done.returncode == 1
    assert done.stderr.endswith('ProgrammingError: relation "a" already exists\n')


CLOSED = """
import os, sys
for number in (0, 1, 2):
    os.close(number)
os.execv(sys.executable, [sys.executable, "manage.py", *sys.argv[1:]])
"""


def test_a_command_whose_standard_streams_are_closed_does_what_it_was_told_all_the_same() -> None:
    done = start_as(["-c", CLOSED, "help"], PYTHONFAULTHANDLER="")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


STREAMS = """
import os, sys
sys.path.insert(0, os.getcwd())
for number in map(int, sys.argv[1:]):
    os.close(number)
    setattr(sys, ("stdin", "stdout", "stderr")[number], None)  # as Python does at its start
import manage

manage.open_what_is_closed()
print("said")
print("wrong", file=sys.stderr)
first = os.open(os.devnull, os.O_RDONLY)
os._exit(0 if first > 2 and all(map(os.get_inheritable, (0, 1, 2))) else 3)
"""


@pytest.mark.parametrize("closed", ["1", "2", "1 2", "0 1 2"])
def test_nothing_that_is_opened_later_takes_the_place_of_a_closed_stream(closed: str) -> None:
    done = start_as(["-c", STREAMS, *closed.split()])

    assert done.returncode == 0
