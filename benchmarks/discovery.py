"""Measure a discovery: 300 queues in each of 12 scopes (4 accounts in 3 regions), on a local SQS that answers in 10 ms.

    .venv/bin/python benchmarks/discovery.py                      exits with 1 above 120 s
    .venv/bin/python benchmarks/discovery.py --milliseconds 50 --queues 100

The local SQS has only one account, so each scope has a prefix of its own. With a prefix, a discovery
also asks SQS for the sources of each queue, which takes twice the requests of a discovery without a prefix.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any, Final

import boto3

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.stand import set_up_django  # found through the line above
from redrive_service.sandbox.stack import Stack

MOST: Final = 120.0  #: seconds


def create(scopes: int, queues: int) -> None:
    """Create `queues` queues for each scope; every third queue is the DLQ of the two queues after it."""
    sqs: Any = boto3.client("sqs")
    region = os.environ["AWS_DEFAULT_REGION"]
    for scope in range(scopes):
        for number in range(queues):
            name, first = f"d{scope:02}-{number:04}", number - number % 3
            dlq = f"arn:aws:sqs:{region}:000000000000:d{scope:02}-{first:04}"
            policy = {"RedrivePolicy": json.dumps({"deadLetterTargetArn": dlq, "maxReceiveCount": 3})}
            sqs.create_queue(QueueName=name, Attributes=policy if number % 3 else {})


def main() -> int:
    """Print the figures; return 1 if the discovery took too long or found another number of DLQs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scopes", type=int, default=12)
    parser.add_argument("--queues", type=int, default=300)
    parser.add_argument("--milliseconds", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Stack(Path(folder)) as stack:
        set_up_django(stack, {})
        create(options.scopes, options.queues)
        delay = [{"kind": "delay", "milliseconds": options.milliseconds, "jitter": options.milliseconds // 5}]
        request = urllib.request.Request(
            f"{stack.queues.endpoint}/_sandbox/faults", data=json.dumps(delay).encode(), method="PUT"
        )
        request.add_header("Content-Type", "application/json")
        urllib.request.urlopen(request, timeout=10).close()
        return _measure(options.scopes, options.queues)


def _measure(scopes: int, queues: int) -> int:
    from reprocessing import conf  # noqa: PLC0415  # its settings are known by now
    from reprocessing.domain.dlqs.discovery import Scope  # noqa: PLC0415  # likewise
    from reprocessing.pipeline.dlqs import discover  # noqa: PLC0415  # likewise
    from reprocessing.store.dlqs import discovered_queues, discovery_scopes  # noqa: PLC0415  # likewise

    began, processor = time.monotonic(), time.process_time()
    for scope in range(scopes):
        key = discovery_scopes.add_scope(Scope(os.environ["AWS_DEFAULT_REGION"], prefix=f"d{scope:02}-"))
        discover.scan_scope(key, conf.current(), dice=random.SystemRandom().random)
    took, processor = time.monotonic() - began, time.process_time() - processor
    found, wanted = len(discovered_queues.list_dlqs()), scopes * (queues // 3)
    print(f"{scopes} scopes x {queues} queues: {took:.1f} s, processor {processor:.1f} s, {found:,} DLQs")
    return int(took > MOST or found != wanted)


if __name__ == "__main__":
    sys.exit(main())
