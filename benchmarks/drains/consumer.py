"""A consumer for benchmarks: deletes the messages that it receives, and fails each STEPth letter once.

Run it as `consumer.py URL STEP`. With STEP 0, it fails no letter. A failed letter becomes visible at once, so that the
next receive moves it to the DLQ.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any, Final

import boto3

THREADS: Final = 4


def consume(url: str, step: int, failed: set[int]) -> None:
    """Receive and delete messages of the queue `url` until the process is ended.

    `step`: fail every so many letters once.
    """
    sqs: Any = boto3.client("sqs")
    while True:
        done, bad = [], []
        found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1).get("Messages", [])
        for number, message in enumerate(found):
            letter = json.loads(message["Body"])["n"]
            fails = step > 0 and letter % step == 0 and letter not in failed
            (bad if fails else done).append({"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]})
            if fails:
                failed.add(letter)
        if done:
            sqs.delete_message_batch(QueueUrl=url, Entries=done)
        if bad:
            hidden = [{**entry, "VisibilityTimeout": 0} for entry in bad]
            sqs.change_message_visibility_batch(QueueUrl=url, Entries=hidden)


if __name__ == "__main__":
    seen: set[int] = set()
    for _ in range(THREADS):
        threading.Thread(target=consume, args=(sys.argv[1], int(sys.argv[2]), seen), daemon=True).start()
    threading.Event().wait()
