"""Letters that are buried in a dlq all the time, and what is to be said of them in the end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Self
from uuid import uuid4

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from redrive_service.sandbox.judge import Experiment
from redrive_service.sandbox.judge.case import Advance
from redrive_service.sandbox.servers.local_sqs import CREDENTIALS
from tests.proof.dependencies.own_servers import ROOT, OwnServers

FINISHED = ("delivered", "parked", "duplicate", "discarded")
PACE = (
    "--mode", "automatic", "--every", "1", "--new-key-delay", "0", "--max-attempts", "1000", "--backoff-base", "0.5",
    "--backoff-cap", "2", "--no-waves", "--ramp-from", "off",
    "--breaker-cooldown", "1", "--breaker-closes-after", "1",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What sort of dlq.

    Attributes:
        a_second: letters that are buried.
        keys: lanes that they are in.
        rate: letters a second to its target, and as many at once.
        advance: of its target; `settled` is judged by absence, and has a consumer.
    """

    name: str
    a_second: int
    keys: int
    rate: float = 100.0
    advance: Advance = "accepted"
    fifo: bool = False

    def options(self) -> tuple[str, ...]:
        pace = (*PACE, "--rate", f"{self.rate:g}", "--burst", f"{self.rate:g}")
        if self.fifo:
            return ("--outcome", "accepted", *pace)
        keys = ("--ordering-key", "attribute:account", "--sequence", "attribute:sequence")
        if self.advance == "accepted":
            return ("--outcome", "accepted", "--advance", "accepted", *keys, *pace)
        return ("--outcome", "absence", "--advance", "settled", "--window", "2", *keys, *pace)


KINDS = (
    Kind(name="accepted", a_second=20, keys=60),
    Kind(name="settled", a_second=4, keys=150, advance="settled"),
    Kind(name="fifo", a_second=10, keys=40, fifo=True),
)


class Flow:
    """One dlq with its source, watched by the service; letters are buried while it flows."""

    def __init__(self, servers: OwnServers, kind: Kind) -> None:
        self.kind, self.servers = kind, servers
        suffix = ".fifo" if kind.fifo else ""
        self.name = f"{kind.name}-{uuid4().hex[:6]}"
        self.source, self.dlq = f"{self.name}{suffix}", f"{self.name}-dlq{suffix}"
        self.buried = 0
        self._exit = ExitStack()
        self._flows, self._over = threading.Event(), threading.Event()
        self._idle = threading.Event()

    def __enter__(self) -> Self:
        with ExitStack() as unwinding:
            self._sqs = client(self.servers)
            unwinding.callback(self._sqs.close)
            self._open_queues()
            self.servers.manage("add_dlq", self.name, "--url", self.dlq_url, *self.kind.options(), "--confirm")
            ((self.pk,),) = self.servers.ask("SELECT id FROM redrive_dlq WHERE name = %s", self.name)
            # Breakers open and close all the time here; they are not to rest for minutes.
            self.servers.ask("UPDATE redrive_breaker SET cooldown_cap = 4 RETURNING id")
            if self.kind.advance == "settled":
                unwinding.callback(_end, self._consumer())
            thread = threading.Thread(target=self._bury, name=f"buries in {self.name}")
            thread.start()
            unwinding.callback(thread.join)
            unwinding.callback(self._over.set)
            self._exit = unwinding.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def flow(self) -> None:
        self._idle.clear()
        self._flows.set()

    def bury_at_once(self, letters: int) -> None:
        """So many, by the thread that asks; the flow must bury nothing of itself meanwhile."""
        assert not self.kind.a_second
        self._bury_some(letters)

    def rest(self) -> None:
        """Bury nothing more; what is on its way is buried when this returns."""
        self._flows.clear()
        assert self._idle.wait(60)

    def is_finished(self) -> bool:
        """Whether every letter so far came to its end, and nothing of it is left in the dlq."""
        return sum(self.states()[one] for one in FINISHED) == self.buried and self.left() == 0 and self._is_consumed()

    def states(self) -> Counter[str]:
        found = self.servers.ask("SELECT state, count(*) FROM redrive_letter WHERE dlq_id = %s GROUP BY 1", self.pk)
        return Counter(dict(found))

    def letters(self) -> dict[str, str]:
        return dict(self.servers.ask("SELECT message_id, state FROM redrive_letter WHERE dlq_id = %s", self.pk))

    def parked(self) -> Counter[str]:
        return Counter(dict(self.servers.ask(
            "SELECT reason, count(*) FROM redrive_letter WHERE dlq_id = %s AND state = 'parked' GROUP BY 1", self.pk
        )))  # fmt: skip

    def attempts(self) -> dict[str, str]:
        """The outcome of every attempt, by the mark that its letter carried: its redrive id with the number."""
        return dict(self.servers.ask(
            "SELECT l.public_id || ':' || a.no, coalesce(a.outcome, 'open') FROM redrive_attempt a "
            "JOIN redrive_letter l ON l.id = a.letter_id WHERE l.dlq_id = %s", self.pk,
        ))  # fmt: skip

    def copies(self) -> list[str]:
        """What is known of the copies that are not gone: how many are in which state, and for how long out of sight."""
        found = self.servers.ask(
            "SELECT state, extended, count(*), min(visible_until - now())::text, max(visible_until - now())::text "
            "FROM redrive_dlq_copy WHERE dlq_id = %s AND state <> 'gone' GROUP BY 1, 2 ORDER BY 1, 2", self.pk,
        )  # fmt: skip
        return [
            f"{count} {state}{' extended' if extended else ''}, visible in {least} to {most}"
            for state, extended, count, least, most in found
        ]

    def left(self) -> int:
        return self._count(self.dlq_url)

    def experiment(self) -> Experiment:
        return Experiment(
            sources=frozenset({self.source}), dlqs=frozenset({self.dlq}), identity="event_id", ordering="account",
            sequence=None if self.kind.fifo else "sequence", advance=self.kind.advance, rate=self.kind.rate,
            burst=self.kind.rate,
            fifo=self.kind.fifo,
        )  # fmt: skip

    def consumed(self) -> Iterator[dict[str, Any]] | None:
        if self.kind.advance != "settled":
            return None
        lines = self._log.read_bytes().splitlines(keepends=True)
        return (json.loads(line) for line in lines if line.endswith(b"\n"))

    def _is_consumed(self) -> bool:
        return self.kind.advance != "settled" or self._count(self.source_url) == 0

    def _count(self, url: str) -> int:
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        return sum(map(int, found.values()))

    def _open_queues(self) -> None:
        fifo = {"FifoQueue": "true"} if self.kind.fifo else {}
        self.dlq_url = self._sqs.create_queue(QueueName=self.dlq, Attributes=fifo)["QueueUrl"]
        arn = self._sqs.get_queue_attributes(QueueUrl=self.dlq_url, AttributeNames=["QueueArn"])["Attributes"]
        policy = json.dumps({"deadLetterTargetArn": arn["QueueArn"], "maxReceiveCount": 10})
        attributes = {**fifo, "VisibilityTimeout": "5", "RedrivePolicy": policy}
        self.source_url = self._sqs.create_queue(QueueName=self.source, Attributes=attributes)["QueueUrl"]

    def _consumer(self) -> subprocess.Popen[bytes]:
        self._log = self.servers.folder / f"{self.name}.jsonl"
        mode, said = self.servers.folder / f"{self.name}.mode", self.servers.folder / f"{self.name}.log"
        mode.write_text("mended")
        module = "redrive_service.sandbox.shop.consumer"
        self._log.touch()
        with said.open("wb") as out:
            return subprocess.Popen(
                [sys.executable, "-m", module, self.source_url, str(self._log), str(mode)], cwd=ROOT, stdout=out,
                stderr=out, env={**os.environ, **self.servers.environment()},
            )  # fmt: skip

    def _bury(self) -> None:
        while not self._over.is_set():
            if not self._flows.is_set():
                self._idle.set()
                self._over.wait(0.05)
                continue
            began = time.monotonic()
            self._bury_some(self.kind.a_second // 2)
            self._over.wait(max(0.0, began + 0.5 - time.monotonic()))

    def _bury_some(self, letters: int) -> None:
        for first in range(0, letters, 10):
            numbers = range(self.buried, self.buried + min(10, letters - first))
            self._send([self._entry(number) for number in numbers])
            self.buried += len(numbers)

    def _send(self, entries: list[dict[str, Any]]) -> None:
        """Sent, again and again: a call that is refused here was not done, and no fault lets an answer be lost."""
        while not self._over.is_set():
            try:
                assert not self._sqs.send_message_batch(QueueUrl=self.dlq_url, Entries=entries).get("Failed")
            except (ClientError, BotoCoreError):
                self._over.wait(0.2)
            else:
                return

    def _entry(self, number: int) -> dict[str, Any]:
        keys = self.kind.keys
        told = {"event_id": f"{number}", "account": f"account-{number % keys}", "sequence": f"{number // keys}"}
        fifo = {"MessageGroupId": told["account"], "MessageDeduplicationId": f"{number}"} if self.kind.fifo else {}
        return {
            "Id": str(number), "MessageBody": json.dumps({"data": {"amount": number}}), **fifo,
            "MessageAttributes": {name: {"DataType": "String", "StringValue": one} for name, one in told.items()},
        }  # fmt: skip


def client(servers: OwnServers) -> Any:  # noqa: ANN401  # boto3's clients have no type
    return boto3.client(
        "sqs", endpoint_url=servers.endpoint, region_name=CREDENTIALS["AWS_DEFAULT_REGION"],
        aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"], aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        config=Config(connect_timeout=3, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 1}),
    )  # fmt: skip


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(timeout=10)
