"""Measure a drain through Celery: letters per second, SQS calls per letter and SQL statements per letter.

Starts the embedded stack and one real worker (prefork, two processes), fills a dlq, and sends beat's ticks
until every letter is delivered and its copy deleted. Outcome `accepted`, no rate limit. The same run measures the
plain receive-send-delete loop with boto3 on equal queues. Prints the figures, and exits with 1 when
they are worse than the limits of this project.

PostgreSQL counts the SQL statements of all its clients (pg_stat_statements), without BEGIN, COMMIT,
Django's check of an idle connection, and the foreign key checks of PostgreSQL. SQS calls are counted in the
local SQS's call log, without the broker's queues.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import boto3
import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.stand import Beat, employ, furnish  # found through the line above
from redrive_service.sandbox.servers.process import RunningServer
from redrive_service.sandbox.stack import Stack

BATCH: Final = 10
BODY: Final = 510
MOST_CALLS: Final = 0.40
MOST_STATEMENTS: Final = 0.20
OWN: Final = "redrive-"
#: Statements that are not counted: transaction control, foreign key checks, and this program's own questions.
ASIDE: Final = (
    "BEGIN%", "COMMIT%", "ROLLBACK%", "SAVEPOINT%", "RELEASE%", "SET %", "SELECT $1",
    "SELECT % FOR KEY SHARE OF x", "%benchmark%",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to drain, and the long poll of a receive in seconds: three empty receives in a row end a capture."""

    letters: int
    keys: int
    long_poll: int
    solo: bool
    profile: Path | None = None


@dataclass(slots=True)
class Told:
    """The calls in the log by queue and action, and when a receive found the dlq empty."""

    calls: Counter[str] = field(default_factory=Counter)
    accepted: int = 0
    last_full: float = 0.0
    last_heard: float = 0.0

    def hear(self, call: dict[str, Any]) -> None:
        """Count one call, unless it went to the broker's own queues."""
        queue = call["queue"]
        if queue is None or queue.startswith(OWN):
            return
        self.calls[f"{call['action']} {queue}"] += 1
        self.accepted += sum(sent["accepted"] for sent in call["sent"])
        if call["action"] == "ReceiveMessage":
            self.last_heard = call["at"]
            self.last_full = call["at"] if call["received"] else self.last_full


class Bench:
    """The stack that is measured: its queues, its database, its call log."""

    def __init__(self, stack: Stack, plan: Plan) -> None:
        self.stack, self.plan = stack, plan
        self.sqs = boto3.client("sqs")
        self.database = psycopg.connect(stack.postgres.url, autocommit=True)
        self.mark = 0

    def queues(self, name: str) -> tuple[str, str]:
        """Create and fill a dlq; return its URL and the URL of its source queue."""
        dlq = self.sqs.create_queue(QueueName=f"{name}-dlq", Attributes={"VisibilityTimeout": "120"})["QueueUrl"]
        source = self.sqs.create_queue(QueueName=name)["QueueUrl"]
        for first in range(0, self.plan.letters, BATCH):
            entries = [self._letter(number) for number in range(first, min(first + BATCH, self.plan.letters))]
            self.sqs.send_message_batch(QueueUrl=dlq, Entries=entries)
        return dlq, source

    def _letter(self, number: int) -> Any:  # noqa: ANN401 - boto3's own shape
        told = {"account": f"a-{number % self.plan.keys}", "sequence": str(number // self.plan.keys)}
        body = json.dumps({"event": number, "rest": "x" * BODY})[: BODY - 2] + '"}'
        attributes = {name: {"DataType": "String", "StringValue": value} for name, value in told.items()}
        return {"Id": str(number % BATCH), "MessageBody": body, "MessageAttributes": attributes}

    def begin(self) -> float:
        """Start to count now."""
        self.database.execute("SELECT pg_stat_statements_reset() AS benchmark")
        self.mark = self._page(10**12)["end"]
        return time.monotonic()

    def told(self) -> Told:
        """Return the calls that the log has since the count began."""
        told = Told()
        for call in self._calls():
            told.hear(call)
        return told

    def _calls(self) -> Iterator[dict[str, Any]]:
        since, end = self.mark, self.mark + 1
        while since < end:
            page = self._page(since)
            yield from page["calls"]
            since, end = page["next"], page["end"]

    def _page(self, since: int) -> dict[str, Any]:
        address = f"{self.stack.queues.endpoint}/_sandbox/calls?since={since}"
        with urllib.request.urlopen(address, timeout=30) as answer:
            return dict(json.load(answer))

    def statements(self) -> list[tuple[int, float, str]]:
        """Return each statement's number of calls, total milliseconds and text; the longest first."""
        where = " AND ".join(["query NOT LIKE %s"] * len(ASIDE))
        found = self.database.execute(
            "SELECT calls, total_exec_time, query AS benchmark FROM pg_stat_statements"
            f" WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND {where}"
            " ORDER BY 2 DESC",
            ASIDE,
        )
        return found.fetchall()

    def finished(self) -> int:
        """Return how many letters are delivered and have no copy left in the dlq."""
        found = self.database.execute("SELECT count(*) AS benchmark FROM redrive_dlq_copy WHERE state = 'gone'")
        return int((found.fetchone() or [0])[0])

    def phases(self) -> dict[str, float]:
        """Return the seconds of each phase, from the rows: capturing what arrived, and redriving it."""
        found = self.database.execute(
            "SELECT extract(epoch FROM max(captured_at) - min(captured_at)),"
            " extract(epoch FROM max(finished_at) - (SELECT min(opened_at) FROM redrive_attempt)) AS benchmark"
            " FROM redrive_letter"
        )
        capture, replay = found.fetchone() or (0, 0)
        return {"capture": round(float(capture), 2), "replay": round(float(replay), 2)}


def bare(bench: Bench) -> float:
    """Return letters per second of the simplest loop: it keeps no record, no order and no rate limit."""
    dlq, source = bench.queues("bare")
    sqs, carried, began = bench.sqs, 0, time.monotonic()
    while carried < bench.plan.letters:
        found = sqs.receive_message(
            QueueUrl=dlq, MaxNumberOfMessages=BATCH, MessageAttributeNames=["All"], MessageSystemAttributeNames=["All"]
        )["Messages"]
        copies: list[Any] = [
            {"Id": str(n), "MessageBody": one["Body"], "MessageAttributes": one["MessageAttributes"]}
            for n, one in enumerate(found)
        ]
        sqs.send_message_batch(QueueUrl=source, Entries=copies)
        receipts: list[Any] = [{"Id": str(n), "ReceiptHandle": one["ReceiptHandle"]} for n, one in enumerate(found)]
        sqs.delete_message_batch(QueueUrl=dlq, Entries=receipts)
        carried += len(found)
    return carried / (time.monotonic() - began)


def watch(dlq: str, source: str) -> None:
    """Add the dlq to the service: automatic, lanes by account, no rate limit."""
    from reprocessing.gateways.sqs import QueueAddress, describe  # noqa: PLC0415
    from reprocessing.models import DeadLetterQueue, Source, Target  # noqa: PLC0415  # Django is set up by now

    there, here = QueueAddress.of(source), QueueAddress.of(dlq)
    home = describe(there).arn
    target = Target.objects.create(arn=home, url=source, region=there.region, rate=None)
    watched = DeadLetterQueue.objects.create(
        name="drain", url=dlq, arn=describe(here).arn, region=here.region, mode="automatic", new_key_delay=0,
        ordering_key="attribute:account", sequence="attribute:sequence", held_copies_limit=100_000,
    )  # fmt: skip
    Source.objects.create(dlq=watched, arn=home, target=target)


def drain(bench: Bench, worker: RunningServer) -> float:
    """Send beat's ticks until every letter is finished; return the seconds it took."""
    watch(*bench.queues("drain"))
    beat, began, last, done = Beat(), bench.begin(), time.monotonic(), 0
    pause = 0.05
    while done < bench.plan.letters:
        beat.rest(pause)
        asked = time.monotonic()
        now_done = bench.finished()
        # `finished` counts rows, which takes long for a large run and would slow down the measured work.
        pause = max(0.05, 50 * (time.monotonic() - asked))
        if now_done > done:
            done, last = now_done, time.monotonic()
        if worker.has_ended() or time.monotonic() - last > 3 * bench.plan.long_poll + 120:
            sys.exit(f"The drain stands still at {done:,} letters:\n{worker.log_since_start()[-4000:]}")
    return time.monotonic() - began


def let_postgres_count(folder: Path) -> None:
    """Have the cluster in this folder load pg_stat_statements with its next start."""
    with Stack(folder) as stack, psycopg.connect(stack.postgres.url, autocommit=True) as database:
        database.execute("ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'")


def run(plan: Plan) -> dict[str, Any]:
    """Run both loops on one stack and return their figures."""
    with tempfile.TemporaryDirectory(prefix="redrive-drain-") as folder:
        let_postgres_count(Path(folder))
        with Stack(Path(folder)) as stack:
            furnish(stack, {"LONG_POLL": plan.long_poll})
            with psycopg.connect(stack.postgres.url, autocommit=True) as database:
                database.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
            bench = Bench(stack, plan)
            bare_rate = bare(bench)
            options = ["--pool", "solo"] if plan.solo else ["--concurrency", "2"]
            worker = employ(stack, options, profile=plan.profile)
            try:
                seconds = drain(bench, worker)
            finally:
                worker.stop()
            figures = _figures(bench, seconds, bare_rate)
            bench.database.close()
            return figures


def _figures(bench: Bench, seconds: float, bare_rate: float) -> dict[str, Any]:
    told, statements, letters = bench.told(), bench.statements(), bench.plan.letters
    if told.accepted != letters:
        sys.exit(f"{told.accepted:,} sends were accepted for {letters:,} letters: not a drain without duplicates.")
    silence = told.last_heard - told.last_full
    return {
        "letters_per_second": round(letters / (seconds - silence)),
        "bare_letters_per_second": round(bare_rate),
        "ratio": round(letters / (seconds - silence) / bare_rate, 3),
        "calls_a_letter": round(told.calls.total() / letters, 4),
        "statements_a_letter": round(sum(calls for calls, _, _ in statements) / letters, 4),
        "seconds": {"all": round(seconds, 2), "silence": round(silence, 2), **bench.phases()},
        "calls": dict(told.calls.most_common()),
        "statements": [
            {"calls": calls, "milliseconds": round(spent), "text": " ".join(text.split())}
            for calls, spent, text in statements
        ],
        "cores": os.cpu_count(),
    }


def show(figures: dict[str, Any]) -> None:
    """Print the figures for people."""
    spent = figures["seconds"]
    print(f"letters/s                {figures['letters_per_second']:>8,}")
    print(f"the bare loop's          {figures['bare_letters_per_second']:>8,}   ratio {figures['ratio']}")
    print(f"SQS calls a letter       {figures['calls_a_letter']:>8.3f}   at most {MOST_CALLS}")
    print(f"SQL statements a letter  {figures['statements_a_letter']:>8.3f}   at most {MOST_STATEMENTS}")
    print(
        f"{spent['all']} s in all: {spent['capture']} s of capture, {spent['replay']} s of replay; "
        f"{spent['silence']} s of listening to an empty dlq do not count as letters/s"
    )


def show_statements(statements: list[dict[str, Any]], most: int) -> None:
    """Print the statements with the most calls, and those with the most total time."""
    for heading, column in (("executed most often", "calls"), ("longest in all", "milliseconds")):
        print(f"\n{heading}: calls, ms in all, ms each")
        for statement in sorted(statements, key=lambda one: -one[column])[:most]:
            calls, spent = statement["calls"], statement["milliseconds"]
            print(f"{calls:>8,} {spent:>9,} {spent / calls:>8.2f}   {statement['text'][:110]}")


def main() -> int:
    """Print the figures; return 1 when a letter costs more than the limits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--letters", type=int, default=20_000, help="in the dlq (default: %(default)s)")
    parser.add_argument("--keys", type=int, default=2_000, help="ordering keys (default: %(default)s)")
    parser.add_argument("--long-poll", type=int, default=1, help="seconds of an empty receive (default: %(default)s)")
    parser.add_argument("--profile", type=Path, help="let a solo worker write a cProfile to this file")
    parser.add_argument("--statements", type=int, default=0, metavar="N", help="print the N most frequent and longest")
    parser.add_argument("--json", action="store_true", help="print JSON, with every call and statement")
    given = parser.parse_args()
    plan = Plan(
        letters=given.letters, keys=given.keys, long_poll=given.long_poll, solo=given.profile is not None,
        profile=given.profile,
    )  # fmt: skip
    figures = run(plan)
    if given.json:
        print(json.dumps(figures, indent=2))
    else:
        show(figures)
        if given.statements:
            show_statements(figures["statements"], given.statements)
    cheap = figures["calls_a_letter"] <= MOST_CALLS and figures["statements_a_letter"] <= MOST_STATEMENTS
    return 0 if cheap else 1


if __name__ == "__main__":
    sys.exit(main())
