"""Compare a drain through Celery with movers without a memory: letters per second, processor time, SQS calls, SQL.

Starts the embedded stack and one real worker (prefork, two processes). In each round, three competitors move equal
queues, one after another: a boto3 loop with one thread, a boto3 loop with 16 threads, and the service, which gets
beat's ticks until every letter is delivered and its copy deleted (outcome `accepted`, no rate limit). Prints medians
and ranges over the rounds, and exits with 1 when a letter costs more calls or statements than the limits.

PostgreSQL counts the SQL statements of all its clients (pg_stat_statements), without BEGIN, COMMIT,
Django's check of an idle connection, and the foreign key checks of PostgreSQL. SQS calls are counted in the
local SQS's call log, without the broker's queues.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import movers  # found through the line above
from benchmarks.drain_figures import Cost, Ledger
from benchmarks.processor_time import seconds_by_part
from benchmarks.stand import Beat, employ, furnish
from redrive_service.sandbox.servers.process import RunningServer
from redrive_service.sandbox.stack import Stack

BODY: Final = 510
MOST_CALLS: Final = 0.40
MOST_STATEMENTS: Final = 0.20
THREADS: Final = (1, 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to drain. `long_poll`: seconds of an empty receive: three empty receives in a row end a capture."""

    letters: int
    keys: int
    rounds: int
    latency: int  # milliseconds of each SQS call
    long_poll: int
    processes: int
    profile: Path | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """Letters per second of each competitor, and what a letter costs the service."""

    service: float
    movers: dict[int, float]  # by threads
    cost: Cost
    seconds: dict[str, float]


def fill(ledger: Ledger, plan: Plan, name: str) -> tuple[str, str]:
    """Create and fill a dlq; return its URL and the URL of its source queue."""
    dlq = ledger.sqs.create_queue(QueueName=f"{name}-dlq", Attributes={"VisibilityTimeout": "900"})["QueueUrl"]
    source = ledger.sqs.create_queue(QueueName=name)["QueueUrl"]
    for first in range(0, plan.letters, movers.BATCH):
        entries = [_letter(number, plan.keys) for number in range(first, first + movers.BATCH)]
        ledger.sqs.send_message_batch(QueueUrl=dlq, Entries=entries)
    return dlq, source


def _letter(number: int, keys: int) -> Any:  # noqa: ANN401 - boto3's own shape
    told = {"account": f"a-{number % keys}", "sequence": str(number // keys)}
    body = json.dumps({"event": number, "rest": "x" * BODY})[: BODY - 2] + '"}'
    attributes = {name: {"DataType": "String", "StringValue": value} for name, value in told.items()}
    return {"Id": str(number % movers.BATCH), "MessageBody": body, "MessageAttributes": attributes}


def watch(name: str, dlq: str, source: str) -> int:
    """Add the dlq to the service: automatic, lanes by account, no rate limit. Return its id."""
    from reprocessing.gateways.sqs import QueueAddress, describe  # noqa: PLC0415
    from reprocessing.models import DeadLetterQueue, Source, Target  # noqa: PLC0415  # Django is set up by now

    there, here = QueueAddress.of(source), QueueAddress.of(dlq)
    home = describe(there).arn
    target = Target.objects.create(arn=home, url=source, region=there.region, rate=None)
    watched = DeadLetterQueue.objects.create(
        name=name, url=dlq, arn=describe(here).arn, region=here.region, mode="automatic", new_key_delay=0,
        ordering_key="attribute:account", sequence="attribute:sequence", held_copies_limit=2_000_000,
    )  # fmt: skip
    Source.objects.create(dlq=watched, arn=home, target=target)
    return int(watched.pk)


def forget(dlq: int) -> None:
    """Take the dlq out of service: it costs the next round nothing."""
    from reprocessing.models import DeadLetterQueue  # noqa: PLC0415  # as above

    DeadLetterQueue.objects.filter(pk=dlq).update(mode="observe")


def drain(ledger: Ledger, plan: Plan, worker: RunningServer, dlq: int) -> float:
    """Send beat's ticks until every letter is finished; return the seconds it took."""
    beat, began, last, done = Beat(), time.monotonic(), time.monotonic(), 0
    pause = 0.05
    while done < plan.letters:
        beat.rest(pause)
        asked = time.monotonic()
        now_done = ledger.finished(dlq)
        # `finished` counts rows, which takes long for a large run and would slow down the measured work.
        pause = max(0.05, 50 * (time.monotonic() - asked))
        if now_done > done:
            done, last = now_done, time.monotonic()
        if worker.has_ended() or time.monotonic() - last > 3 * plan.long_poll + 120:
            sys.exit(f"The drain stands still at {done:,} letters:\n{worker.log_since_start()[-4000:]}")
    return time.monotonic() - began


def compete(ledger: Ledger, plan: Plan, worker: RunningServer, number: int) -> Round:
    """Let each competitor drain equal queues."""
    moved = {}
    for threads in THREADS:
        dlq, source = fill(ledger, plan, f"mover-{number}-{threads}")
        with ledger.slow(plan.latency):
            moved[threads] = movers.letters_per_second(dlq, source, plan.letters, threads=threads)
    name = f"drain-{number}"
    watched = watch(name, *fill(ledger, plan, name))
    ledger.begin()
    before = seconds_by_part()
    with ledger.slow(plan.latency):
        seconds = drain(ledger, plan, worker, watched)
    used = seconds_by_part()
    used.subtract(before)
    forget(watched)
    cost, silence = ledger.cost(name, plan.letters, used)
    spent = {"all": round(seconds, 2), "silence": round(silence, 2), **ledger.phases(watched)}
    return Round(plan.letters / (seconds - silence), moved, cost, spent)


def let_postgres_count(folder: Path) -> None:
    """Have the cluster in this folder load pg_stat_statements with its next start."""
    with Stack(folder) as stack, psycopg.connect(stack.postgres.url, autocommit=True) as database:
        database.execute("ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'")
        database.execute("ALTER SYSTEM SET pg_stat_statements.track_planning = on")


def run(plan: Plan) -> list[Round]:
    """Run all rounds on one stack."""
    with tempfile.TemporaryDirectory(prefix="redrive-drain-") as folder:
        let_postgres_count(Path(folder))
        with Stack(Path(folder)) as stack:
            furnish(stack, {"LONG_POLL": plan.long_poll})
            ledger = Ledger(stack)
            options = ["--pool", "solo"] if plan.profile else ["--concurrency", str(plan.processes)]
            worker = employ(stack, options, profile=plan.profile)
            try:
                return [compete(ledger, plan, worker, number) for number in range(plan.rounds)]
            finally:
                worker.stop()
                ledger.close()


def show(rounds: Sequence[Round], plan: Plan) -> None:
    """Print the figures for people."""
    service = statistics.median(result.service for result in rounds)
    print(f"{plan.letters:,} letters, {plan.keys:,} keys, {plan.latency} ms a call, {plan.rounds} round(s)")
    print(f"{'letters/s':<24} {'median':>8}  range")
    _show_rates("this service", [result.service for result in rounds])
    for threads in THREADS:
        rates = [result.movers[threads] for result in rounds]
        _show_rates(f"boto3 loop, {threads} thread(s)", rates, f"ratio {service / statistics.median(rates):.2f}")
    for name, limit in (("calls", MOST_CALLS), ("statements", MOST_STATEMENTS)):
        print(f"{name + ' a letter':<24} {_median(rounds, name):>8.3f}  at most {limit}")
    print(f"{'WAL a letter, KB':<24} {_median(rounds, 'wal') / 1000:>8.1f}")
    parts = {
        part: statistics.median(result.cost.processor[part] for result in rounds) for part in rounds[0].cost.processor
    }
    print("processor ms a letter   ", ", ".join(f"{part} {1000 * spent:.2f}" for part, spent in parts.items()))
    print("seconds of the last round", rounds[-1].seconds)


def _median(rounds: Sequence[Round], name: str) -> float:
    return statistics.median(getattr(result.cost, name) for result in rounds)


def _show_rates(name: str, rates: Sequence[float], more: str = "") -> None:
    print(f"{name:<24} {statistics.median(rates):>8,.0f}  {min(rates):,.0f} to {max(rates):,.0f}  {more}")


def main() -> int:
    """Print the figures; return 1 when a letter costs more than the limits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--letters", type=int, default=10_000, help="in each dlq (default: %(default)s)")
    parser.add_argument("--keys", type=int, help="ordering keys (default: a tenth of the letters)")
    parser.add_argument("--rounds", type=int, default=1, help="of all competitors (default: %(default)s)")
    parser.add_argument("--latency", type=int, default=0, help="milliseconds of each SQS call (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=2, help="of the worker (default: %(default)s)")
    parser.add_argument("--long-poll", type=int, default=1, help="seconds of an empty receive (default: %(default)s)")
    parser.add_argument("--profile", type=Path, help="let a solo worker write a cProfile to this file")
    parser.add_argument(
        "--statements", type=int, default=0, metavar="N", help="print the N statements that took longest"
    )
    given = parser.parse_args()
    plan = Plan(
        letters=given.letters // movers.BATCH * movers.BATCH, keys=given.keys or max(1, given.letters // 10),
        rounds=given.rounds, latency=given.latency, long_poll=given.long_poll, processes=given.processes,
        profile=given.profile,
    )  # fmt: skip
    rounds = run(plan)
    show(rounds, plan)
    for statement in rounds[-1].cost.longest[: given.statements]:
        print(statement)
    return 0 if _median(rounds, "calls") <= MOST_CALLS and _median(rounds, "statements") <= MOST_STATEMENTS else 1


if __name__ == "__main__":
    sys.exit(main())
