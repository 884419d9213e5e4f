"""The shop's consumer, a process of its own: `python -m redrive_service.sandbox.shop.consumer QUEUE_URL LOG MODE`.

The file MODE controls the consumer. While the file contains `mended`, the consumer handles all valid messages. While it
contains `broken`, the consumer fails every message, and makes it visible again at once. With `mended 100`, the consumer
writes `broken` into the file after a total of 100 handled messages.

To handle a message means to write a line of JSON to LOG, and to delete the message. The line has the message, begin and
end (seconds since 1970), and the outcome: `ok`, `failed`, or `again` for a message that was handled before.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef

BROKEN: Final = "broken"
MENDED: Final = "mended"
OUT_OF_ORDER: Final = "the ledger does not answer"  #: the error of every message while the consumer is broken
THREADS: Final = 8
VISIBILITY: Final = 1.0  # seconds, the visibility timeout of the queue
# A message that waited longer in its batch is skipped, because it could become visible while it is handled.
FRESH: Final = 0.6 * VISIBILITY
_LONG_POLL: Final = 1  # seconds
_PAUSE: Final = 0.2  # seconds, after an error of SQS


class CannotHandle(Exception):
    """The message was not handled. It stays in the queue."""


class Journal:
    """The consumer's log, and the messages that it has handled."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._handled: set[str] = set()
        self._lock = Lock()

    def write(self, message: MessageTypeDef, *, started: float, outcome: str, why: str) -> None:
        """Write one processing of a message to the log, as one line."""
        attributes = {name: value.get("StringValue") for name, value in message.get("MessageAttributes", {}).items()}
        line = {
            "message_id": message["MessageId"],
            **{name: attributes.get(name) for name in ("event_id", "account", "sequence")},
            "redrive": attributes.get("RedriveId"),
            "started": started,
            "ended": wall_clock(),
            "outcome": outcome,
            "why": why,
        }
        with self._lock:
            os.write(self._file, json.dumps(line).encode() + b"\n")
            if outcome == "ok":
                self._handled.add(message["MessageId"])

    def has(self, message: MessageTypeDef) -> bool:
        """Return whether the message was handled before."""
        return message["MessageId"] in self._handled

    def mode(self, path: Path) -> str:
        """Return the mode in the file. Write `broken` first if the allowed number of messages was handled."""
        mode, _, most = path.read_text().strip().partition(" ")
        if not most or len(self._handled) < int(most):
            return mode
        path.write_text(BROKEN)
        return BROKEN


def wall_clock() -> float:
    """Return seconds since 1970, to compare this log with other logs."""
    return time.time()  # noqa: TID251  # a separate process, which reads its clock here


def handle(message: MessageTypeDef, mode: str) -> None:
    """Check that the event in the message can be handled.

    Raises:
        CannotHandle: the consumer is broken, or the event is invalid.
    """
    if mode != MENDED:
        raise CannotHandle(OUT_OF_ORDER)
    try:
        float(json.loads(message["Body"])["data"]["amount"])
    except (ValueError, KeyError, TypeError) as error:
        raise CannotHandle(f"the event has no amount: {error}") from error


def take(message: MessageTypeDef, mode: str, journal: Journal) -> bool:
    """Handle one message, and write its line to the log. Return whether the message may be deleted.

    `mode` is the first word in the file MODE: `mended` or `broken`.
    """
    started = wall_clock()
    if journal.has(message):
        journal.write(message, started=started, outcome="again", why="")
        return True
    try:
        handle(message, mode)
    except CannotHandle as failure:
        journal.write(message, started=started, outcome="failed", why=str(failure))
        return False
    journal.write(message, started=started, outcome="ok", why="")
    return True


def take_batch(client: SQSClient, url: str, mode: Path, journal: Journal) -> None:
    """Receive up to ten messages, and handle them in order. Delete handled messages; make failed messages visible."""
    answer = client.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=_LONG_POLL, MessageAttributeNames=["All"]
    )
    received = time.monotonic()
    done: list[MessageTypeDef] = []
    failed: list[MessageTypeDef] = []
    for message in answer.get("Messages", []):
        if time.monotonic() - received < FRESH:
            (done if take(message, journal.mode(mode), journal) else failed).append(message)
    if done:
        client.delete_message_batch(
            QueueUrl=url,
            Entries=[{"Id": str(n), "ReceiptHandle": message["ReceiptHandle"]} for n, message in enumerate(done)],
        )
    if failed:
        client.change_message_visibility_batch(
            QueueUrl=url,
            Entries=[
                {"Id": str(n), "ReceiptHandle": message["ReceiptHandle"], "VisibilityTimeout": 0}
                for n, message in enumerate(failed)
            ],
        )


def work(client: SQSClient, url: str, mode: Path, journal: Journal, stop: Event) -> None:
    """Handle batches until `stop` is set. After an error of SQS, try again."""
    while not stop.is_set():
        try:
            take_batch(client, url, mode, journal)
        except (BotoCoreError, ClientError) as error:
            sys.stderr.write(f"{error}\n")
            stop.wait(_PAUSE)


def main(url: str, log: str, mode: str) -> None:
    """Consume messages of the queue with this URL until SIGTERM or SIGINT. `log` and `mode` are paths of files."""
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    config = Config(connect_timeout=3, read_timeout=10, max_pool_connections=THREADS)
    client, journal = boto3.client("sqs", config=config), Journal(Path(log))
    sys.stdout.write("consuming\n")
    sys.stdout.flush()
    with ThreadPoolExecutor(THREADS) as threads:
        for done in [threads.submit(work, client, url, Path(mode), journal, stop) for _ in range(THREADS)]:
            done.result()


if __name__ == "__main__":
    main(*sys.argv[1:])
