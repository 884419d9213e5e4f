"""Measure an idle service: the SQS calls of many empty DLQs on the embedded stack, by action and by owner of the queue.

    .venv/bin/python benchmarks/idle.py                     300 DLQs, 60 s; exits with 1 above 10 calls per second
    .venv/bin/python benchmarks/idle.py --dlqs 20 --seconds 30

This process sends beat's ticks every 2 s, as in production. The DLQs are automatic, have the default schedule, and
their first polls are spread over a minute, as in a service that has run for a while. A worker consumes all three
queues of the service, with the long polls of production.
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
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import boto3

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.stand import Beat, set_up_django, start_worker  # found through the line above
from redrive_service.sandbox.stack import Stack

MOST: Final = 10.0  #: calls per second of all queues together
SETTLING: Final = 10.0  #: seconds before the first call that counts


def add(dlqs: int) -> None:
    """Add this many empty DLQs, whose next polls are spread over the next minute."""
    from reprocessing.models import DeadLetterQueue  # noqa: PLC0415  # its settings are known by now
    from reprocessing.store.ordering import lanes  # noqa: PLC0415  # its settings are known by now

    sqs: Any = boto3.client("sqs")
    now, rows = lanes.database_now(), list[DeadLetterQueue]()
    for number in range(dlqs):
        url = sqs.create_queue(QueueName=f"idle-{number}")["QueueUrl"]
        turn = now + timedelta(seconds=60 * number / dlqs)
        arn = f"arn:aws:sqs:{os.environ['AWS_DEFAULT_REGION']}:000000000000:idle-{number}"
        rows.append(
            DeadLetterQueue(
                name=f"idle-{number}", url=url, arn=arn, region=os.environ["AWS_DEFAULT_REGION"], mode="automatic",
                next_poll_at=turn,
            )
        )  # fmt: skip
    DeadLetterQueue.objects.bulk_create(rows)


def calls(since: int) -> tuple[list[dict[str, Any]], int]:
    """Return the logged SQS calls from number `since` on, and the number from which to continue."""
    found: list[dict[str, Any]] = []
    while True:
        asked = f"{os.environ['AWS_ENDPOINT_URL_SQS']}/_sandbox/calls?since={since}"
        with urllib.request.urlopen(asked, timeout=30) as answer:
            page = json.load(answer)
        found += page["calls"]
        since = page["next"]
        if since >= page["end"]:
            return found, since


def measure(dlqs: int, seconds: float) -> Counter[tuple[str, str]]:
    """Return how many SQS calls were made in `seconds`, by action and by owner of the queue."""
    with tempfile.TemporaryDirectory(prefix="redrive-idle-") as folder, Stack(Path(folder)) as stack:
        set_up_django(stack, {"OWN_QUEUES": ()})
        worker = start_worker(stack, ["--concurrency", "2"])
        try:
            add(dlqs)
            beat = Beat()
            wait(beat, SETTLING)
            _, since = calls(0)
            wait(beat, seconds)
            found, _ = calls(since)
        finally:
            worker.stop()
    return Counter((one["action"], "a DLQ" if one["queue"].startswith("idle-") else "the service's") for one in found)


def wait(beat: Beat, seconds: float) -> None:
    """Send beat's ticks for this many seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        beat.tick_and_wait(0.1)


def main() -> None:
    """Measure and print; exit with 1 above `MOST` calls per second."""
    said = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    said.add_argument("--dlqs", type=int, default=300)
    said.add_argument("--seconds", type=float, default=60.0)
    given = said.parse_args()
    found = measure(given.dlqs, given.seconds)
    for (action, whose), n in sorted(found.items(), key=lambda one: -one[1]):
        print(f"{action:<32}{whose:<16}{n / given.seconds:>8.2f} a second")
    rate = sum(found.values()) / given.seconds
    print(f"{given.dlqs} DLQs: {rate:.2f} calls a second in all; the limit is {MOST:g}.")
    sys.exit(rate > MOST)


if __name__ == "__main__":
    main()
