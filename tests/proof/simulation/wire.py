"""Postgres under the actors: a statement is a point of the stage, locks are waited for aside, time is virtual."""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, Final

import psycopg
import pytest
from django.db import connection, connections
from django.db.backends.postgresql.base import DatabaseWrapper
from psycopg import IsolationLevel, sql
from psycopg.pq import PGconn, TransactionStatus

from tests.proof.simulation.stage import Actor, Stage, mine

#: Real seconds after which it is asked whether a statement stands before a lock.
_LOOK_AFTER: Final = 0.003
_PATIENCE: Final = 30.0
_READ, _WRITE = 1, 2

_CLOCK = """
CREATE SEQUENCE IF NOT EXISTS redrive_stage_clock;
CREATE OR REPLACE FUNCTION redrive_now() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE AS
$$SELECT to_timestamp(last_value / 1000000.0) FROM redrive_stage_clock$$
"""  # what a sequence says belongs to no transaction, so everybody sees the same time at once
# Since when each letter has its place in a lane: before that nobody can know what it goes before.
_DIARY = """
CREATE TABLE IF NOT EXISTS redrive_stage_diary (message_id text, placed_at timestamptz);
CREATE OR REPLACE FUNCTION redrive_stage_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO redrive_stage_diary VALUES (NEW.message_id, redrive_now()); RETURN NULL; END $$;
CREATE OR REPLACE TRIGGER redrive_stage_notes AFTER UPDATE OF lane_id ON redrive_letter FOR EACH ROW
  WHEN (OLD.lane_id IS NULL AND NEW.lane_id IS NOT NULL) EXECUTE FUNCTION redrive_stage_note()
"""
_NO_DIARY = """
DROP TRIGGER IF EXISTS redrive_stage_notes ON redrive_letter;
DROP FUNCTION IF EXISTS redrive_stage_note;
DROP TABLE IF EXISTS redrive_stage_diary
"""
# A deadlock is seen before anybody else moves; what is said again and again is planned once.
_SETTINGS = {"deadlock_timeout": "1ms", "plan_cache_mode": "force_generic_plan", "jit": "off"}
_REAL_CLOCK = """
CREATE OR REPLACE FUNCTION redrive_now() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE AS
$$SELECT clock_timestamp()$$;
DROP SEQUENCE IF EXISTS redrive_stage_clock
"""
_WAITING = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pid = %s)"
_THERE = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %s)"


class Wire:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        settings = connection.settings_dict
        self._admin: psycopg.Connection[Any] = psycopg.connect(
            host=settings["HOST"], port=settings["PORT"], user=settings["USER"], password=settings["PASSWORD"],
            dbname=settings["NAME"], autocommit=True,
        )  # fmt: skip
        self._wait: Callable[..., Any] = psycopg.Connection.wait
        self._connect: Callable[..., Any] = DatabaseWrapper.get_new_connection
        self._dead = PGconn.connect_start(b"host=nowhere.invalid")
        self._dead.finish()
        self._left: list[psycopg.Connection[Any]] = []
        self._told = 0.0

    @contextmanager
    def strung(self) -> Iterator[None]:
        wire = self

        def wait(raw: psycopg.Connection[Any], gen: Any, *rest: Any, **options: Any) -> Any:  # noqa: ANN401  psycopg's
            actor = mine.actor
            if actor is None or raw is wire._admin:
                return wire._wait(raw, gen, *rest, **options)
            return wire._say(actor, raw, gen)

        def connects(wrapper: DatabaseWrapper, params: dict[str, Any]) -> psycopg.Connection[Any]:
            if mine.actor is None or not wire._left:
                return wire._connect(wrapper, params)  # type: ignore[no-any-return]  # Django's
            wrapper.isolation_level = IsolationLevel.READ_COMMITTED  # type: ignore[attr-defined]  # Django's own
            return wire._left.pop()

        self._admin.execute(_CLOCK)
        self._admin.execute(_DIARY)
        name = sql.Identifier(connection.settings_dict["NAME"])
        for setting, value in _SETTINGS.items():
            self._admin.execute(sql.SQL("ALTER DATABASE {} SET {} = {}").format(name, sql.Identifier(setting), value))
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(psycopg.Connection, "wait", wait)
                patch.setattr(DatabaseWrapper, "get_new_connection", connects)
                patch.setitem(connection.settings_dict["OPTIONS"], "prepare_threshold", 1)
                yield
        finally:
            for one in self._left:
                one.close()
            self._admin.execute(sql.SQL("ALTER DATABASE {} RESET ALL").format(name))
            self._admin.execute(_NO_DIARY)
            self._admin.execute(_REAL_CLOCK)
            self._admin.close()

    def begin(self) -> None:
        """A new world: an empty diary, and the time at which it begins."""
        self._admin.execute("DELETE FROM redrive_stage_diary")
        self.set_clock()

    def set_clock(self) -> None:
        """Have redrive_now() say what time it is on the stage, in seconds since 1970."""
        if self._stage.now != self._told:
            self._told = self._stage.now
            self._admin.execute("SELECT setval('redrive_stage_clock', %s)", [round(self._told * 1_000_000)])

    def ask(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """For the one who watches: an answer that no actor is the poorer for."""
        self.set_clock()
        return self._admin.execute(statement, values).fetchall()

    def hang_up(self) -> None:
        """The connection of the thread that asks ends as a killed process's does: what it had not committed is undone.

        The session is kept for whoever connects next, since each makes its plans once; unless it stands before a lock.
        """
        raw = connection.connection
        if raw is not None and not raw.closed:
            if raw.pgconn.transaction_status == TransactionStatus.ACTIVE:
                pid = raw.info.backend_pid
                raw.pgconn.finish()
                self._await_end(pid)
            else:
                self._lose(raw)
        self._stage.locks_were_freed = True
        del connections["default"]

    def _lose(self, raw: psycopg.Connection[Any]) -> None:
        """To its client the connection is lost; the server undoes what was open. The session is kept, as above."""
        kept = copy(raw)
        kept.lock, kept._autocommit = threading.Lock(), False
        raw.pgconn = self._dead
        kept.pgconn.exec_(b"ROLLBACK")
        self._left.append(kept)
        self._stage.locks_were_freed = True

    def _await_end(self, pid: int) -> None:
        end = time.monotonic() + _PATIENCE
        while self.ask(_THERE, pid)[0][0]:
            if time.monotonic() > end:
                raise TimeoutError(f"the backend {pid} does not end")
        self._stage.locks_were_freed = True

    # -- one statement of one actor

    def _say(self, actor: Actor, raw: psycopg.Connection[Any], gen: Any) -> Any:  # noqa: ANN401  psycopg's generators
        commits = _commits(gen)
        if not _is_silent(gen, raw):
            self._stage.point("commit" if commits else "say")
            self._perhaps_cut(actor, raw)
        self.set_clock()  # who has no statement needs no time of Postgres's
        said = self._drive(actor, raw, gen)
        if raw.pgconn.transaction_status == TransactionStatus.IDLE:
            self._stage.locks_were_freed = True
            self._perhaps_unheard(actor, raw)
        return said

    def _perhaps_cut(self, actor: Actor, raw: psycopg.Connection[Any]) -> None:
        stage = self._stage
        if actor.mortal and stage.dice.random() < stage.odds.cut:
            stage.note("connection cut", "a statement")
            self._lose(raw)
            raise psycopg.OperationalError("terminating connection due to administrator command")

    def _perhaps_unheard(self, actor: Actor, raw: psycopg.Connection[Any]) -> None:
        stage = self._stage
        if actor.mortal and stage.dice.random() < stage.odds.unheard:
            stage.note("commit unheard", "a commit")
            self._lose(raw)
            raise psycopg.OperationalError("the connection was lost while a commit was waited for")

    def _drive(self, actor: Actor, raw: psycopg.Connection[Any], gen: Any) -> Any:  # noqa: ANN401  as above
        descriptor, pid = raw.pgconn.socket, raw.info.backend_pid
        try:
            wanted = next(gen)
            while True:
                wanted = gen.send(self._ready(actor, descriptor, pid, wanted))
        except StopIteration as end:
            return end.value

    def _ready(self, actor: Actor, descriptor: int, pid: int, wanted: int) -> int:
        """What may be done on the socket. Where a lock is waited for, others move meanwhile."""
        while not (ready := _look(descriptor, wanted, _LOOK_AFTER)):
            if self._waits(pid):
                actor.blocked = lambda: self._still_waits(descriptor, pid)
                self._stage.tale.append(f"{self._stage.now:.3f} {actor.name} stands before a lock")
                actor.leave()
        return ready

    def _still_waits(self, descriptor: int, pid: int) -> bool:
        """Whether a statement waits for a lock still, or for the next one; else it has ended when this says so."""
        end = time.monotonic() + _PATIENCE
        while not _look(descriptor, _READ, 0.0005):
            if self._waits(pid):
                return True
            if time.monotonic() > end:
                raise TimeoutError("a statement neither ends nor waits for a lock")
        return False

    def _waits(self, pid: int) -> bool:
        return bool(self.ask(_WAITING, pid)[0][0])


def _look(descriptor: int, wanted: int, seconds: float) -> int:
    reading = [descriptor] if wanted & _READ else []
    writing = [descriptor] if wanted & _WRITE else []
    readable, writable, _ = select.select(reading, writing, [], seconds)
    return (_READ if readable else 0) | (_WRITE if writable else 0)


def _commits(gen: object) -> bool:
    return getattr(gen, "__name__", "") == "_commit_gen"


def _is_silent(gen: object, raw: psycopg.Connection[Any]) -> bool:
    """Whether nothing goes out: there is nothing to commit or to roll back, or it is a setting of the client's own."""
    name = getattr(gen, "__name__", "")
    if name.startswith("_set_"):
        return True
    return name in {"_commit_gen", "_rollback_gen"} and raw.pgconn.transaction_status == TransactionStatus.IDLE
