"""Measure a slow target: letters per second to an HTTP endpoint of 50 ms, by one worker process, in order per key.

Starts the embedded stack, an endpoint in a process of its own, and one real worker (one process, one letter task at a
time). The endpoint's record shows the rate, whether each key's letters came in order and one at a time, and,
with --hang, whether a key whose first letter hangs for 30 s delayed other keys. Exits with 1 when a letter was
out of order, or when the rate is below the limit.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import boto3

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import itertools

from benchmarks.stand import Beat, set_up_django, start_worker  # found through the line above
from redrive_service.sandbox.servers.process import RunningServer, Server, free_port
from redrive_service.sandbox.stack import Stack

LOWEST_RATE: Final = 1_000  #: letters per second
BATCH: Final = 10  #: letters of one SQS call
HANGING: Final = "k-0"
PATIENCE: Final = 60.0  #: seconds without a letter, after which the drain counts as stopped


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to send, and where. `letters`: of each key. `pause`: seconds until the endpoint answers.

    `hang`: whether one key's letters wait for 30 s. `profile`: file to which the worker writes its profile.
    """

    keys: int
    letters: int
    pause: float
    hang: bool
    profile: Path | None

    @property
    def expected(self) -> int:
        """Return how many letters will finish soon: all but those of the hanging key."""
        return (self.keys - self.hang) * self.letters


def create_dlq(plan: Plan) -> str:
    """Create a DLQ with the letters of all keys; return its URL."""
    sqs: Any = boto3.client("sqs")
    dlq: str = sqs.create_queue(QueueName="hooks-dlq", Attributes={"VisibilityTimeout": "300"})["QueueUrl"]
    letters = [(f"k-{key}", n) for n in range(plan.letters) for key in range(plan.keys)]
    for first in range(0, len(letters), BATCH):
        sqs.send_message_batch(QueueUrl=dlq, Entries=[_letter(*one) for one in letters[first : first + BATCH]])
    return dlq


def _letter(key: str, n: int) -> dict[str, Any]:
    told = {"key": key, "n": str(n)}
    return {
        "Id": f"{key}-{n}",
        "MessageBody": json.dumps({"key": key, "n": n, "rest": "x" * 400}),
        "MessageAttributes": {one: {"DataType": "String", "StringValue": text} for one, text in told.items()},
    }


def watch(dlq: str, port: int) -> None:
    """Register the DLQ: mode automatic, with ordering keys, without rate limit, ramp-up and waves."""
    from reprocessing.gateways.sqs import QueueAddress, describe  # noqa: PLC0415
    from reprocessing.models import Breaker, DeadLetterQueue, Source, Target  # noqa: PLC0415  # Django is set up by now

    here, url = QueueAddress.of(dlq), f"http://127.0.0.1:{port}/letters"
    target = Target.objects.create(kind="http", arn=url, url=url, region=here.region, rate=None)
    Breaker.objects.filter(target=target).update(ramp_from=1, ramp=1)
    watched = DeadLetterQueue.objects.create(
        name="hooks", url=dlq, arn=describe(here).arn, region=here.region, mode="automatic", new_key_delay=0,
        waves=False,
        ordering_key="attribute:key", sequence="attribute:n", held_copies_limit=100_000,
    )  # fmt: skip
    Source.objects.create(dlq=watched, arn=url, target=target)


def drain(plan: Plan, port: int, worker: RunningServer) -> list[list[Any]]:
    """Send beat's ticks until the endpoint got every letter; return the endpoint's record of requests."""
    beat, last, seen = Beat(), time.monotonic(), 0
    while True:
        beat.tick_and_wait(0.5)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
            record: list[list[Any]] = json.load(answer)
        done = sum(1 for key, _, _, ended in record if ended and not (plan.hang and key == HANGING))
        if done >= plan.expected:
            return record
        if done > seen:
            seen, last = done, time.monotonic()
        if worker.has_ended() or time.monotonic() - last > PATIENCE:
            sys.exit(f"No further letter arrived after {done:,} letters:\n{worker.log_since_start()[-4000:]}")


def judge(plan: Plan, record: list[list[Any]]) -> dict[str, Any]:
    """Return the figures of the endpoint's record; exit if letters of a key came out of order, or at the same time."""
    lanes: dict[str, list[list[Any]]] = defaultdict(list)
    for line in record:
        lanes[line[0]].append(line)
    whole = {key: some for key, some in lanes.items() if not (plan.hang and key == HANGING)}
    for key, some in whole.items():
        if [n for _, n, _, _ in some] != list(range(plan.letters)):
            sys.exit(f"The letters of {key} arrived in the order {[n for _, n, _, _ in some]}.")
        if any(after[2] < before[3] for before, after in itertools.pairwise(some)):
            sys.exit(f"Two letters of {key} were being sent at once.")
    others = [line for some in whole.values() for line in some]
    first, last = min(line[2] for line in others), max(line[3] for line in others)
    return {
        "letters_per_second": round(len(others) / (last - first)),
        "seconds": round(last - first, 2),
        "open_at_most": _most_open(others),
        "hung": sum(1 for key, *_ in record if plan.hang and key == HANGING),
        "cores": os.cpu_count(),
    }


def _most_open(lines: list[list[Any]]) -> int:
    moments = sorted([(line[2], 1) for line in lines] + [(line[3], -1) for line in lines])
    most = now = 0
    for _, step in moments:
        now += step
        most = max(most, now)
    return most


def run(plan: Plan) -> dict[str, Any]:
    """Run one drain and return its figures."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="redrive-webhook-") as folder, Stack(Path(folder)) as stack:
        set_up_django(stack, {"LONG_POLL": 1, "OUTBOUND_HOSTS": [f"127.0.0.1:{port}"]})
        command = [sys.executable, str(Path(__file__).with_name("endpoint.py")), str(port), str(plan.pause)]
        told = Server(
            name="endpoint", command=[*command, HANGING if plan.hang else ""], log=stack.folder / "endpoint.log",
            environment=dict(os.environ),
        )  # fmt: skip
        endpoint = RunningServer(told)
        try:
            watch(create_dlq(plan), port)
            worker = start_worker(
                stack, ["--concurrency", "1"] if not plan.profile else ["--pool", "solo"], profile=plan.profile
            )
            try:
                return judge(plan, drain(plan, port, worker))
            finally:
                worker.stop()
        finally:
            endpoint.stop()


def main() -> int:
    """Print the figures; return 1 when the rate is below the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=1_000, help="(default: %(default)s)")
    parser.add_argument("--letters", type=int, default=5, help="of each key (default: %(default)s)")
    parser.add_argument("--pause", type=float, default=0.05, help="seconds until an answer (default: %(default)s)")
    parser.add_argument("--hang", action="store_true", help="the endpoint hangs for 30 s on the letters of one key")
    parser.add_argument("--profile", type=Path, help="let a solo worker write a cProfile to this file")
    given = parser.parse_args()
    figures = run(Plan(**vars(given)))
    print(json.dumps(figures, indent=2))
    return 0 if figures["letters_per_second"] >= LOWEST_RATE else 1


if __name__ == "__main__":
    sys.exit(main())
