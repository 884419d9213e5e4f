"""What a drain costs: SQS calls from the local SQS's log, SQL statements and WAL from PostgreSQL's counters."""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import boto3
import psycopg

from redrive_service.sandbox.stack import Stack

#: Statements that are not counted: transaction control, foreign key checks, and this program's own questions.
ASIDE: Final = (
    "BEGIN%", "COMMIT%", "ROLLBACK%", "SAVEPOINT%", "RELEASE%", "SET %", "SELECT $1",
    "SELECT % FOR KEY SHARE OF x", "%benchmark%", "DEALLOCATE%",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cost:
    """What one letter costs. `processor`: seconds by part. `longest`: the statements that took longest, in words."""

    calls: float
    statements: float
    wal: float  # bytes
    processor: dict[str, float]
    longest: list[str]


@dataclass(slots=True)
class _Told:
    """The calls of some queues: when messages were last received from the dlq, and when the first letter was sent."""

    calls: int = 0
    accepted: int = 0
    last_full: float = 0.0
    last_heard: float = 0.0
    first_sent: float = float("inf")

    @property
    def silence(self) -> float:
        """The seconds in which the dlq was only asked whether it is empty, and nothing was sent."""
        return max(0.0, min(self.first_sent, self.last_heard) - self.last_full)

    def hear(self, call: Mapping[str, Any]) -> None:
        self.calls += 1
        self.accepted += sum(sent["accepted"] for sent in call["sent"])
        if call["sent"]:
            self.first_sent = min(self.first_sent, call["at"])
        if call["action"] == "ReceiveMessage":
            self.last_heard = call["at"]
            self.last_full = call["at"] if call["received"] else self.last_full


class Ledger:
    """The counters of one stack."""

    def __init__(self, stack: Stack) -> None:
        self._endpoint = stack.queues.endpoint
        self.sqs = boto3.client("sqs")
        self._database = psycopg.connect(stack.postgres.url, autocommit=True)
        self._database.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        self._mark = 0

    def close(self) -> None:
        """Close the connection to PostgreSQL."""
        self._database.close()

    @contextmanager
    def slow(self, milliseconds: int) -> Iterator[None]:
        """Let each SQS call take so much longer, up to a fifth more or less."""
        delay = {"kind": "delay", "milliseconds": milliseconds, "jitter": milliseconds // 5}
        self._control("PUT", "faults", [delay] if milliseconds else [])
        try:
            yield
        finally:
            self._control("DELETE", "faults")

    def begin(self) -> None:
        """Start to count now."""
        self._database.execute("SELECT pg_stat_statements_reset() AS benchmark")
        self._mark = self._control("GET", f"calls?since={10**12}")["end"]

    def finished(self, dlq: int) -> int:
        """Return how many letters are delivered and have no copy left in the dlq."""
        asked = "SELECT count(*) AS benchmark FROM redrive_dlq_copy WHERE state = 'gone' AND dlq_id = %s"
        found = self._database.execute(asked, [dlq])
        return int((found.fetchone() or [0])[0])

    def phases(self, dlq: int) -> dict[str, float]:
        """Return the seconds of each phase, from the rows: capturing what arrived, and redriving it."""
        found = self._database.execute(
            "SELECT extract(epoch FROM max(captured_at) - min(captured_at)),"
            " extract(epoch FROM max(finished_at) - (SELECT min(opened_at) FROM redrive_attempt WHERE letter_id"
            " IN (SELECT id FROM redrive_letter WHERE dlq_id = %(dlq)s))) AS benchmark"
            " FROM redrive_letter WHERE dlq_id = %(dlq)s",
            {"dlq": dlq},
        )
        capture, replay = found.fetchone() or (0, 0)
        return {"capture": round(float(capture), 2), "replay": round(float(replay), 2)}

    def cost(self, name: str, letters: int, processor: Mapping[str, float]) -> tuple[Cost, float]:
        """Return the cost since `begin`, and the seconds in which nothing happened but empty receives."""
        told = _Told()
        for call in self._calls():
            if call["queue"] in {name, f"{name}-dlq"}:
                told.hear(call)
        if told.accepted != letters:
            sys.exit(f"{told.accepted:,} sends were accepted for {letters:,} letters: not a drain without duplicates.")
        statements = self._statements()
        cost = Cost(
            told.calls / letters, sum(calls for calls, *_ in statements) / letters, self._wal() / letters,
            {part: spent / letters for part, spent in processor.items()},
            [
                f"{calls:>7,} calls  {planned:>7,.0f} ms planning {executed:>7,.0f} ms execution {buffers:>9,} buffers"
                f"  {' '.join(text.split())[:100]}"
                for calls, planned, executed, buffers, text in statements
            ],
        )  # fmt: skip
        return cost, told.silence

    def _statements(self) -> list[tuple[int, float, float, int, str]]:
        where = " AND ".join(["query NOT LIKE %s"] * len(ASIDE))
        found = self._database.execute(
            "SELECT calls, total_plan_time, total_exec_time, shared_blks_hit + shared_blks_read, query AS benchmark"
            " FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())"
            f" AND {where} ORDER BY total_plan_time + total_exec_time DESC",
            ASIDE,
        )
        return found.fetchall()

    def _wal(self) -> int:
        found = self._database.execute("SELECT sum(wal_bytes) AS benchmark FROM pg_stat_statements").fetchone()
        return int((found or [0])[0])

    def _calls(self) -> Iterator[dict[str, Any]]:
        since, end = self._mark, self._mark + 1
        while since < end:
            page = self._control("GET", f"calls?since={since}")
            yield from page["calls"]
            since, end = page["next"], page["end"]

    def _control(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - JSON
        sent = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._endpoint}/_sandbox/{path}", data=sent, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
