"""Read the figures of a drain from PostgreSQL: progress and times from rows, statements and WAL from its counters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg.rows import dict_row

from benchmarks.drains.drain_plan import Plan

#: Statements that are not counted: transaction control, foreign key checks, and this program's own questions.
ASIDE: Final = (
    "BEGIN%", "COMMIT%", "ROLLBACK%", "SAVEPOINT%", "RELEASE%", "SET %", "SELECT $1",
    "SELECT % FOR KEY SHARE OF x", "%benchmark%", "DEALLOCATE%",
)  # fmt: skip

_PROGRESS: Final = """
SELECT count(*), count(*) FILTER (WHERE state = 'delivered'),
       (SELECT count(*) FROM redrive_dlq_copy WHERE letter_id > %(mark)s AND state <> 'gone') AS benchmark
  FROM redrive_letter WHERE id > %(mark)s
"""
_LETTERS: Final = """
SELECT count(*) AS benchmark, count(*) FILTER (WHERE state = 'delivered') AS delivered,
       extract(epoch FROM min(captured_at)) AS first_captured, extract(epoch FROM max(captured_at)) AS last_captured,
       extract(epoch FROM max(finished_at)) AS last_finished,
       extract(epoch FROM max(finished_at) FILTER (WHERE ordering_key IS DISTINCT FROM %(hot)s)) AS others_finished,
       extract(epoch FROM max(finished_at) FILTER (WHERE ordering_key = %(hot)s)) AS hot_finished,
       count(*) FILTER (WHERE ordering_key = %(hot)s) AS hot,
       (SELECT extract(epoch FROM max(gone_at)) FROM redrive_dlq_copy WHERE letter_id > %(mark)s) AS last_gone
  FROM redrive_letter WHERE id > %(mark)s
"""
_ATTEMPTS: Final = """
SELECT count(*) AS benchmark, extract(epoch FROM min(opened_at)) AS first, extract(epoch FROM max(opened_at)) AS last,
       extract(epoch FROM max(opened_at) FILTER (WHERE no = 1)) AS whole,
       extract(epoch FROM percentile_disc(0.1) WITHIN GROUP (ORDER BY opened_at)) AS tenth,
       extract(epoch FROM percentile_disc(0.9) WITHIN GROUP (ORDER BY opened_at)) AS ninth
  FROM redrive_attempt WHERE letter_id > %(mark)s
"""


@dataclass(frozen=True, slots=True)
class Progress:
    """How many letters are captured, how many are delivered, and how many copies are left in the DLQ."""

    captured: int
    delivered: int
    copies: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Times of a drain, in seconds since 1970; and rates, in letters per second (None: the time was too short).

    The rates `first_tenth`, `sent`, `last_tenth`, `others` and `hot` are those of `Round`.
    """

    first_captured: float
    last_captured: float
    first_sent: float
    ended: float
    first_tenth: float | None
    sent: float | None
    last_tenth: float | None
    others: float | None
    hot: float | None


class Database:
    """A connection to the stack's PostgreSQL, which reads its rows and counters."""

    def __init__(self, url: str) -> None:
        # A prepared statement may get a generic plan that reads all rows, and so would slow down the measured work.
        self._database = psycopg.connect(url, autocommit=True, prepare_threshold=None)
        self._database.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        self._mark = 0

    def close(self) -> None:
        """Close the connection to PostgreSQL."""
        self._database.close()

    def begin(self) -> float:
        """Begin to count letters, statements and WAL; earlier ones do not count.

        Return the time in seconds since 1970.
        """
        self._database.execute("SELECT pg_stat_statements_reset() AS benchmark")
        self._mark = int(self._one("SELECT coalesce(max(id), 0) AS benchmark FROM redrive_letter"))
        return float(self._one("SELECT extract(epoch FROM clock_timestamp()) AS benchmark"))

    def progress(self) -> Progress:
        """Return the progress since `begin`."""
        row = self._database.execute(_PROGRESS, {"mark": self._mark}).fetchone()
        return Progress(*(row or (0, 0, 0)))

    def has_sent(self) -> bool:
        """Return whether an attempt was made since `begin`."""
        return bool(
            self._one("SELECT EXISTS (SELECT FROM redrive_attempt WHERE letter_id > %s) AS benchmark", self._mark)
        )

    def connections(self) -> int:
        """Return the number of clients' connections to PostgreSQL, without this one."""
        return int(
            self._one(
                "SELECT count(*) AS benchmark FROM pg_stat_activity"
                " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )
        )

    def times(self, plan: Plan, hot_key: str, first: int) -> Times:
        """Return the times of the drain since `begin`; end the program unless all its letters are delivered.

        `hot_key`: the ordering key with many letters. `first`: number of the round's first letter.
        """
        letters = self._row(_LETTERS, {"mark": self._mark, "hot": hot_key})
        attempts = self._row(_ATTEMPTS, {"mark": self._mark})
        if (letters["delivered"], attempts["benchmark"]) != (plan.letters, plan.sends(first)):
            raise SystemExit(
                f"{letters['delivered']:,} letters are delivered by {attempts['benchmark']:,} attempts,"
                f" for {plan.letters:,} letters and {plan.sends(first):,} attempts."
            )
        began, others = attempts["first"], plan.letters - letters["hot"]
        return Times(
            first_captured=letters["first_captured"], last_captured=letters["last_captured"], first_sent=began,
            ended=max(letters["last_finished"], letters["last_gone"]),
            first_tenth=_rate(attempts["benchmark"] / 10, began, attempts["tenth"]),
            sent=_rate(plan.letters, began, attempts["whole"]),
            last_tenth=_rate(attempts["benchmark"] / 10, attempts["ninth"], attempts["last"]),
            others=_rate(others, began, letters["others_finished"]) if letters["hot"] else None,
            hot=_rate(letters["hot"], began, letters["hot_finished"]) if letters["hot"] else None,
        )  # fmt: skip

    def statements(self) -> list[tuple[int, float, float, int, str]]:
        """Return the statements since `begin`: calls, ms of planning, ms of execution, buffers and text."""
        where = " AND ".join(["query NOT LIKE %s"] * len(ASIDE))
        found = self._database.execute(
            "SELECT calls, total_plan_time, total_exec_time, shared_blks_hit + shared_blks_read, query AS benchmark"
            " FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())"
            f" AND {where} ORDER BY total_plan_time + total_exec_time DESC",
            ASIDE,
        )
        return found.fetchall()

    def wal(self) -> int:
        """Return the bytes of WAL that statements wrote since `begin`."""
        return int(self._one("SELECT sum(wal_bytes) AS benchmark FROM pg_stat_statements"))

    def version(self) -> str:
        """Return PostgreSQL's version, and the settings of its memory and its WAL."""
        version = str(self._one("SHOW server_version")).split(" ", maxsplit=1)[0]
        memory, wal = (self._one(f"SHOW {name}") for name in ("shared_buffers", "max_wal_size"))
        return f"{version} (shared_buffers {memory}, max_wal_size {wal})"

    def _one(self, statement: str, *values: object) -> Any:  # noqa: ANN401 - any column
        return (self._database.execute(statement, values or None).fetchone() or (0,))[0]

    def _row(self, statement: str, values: dict[str, object]) -> dict[str, Any]:
        with self._database.cursor(row_factory=dict_row) as cursor:
            row = cursor.execute(statement, values).fetchone() or {}
        return {name: value if isinstance(value, int) or value is None else float(value) for name, value in row.items()}


def _rate(letters: float, begin: float, end: float | None) -> float | None:
    return letters / (end - begin) if end is not None and end - begin > 0.05 else None  # noqa: PLR2004  # an instant
