"""Servers of the layer's own: they are struck, stopped, killed and started again, and nobody else's tests feel it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

import psutil
import psycopg
from psycopg import sql

from redrive_service.sandbox.stack import Stack
from tests.conditions import eventually

ROOT = Path(__file__).resolve().parents[3]
ROLE = "redrive_service"  # no superuser, as in production: its CONNECTION LIMIT holds
CONNECTIONS = 60
UP_WITHIN = 30.0

Row = tuple[Any, ...]
Connection = psycopg.Connection[Row]


class OwnServers:
    """PostgreSQL with a migrated database, Valkey and the local SQS, inside a `with` block."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stack = Stack(folder)
        self._exit = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as unwinding:
            unwinding.callback(lambda: self.stack.postgres.forget())  # noqa: PLW0108  # there is one after the start
            unwinding.enter_context(self.stack)
            self._exit = unwinding.pop_all()
            self._make_role()
            self.manage("migrate", "--verbosity", "0")
        return self

    def __exit__(self, *_: object) -> None:
        for name in ("postgres", "redis"):
            self.stack.servers[name].stop()  # one that was started again is not the stack's to stop
        self._exit.close()

    def _make_role(self) -> None:
        with closing(self.connect()) as connection:
            password = sql.Literal(self.stack.secrets.data)
            role = sql.Identifier(ROLE)
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(role, password))
            connection.execute(sql.SQL("ALTER DATABASE redrive OWNER TO {}").format(role))
        self.limit_connections(CONNECTIONS)

    @property
    def database_url(self) -> str:
        parts = urlsplit(self.stack.postgres.url)
        user, _, rest = parts.netloc.partition(":")
        assert user
        return urlunsplit(parts._replace(netloc=f"{ROLE}:{rest}"))

    @property
    def endpoint(self) -> str:
        return self.stack.queues.endpoint

    def environment(self) -> dict[str, str]:
        return {
            **self.stack.environment(),
            "DATABASE_URL": self.database_url,
            "DJANGO_SETTINGS_MODULE": "tests.proof.dependencies.settings",
            "PYTHONPATH": str(ROOT),
        }

    def manage(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), *arguments], check=False, capture_output=True, text=True,
            env={**os.environ, **self.environment()},
        )  # fmt: skip
        assert done.returncode == 0, f"manage.py {arguments[0]}: {done.stderr[-2000:]}"
        return done.stdout

    def connect(self, *, ours: bool = False) -> Connection:
        """A connection that commits each statement; `ours`: as the service's role, else as the database's owner."""
        url = self.database_url if ours else self.stack.postgres.url
        return psycopg.connect(url, autocommit=True, connect_timeout=5, application_name="the proof")

    def ask(self, statement: str, *arguments: object) -> list[Row]:
        with closing(self.connect()) as connection:
            return connection.execute(statement.encode(), arguments or None).fetchall()

    def limit_connections(self, most: int) -> None:
        with closing(self.connect()) as connection:
            connection.execute(sql.SQL("ALTER ROLE {} CONNECTION LIMIT {}").format(sql.Identifier(ROLE), most))

    def process(self, name: str) -> psutil.Process:
        (server,) = psutil.Process(self.stack.servers[name]._guard.pid).children()[:1]
        return server

    def kill(self, name: str, number: signal.Signals) -> None:
        self.process(name).send_signal(number)
        eventually(self.stack.servers[name].has_ended, within=UP_WITHIN)

    def start_again(self, name: str) -> None:
        part = self.stack.postgres if name == "postgres" else self.stack.valkey
        self.stack.servers[name] = part.start(self.folder / f"{name}.log")

    def log_of(self, name: str) -> str:
        file = self.folder / f"{name}.log"
        return file.read_text(errors="replace") if file.exists() else ""

    def count_in_log(self, name: str, words: str) -> int:
        return len(re.findall(re.escape(words), self.log_of(name)))

    def faults(self, method: str, plan: list[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
        """The local SQS's fault plan: replace it (PUT), forget it (DELETE) or read how often each fault fired (GET)."""
        asked = urllib.request.Request(
            f"{self.endpoint}/_sandbox/faults", method=method, data=None if plan is None else json.dumps(plan).encode()
        )
        with urllib.request.urlopen(asked, timeout=30) as answer:
            found = json.loads(answer.read() or b"null")
        return list(found) if isinstance(found, list) else []

    def backends(self) -> Iterator[int]:
        found = self.ask(
            "SELECT pid FROM pg_stat_activity WHERE usename = %s AND application_name <> 'the proof'", ROLE
        )
        return (pid for (pid,) in found)
