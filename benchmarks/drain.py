"""Compare a drain by the service with simple loops: letters per second, processor time, SQS calls, SQL statements.

Starts the embedded stack and one real worker (prefork, two processes). In each round, three competitors move equal
queues, one after another: a boto3 loop with one thread, a boto3 loop with 16 threads, and the service, which gets
beat's ticks until every letter is delivered and deleted from the DLQ (no rate limit, no ramp-up, no waves). After each
round, the program ends with an error unless every letter was sent as often as planned, in order, and is delivered.
Prints medians and ranges over the rounds. Exits with 1 if a letter costs more calls or statements than the limits.

PostgreSQL counts the SQL statements of all its clients (pg_stat_statements), without BEGIN, COMMIT,
Django's check of an idle connection, and the foreign key checks of PostgreSQL. SQS calls are counted in the
local SQS's call log, without the broker's queues.
"""

from __future__ import annotations

import argparse
import base64
import json
import secrets
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import boto3
import psutil
import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.drains import drain_queues as queues  # found through the line above
from benchmarks.drains import drain_sides, history
from benchmarks.drains.drain_calls import CallLog, SqsCalls
from benchmarks.drains.drain_plan import Plan, add_options, plan_of
from benchmarks.drains.drain_report import THREADS, Round, exceeds, show
from benchmarks.drains.drain_rows import Database, Times
from benchmarks.drains.machine import machine
from benchmarks.drains.movers import Loop
from benchmarks.drains.processes import seconds_by_part, worker_memory
from benchmarks.stand import Beat, set_up_django, start_worker
from redrive_service.sandbox.servers.process import RunningServer, free_port
from redrive_service.sandbox.stack import Stack

SERVICE: Final = "drain"  #: the name of the service's DLQ, and the beginning of its keys


@dataclass(frozen=True, slots=True)
class Stand:
    """The embedded stack with a worker, and the DLQ that the service drains (URL `dlq`, database id `watched`)."""

    plan: Plan
    sqs: Any
    calls: CallLog
    database: Database
    worker: RunningServer
    dlq: str
    source: str
    watched: int
    endpoint: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What the stack used while the service drained. `processor`: seconds by part, before and after the first send.

    `memory`: bytes of the worker. `connections`: the most connections of the worker to PostgreSQL.
    """

    processor: dict[str, dict[str, float]]
    memory: dict[str, int]
    connections: int


def drain(stand: Stand) -> Used:
    """Send beat's ticks until every letter is finished; return what the stack used in this time."""
    beat, plan, database = Beat(), stand.plan, stand.database
    before, first, connections = seconds_by_part(), None, 0
    last, next_count, previous = time.monotonic(), 0.0, None
    while True:
        beat.tick_and_wait(0.05 if first is None else 0.25)
        connections = max(connections, database.connections())
        if first is None and database.has_sent():
            first = seconds_by_part()
        asked = time.monotonic()
        if asked < next_count:
            continue
        progress = database.progress()
        # Rows are counted, which takes long for a large drain and would slow down the measured work.
        next_count = time.monotonic() + max(0.2, 50 * (time.monotonic() - asked))
        if progress.delivered >= plan.letters and not progress.copies:
            return _used(before, first or seconds_by_part(), connections)
        if progress != previous:
            previous, last = progress, time.monotonic()
        if stand.worker.has_ended() or time.monotonic() - last > 3 * plan.long_poll + 120:
            sys.exit(f"The drain makes no progress: {progress}:\n{stand.worker.log_since_start()[-4000:]}")


def _used(before: Counter[str], first: Counter[str], connections: int) -> Used:
    end = seconds_by_part()
    stages = {part: {"capture": first[part] - before[part], "replay": end[part] - first[part]} for part in end}
    return Used(processor=stages, memory=worker_memory(), connections=connections)


def compete(stand: Stand, number: int) -> Round:
    """Let the two loops and the service each drain an equal queue; return the figures of round `number`."""
    plan, loops = stand.plan, {}
    baseline = drain_baseline(plan.baseline) if plan.baseline else None
    for threads in THREADS:
        label = f"loop-{number}-{threads}"
        dlq, source = queues.create(stand.sqs, plan, label)
        queues.fill(stand.sqs, plan, dlq, label, range(plan.loop_letters(threads)))
        with stand.calls.slow(plan.latency):
            loops[str(threads)] = Loop(plan, dlq, source, stand.endpoint, threads).letters_per_second()
        for queue in (source, dlq):
            stand.sqs.delete_queue(QueueUrl=queue)
    first = number * plan.letters
    queues.fill(stand.sqs, plan, stand.dlq, SERVICE, range(first, first + plan.letters))
    return replace(serve(stand, loops, first), baseline=baseline)


def drain_baseline(options: str) -> dict[str, Any]:
    """Do another drain, in a process and a stack of its own; return the figures of its last round."""
    with tempfile.TemporaryDirectory(prefix="redrive-baseline-") as folder:
        file = Path(folder) / "figures.json"
        command = [sys.executable, __file__, *options.split(), "--figures", str(file)]
        # Its exit status is ignored: it tells of limits that do not apply here. A failed drain has written no figures.
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
        if not file.exists():
            sys.exit(f"The baseline drain failed: {' '.join(command)}")
        figures: dict[str, Any] = json.loads(file.read_text())["rounds"][-1]
    return {name: value for name, value in figures.items() if name != "longest"}


def serve(stand: Stand, loops: dict[str, float], first: int) -> Round:
    """Let the service drain its DLQ, check what became of the letters, and return the round's figures.

    `loops`: letters per second of the loops, by number of threads. `first`: number of the round's first letter.
    """
    plan = stand.plan
    stand.calls.begin()
    began = stand.database.begin()
    queues.set_mode(stand.watched, "automatic")
    with stand.calls.slow(plan.latency):
        used = drain(stand)
    queues.set_mode(stand.watched, "observe")
    times = stand.database.times(plan, f"{SERVICE}-hot", first)
    told = stand.calls.count(stand.dlq, stand.source, times.first_sent)
    if stand.endpoint:
        drain_sides.check_endpoint(plan, stand.endpoint, SERVICE, first)
    else:
        told.check(plan, first)
    queues.empty(stand.sqs, stand.source)
    return _figures(stand, loops, used, times, (told, began))


def _figures(stand: Stand, loops: dict[str, float], used: Used, times: Times, counted: tuple[SqsCalls, float]) -> Round:
    (told, began), letters = counted, stand.plan.letters
    silence, statements = told.silence(), stand.database.statements()
    rates = {name: getattr(times, name) for name in ("first_tenth", "sent", "last_tenth", "others", "hot")}
    return Round(
        **rates, service=letters / (times.ended - began - silence), movers=loops, calls=told.calls / letters,
        statements=sum(calls for calls, *_ in statements) / letters, wal=stand.database.wal() / letters,
        processor={
            part: {stage: 1000 * spent / letters for stage, spent in stages.items()}
            for part, stages in used.processor.items()
        },
        memory=used.memory, connections=used.connections,
        seconds={
            "all": times.ended - began, "capture": times.last_captured - times.first_captured,
            "replay": times.ended - times.first_sent, "silence": silence,
        },
        longest=[
            f"{calls:>7,} calls  {planned:>7,.0f} ms planning {executed:>7,.0f} ms execution {buffers:>9,} buffers"
            f"  {' '.join(text.split())[:300]}"
            for calls, planned, executed, buffers, text in statements
        ],
        baseline=None,
    )  # fmt: skip


def configure_postgres(folder: Path) -> None:
    """Set what docs/production.md recommends for the PostgreSQL cluster in this folder, and load pg_stat_statements.

    The settings take effect at the next start.
    """
    settings = {
        "shared_buffers": f"{psutil.virtual_memory().total // 4 // 1024**2}MB",
        "max_wal_size": "16GB",
        "checkpoint_timeout": "15min",
        "shared_preload_libraries": "pg_stat_statements",
        "pg_stat_statements.track_planning": "on",
    }
    with Stack(folder) as stack, psycopg.connect(stack.postgres.url, autocommit=True) as database:
        for name, value in settings.items():
            database.execute(f"ALTER SYSTEM SET {name} = '{value}'")


@contextmanager
def build(plan: Plan, stack: Stack) -> Iterator[Stand]:
    """Register the DLQ, write the finished letters, and start the worker, and the endpoint or consumer of the plan."""
    port = free_port()
    endpoint = None if plan.http is None else f"http://127.0.0.1:{port}/letters"
    keys = [f"bench={base64.b64encode(secrets.token_bytes(32)).decode()}"] if plan.encrypt else []
    set_up_django(stack, {
        "LONG_POLL": plan.long_poll, "COUNT_LAG": 0, "OUTBOUND_HOSTS": [f"127.0.0.1:{port}"], "PAYLOAD_KEYS": keys,
    })  # fmt: skip
    with ExitStack() as closing:
        sqs, database = boto3.client("sqs"), Database(stack.postgres.url)
        closing.callback(database.close)
        dlq, source = queues.create(sqs, plan, SERVICE)
        watched = queues.watch(plan, dlq, source, endpoint)
        history.remember(stack.postgres.url, watched, plan.history, stack.folder)
        if plan.http is not None:
            closing.enter_context(drain_sides.running("endpoint", stack.folder, str(port), str(plan.http / 1000), ""))
        if plan.outcome == "absence":
            closing.enter_context(drain_sides.running("consumer", stack.folder, source, str(plan.step)))
        options = ["--pool", "solo"] if plan.profile else ["--concurrency", str(plan.processes)]
        worker = start_worker(stack, options, profile=plan.profile)
        closing.callback(worker.stop)
        calls = CallLog(stack.queues.endpoint)
        yield Stand(plan, sqs, calls, database, worker, dlq, source, watched, endpoint)


def run(plan: Plan) -> tuple[list[Round], str]:
    """Run all rounds on one stack; return their figures, and a description of the machine."""
    with tempfile.TemporaryDirectory(prefix="redrive-drain-") as folder:
        configure_postgres(Path(folder))
        with Stack(Path(folder), sqs_in_memory=True) as stack, build(plan, stack) as stand:
            return [compete(stand, number) for number in range(plan.rounds)], machine(stack, stand.database.version())


def main() -> int:
    """Print the figures; return 1 when a letter costs more than the limits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--figures", type=Path, help="write the rounds as JSON to this file")
    parser.add_argument(
        "--statements", type=int, default=0, metavar="N", help="print the N statements that took longest"
    )
    given = parser.parse_args()
    plan = plan_of(parser, given)
    rounds, where = run(plan)
    show(rounds, plan)
    for statement in rounds[-1].longest[: given.statements]:
        print(statement)
    if given.figures:
        given.figures.write_text(json.dumps({"machine": where, "rounds": [asdict(result) for result in rounds]}))
    return 1 if plan.is_plain and exceeds(rounds) else 0


if __name__ == "__main__":
    sys.exit(main())
