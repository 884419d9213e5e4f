"""Elect one of several beat processes as leader, by a PostgreSQL advisory lock (docs/adr/0002).

The leader checks that it still has the lock before it acts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

import psycopg

logger = logging.getLogger("redrive.beat")

Connect = Callable[[], psycopg.Connection[Any]]

_LOCK: Final = (0x52454452, 0x42454154)  # the two numbers of the advisory lock: "REDR" and "BEAT" in ASCII
_TAKE = "SELECT pg_try_advisory_lock(%s, %s)"
_HELD = """
    SELECT EXISTS (
        SELECT FROM pg_locks
        WHERE locktype = 'advisory' AND granted AND pid = pg_backend_pid()
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
          AND classid = %s::bigint::oid AND objid = %s::bigint::oid AND objsubid = 2
    )
"""

# When a leader's machine fails, PostgreSQL notices after 4 + 3 * 2 = 10 s, and releases the leader's lock.
_IDLE, _INTERVAL, _PROBES = 4, 2, 3
_PROBING = {"idle": _IDLE, "interval": _INTERVAL, "count": _PROBES}
_SERVER_SIDE = " ".join(f"-c tcp_keepalives_{name}={value}" for name, value in _PROBING.items())


def dedicated_connection(parameters: dict[str, Any]) -> psycopg.Connection[Any]:
    """Return a connection that is used only for the advisory lock. Each side notices within 10 s if the other is gone.

    `parameters` are Django's connection parameters. They must name PostgreSQL itself, not a connection pooler. A pooler
    may use another session for each transaction, but the lock belongs to one session.
    """
    return psycopg.connect(
        **{
            **parameters,
            "autocommit": True,
            "application_name": "redrive beat",
            "connect_timeout": 3,
            "keepalives": 1,
            "keepalives_idle": _IDLE,
            "keepalives_interval": _INTERVAL,
            "keepalives_count": _PROBES,
            "tcp_user_timeout": 1000 * (_IDLE + _INTERVAL * _PROBES),
            "options": f"{parameters.get('options', '')} {_SERVER_SIDE}".strip(),
        }
    )


class Leadership:
    """Whether this beat process is the leader: its PostgreSQL session holds the lock, or tries to get it.

    PostgreSQL releases the lock when the session ends for any reason. So two processes never hold the lock, and nobody
    has to clean up after a killed leader. A process that lost its session tries to get the lock again.
    """

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._session: psycopg.Connection[Any] | None = None
        self._leads = False
        self._stands_by = False

    def is_held(self) -> bool:
        """Return whether this process leads: ask PostgreSQL whether it has the lock or, if not, try to get the lock."""
        led = self._leads
        try:
            self._leads = self._ask()
        except psycopg.Error as error:
            logger.warning("redrive.beat.session_lost error=%s", type(error).__name__)
            self.release()
        if led and not self._leads:
            self.release()
            logger.warning("redrive.beat.lead_lost")
        elif self._leads and not led:
            logger.warning("redrive.beat.leads")
        elif not self._leads and not self._stands_by and self._session is not None:
            logger.warning("redrive.beat.stands_by")
        self._stands_by = not self._leads and self._session is not None
        return self._leads

    def release(self) -> None:
        """Stop leading: close the session, so that PostgreSQL releases the lock. Signal handlers may call this."""
        session, self._session = self._session, None
        self._leads = False
        if session is not None:
            session.close()

    def _ask(self) -> bool:
        if self._session is None:
            self._session = self._connect()
        row = self._session.execute(_HELD if self._leads else _TAKE, _LOCK).fetchone()
        return bool(row and row[0])
