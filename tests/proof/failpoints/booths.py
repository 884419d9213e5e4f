"""Booths as the tests use them: each a process, and where there are several, each with a database of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from django.db import connection
from psycopg import sql

from tests.faults.fleet import ROOT, environment


class Booth:
    """One process that tries cells. What its workers log is in `log`."""

    def __init__(self, number: int, folder: Path, *, database: str | None = None, root: Path = ROOT) -> None:
        self.log = folder / f"booth-{number}.log"
        variables = {**environment(), "PYTHONPATH": str(root)}
        if database is not None:
            variables["DATABASE_URL"] = _with_path(variables["DATABASE_URL"], database)
        variables["REDIS_URL"] = _with_path(variables["REDIS_URL"], str(number))
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.proof.failpoints.booth"], cwd=root, env=variables, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True,
            )  # fmt: skip

    def tries(self, cell: str, repetition: int, *, hurry: bool = False) -> dict[str, Any]:
        """What a trial came to: `why` and `figures`."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"cell": cell, "repetition": repetition, "hurry": hurry}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the booth has ended; it wrote: {self.log.read_text()[-2000:]}"
        told: dict[str, Any] = json.loads(line)
        return told

    def end(self) -> None:
        """End it now, with all that its trial has begun; whoever waits for that trial hears that it has ended."""
        self._process.send_signal(signal.SIGINT)

    def close(self) -> None:
        self._process.communicate(timeout=150)


def _with_path(url: str, path: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{path}"))


@contextmanager
def booths(number: int, folder: Path) -> Iterator[list[Booth]]:
    """So many of them, each on a copy of the tests' database, which nobody may use while it is copied."""
    with ExitStack() as unwinding:
        made = []
        for place in range(1, number + 1):
            database = unwinding.enter_context(_copied(place))
            made.append(Booth(place, folder, database=database))
            unwinding.callback(made[-1].close)
        yield made


@contextmanager
def _copied(place: int) -> Iterator[str]:
    here = connection.settings_dict
    connection.close()
    name = f"{here['NAME']}_booth_{place}"
    server = urlunsplit(urlsplit(os.environ["DATABASE_URL"])._replace(path="/postgres"))
    drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
    make = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(here["NAME"]))
    with psycopg.connect(server, autocommit=True) as maker:
        maker.execute(drop)
        maker.execute(make)
        try:
            yield name
        finally:
            maker.execute(drop)
