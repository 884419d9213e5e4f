"""Real beats in processes of their own, that compete for one schedule in a throw-away database."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from tests.broker.local_sqs import SOURCES, LocalSqs
from tests.conditions import eventually

START = 40.0  # seconds until a beat leads, with other tests beside it on two cores
LEADS = "redrive.beat.leads"
APPLICATION = "tests.redrive_service.beat.ticking"


@contextmanager
def throw_away_database(server_url: str, *, like: str = "template1") -> Iterator[str]:
    """The URL of a new database beside the one that `server_url` names: empty, or a copy of the one named `like`."""
    name = f"beat_{uuid.uuid4().hex}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        copy = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(like))
        connection.execute(copy)
        try:
            yield urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@dataclass(slots=True, kw_only=True)
class Schedule:
    """The schedule of one tick a second, in its database, and the queue the ticks go to."""

    sqs: LocalSqs
    database_url: str
    folder: Path
    ticks_url: str = field(init=False)

    def __post_init__(self) -> None:
        self.ticks_url = self.sqs.make_queue("ticks")

    def migrate(self) -> None:
        command = [sys.executable, "-m", "django", "migrate", "--verbosity", "0"]
        subprocess.run(command, env=self.environment(), cwd=SOURCES, check=True)

    def environment(self) -> dict[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CELERY_"))},
            **self.sqs.environment,
            "DJANGO_SETTINGS_MODULE": "tests.redrive_service.beat.beat_settings",
            "DATABASE_URL": self.database_url,
            "BEAT_QUEUES": json.dumps({"redrive-control": self.ticks_url, "ticks": self.ticks_url}),
        }

    def runs(self) -> int:
        with psycopg.connect(self.database_url) as connection:
            row = connection.execute("SELECT sum(total_run_count) FROM django_celery_beat_periodictask").fetchone()
        return int(row[0] or 0) if row else 0

    def sends(self) -> int:
        return len(self.sqs.calls(action="SendMessage", queue="ticks"))

    def end(self) -> None:
        """No more ticks; returns once every claimed one was sent."""
        with psycopg.connect(self.database_url) as connection:
            connection.execute("UPDATE django_celery_beat_periodictask SET enabled = false")
        eventually(lambda: self.sends() >= self.runs(), within=10)

    @contextmanager
    def beat(self, name: str) -> Iterator[Beat]:
        beat = Beat(schedule=self, log=self.folder / f"{name}.log")
        try:
            yield beat
        finally:
            if beat.process.poll() is None:
                beat.process.kill()
            beat.process.wait(timeout=10)


@dataclass(slots=True, kw_only=True)
class Beat:
    schedule: Schedule
    log: Path
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "celery",
                    "-A",
                    "tests.redrive_service.beat.ticking",
                    "beat",
                    "--loglevel",
                    "INFO",
                ],
                env=self.schedule.environment(),
                cwd=SOURCES,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def says(self, words: str) -> bool:
        return words in self.log.read_text(encoding="utf-8")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=10)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=10)
