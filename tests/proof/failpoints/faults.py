"""What strikes at a point: each fault as the armed process does it to itself, for real."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import psycopg
from django.conf import settings
from django.db import OperationalError, connection
from django.db.backends.signals import connection_created

from reprocessing.domain.errors import RateLimitUnavailable
from reprocessing.gateways.redis import send_rate, shared_clients
from reprocessing.gateways.redis.send_rate import Rates
from tests.conditions import eventually

#: Seconds for which a process meets no Redis.
GONE_FOR: Final = 1.5
#: A port on which nobody listens.
CLOSED: Final = 1


class Fault(StrEnum):
    KILL = "kill -9"
    STOP = "stopped past its lease"
    RAISE = "an exception"
    TERMINATE = "its Postgres backends terminated"
    REDIS = "Redis gone"


class Unexpected(RuntimeError):
    """Nobody expects it."""


class Striker:
    """The faults of one process. What happened is told by files in the folder of its trial."""

    def __init__(self, fault: Fault, folder: Path, *, in_database: bool) -> None:
        self._fault, self._folder, self._in_database = fault, folder, in_database
        self._backends: set[int] = set()
        self._heal_at: float | None = None
        if fault is Fault.TERMINATE:
            connection_created.connect(self._note, weak=False)

    def strike(self) -> None:
        (self._folder / "fired").touch()
        match self._fault:
            case Fault.KILL:
                os.kill(os.getpid(), signal.SIGKILL)
            case Fault.STOP:
                os.kill(os.getpid(), signal.SIGSTOP)
                time.sleep(0.02)  # the signal is delivered by then, and this ends after SIGCONT
            case Fault.RAISE:
                (self._folder / "met").touch()
                raise OperationalError("made up") if self._in_database else Unexpected("made up")
            case Fault.TERMINATE:
                self._terminate()
            case Fault.REDIS:
                self._lose_redis()

    def heal(self) -> None:
        if self._heal_at is not None and time.monotonic() > self._heal_at and (self._folder / "met").exists():
            self._heal_at = None
            _lead(urlsplit(settings.REDIS_URL).port or CLOSED)

    def _note(self, **created: Any) -> None:  # noqa: ANN401  as Django sends it
        self._backends.add(created["connection"].connection.info.backend_pid)

    def _terminate(self) -> None:
        asked = {"pids": list(self._backends)}
        there = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ANY(%(pids)s)"
        with psycopg.connect(_dsn(), autocommit=True) as other:
            found = other.execute(there, asked).fetchall()
            if found and all(done for (done,) in found):
                (self._folder / "met").touch()
            eventually(lambda: not other.execute(there, asked).fetchall(), within=5)

    def _lose_redis(self) -> None:
        self._heal_at = time.monotonic() + GONE_FOR
        ask: Callable[..., Any] = Rates._ask

        def asked(*args: Any, **options: Any) -> Any:  # noqa: ANN401  those of `_ask`
            try:
                return ask(*args, **options)
            except RateLimitUnavailable:
                (self._folder / "met").touch()
                raise

        send_rate.Rates._ask = asked  # type: ignore[method-assign]  # it only listens
        _lead(CLOSED)


def _lead(port: int) -> None:
    pool = shared_clients.send_rates()._client.connection_pool
    pool.connection_kwargs["port"] = port
    pool.disconnect()
    pool.reset()  # a connection that it keeps would go where it went before


def _dsn() -> str:
    database = connection.settings_dict
    return psycopg.conninfo.make_conninfo(
        host=database["HOST"], port=database["PORT"], dbname=database["NAME"], user=database["USER"],
        password=database["PASSWORD"],
    )  # fmt: skip
