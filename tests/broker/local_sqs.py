"""The local SQS in a process of a test's own: its faults and its call log are nobody else's."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

import boto3
from botocore.config import Config

from redrive_service.broker.version import Kombus

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

SOURCES = Path(__file__).resolve().parents[2]
REGION = "us-east-1"


@dataclass(slots=True)
class LocalSqs:
    """A running local SQS inside a `with` block."""

    process: subprocess.Popen[str] = field(init=False)
    endpoint: str = field(init=False, default="")

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "redrive_service.sandbox.sqs"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=SOURCES)
        assert self.process.stdout is not None
        ready, _, self.endpoint = self.process.stdout.readline().strip().partition(" ")
        if ready != "ready":
            self.__exit__()
            raise AssertionError("the local SQS did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.communicate(timeout=10)

    @property
    def environment(self) -> dict[str, str]:
        """The standard variables, and nothing else, by which AWS's clients find this server."""
        return {
            "AWS_ENDPOINT_URL_SQS": self.endpoint,
            "AWS_ACCESS_KEY_ID": "sandbox",
            "AWS_SECRET_ACCESS_KEY": "sandbox",
            "AWS_DEFAULT_REGION": REGION,
        }

    @property
    def client(self) -> SQSClient:
        """A client of the test's own."""
        return boto3.client(
            "sqs",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id="sandbox",
            aws_secret_access_key="sandbox",
            config=Config(retries={"mode": "standard", "total_max_attempts": 1}),
        )

    def make_queue(self, name: str, **attributes: str) -> str:
        """A new queue's URL."""
        return self.client.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]  # type: ignore[arg-type]  # any attribute

    def visible(self, url: str) -> int:
        """How many messages a receive could bring now."""
        answer = self.client.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])
        return int(answer["Attributes"]["ApproximateNumberOfMessages"])

    def in_flight(self, url: str) -> int:
        """How many messages somebody has received and not settled."""
        name: Literal["ApproximateNumberOfMessagesNotVisible"] = "ApproximateNumberOfMessagesNotVisible"
        answer = self.client.get_queue_attributes(QueueUrl=url, AttributeNames=[name])
        return int(answer["Attributes"][name])

    def plan(self, *faults: Mapping[str, object]) -> None:
        """Replace the faults that are to come. None at all lets go of whoever hangs."""
        self._control("DELETE", "faults")
        if faults:
            self._control("PUT", "faults", faults)

    def fired(self) -> list[int]:
        """How often each planned fault has struck."""
        return [fault["fired"] for fault in self._control("GET", "faults")]

    def calls(self, action: str, queue: str) -> list[dict[str, Kombus]]:
        """The calls of one action to one queue so far, oldest first."""
        calls: list[dict[str, Kombus]] = self._control("GET", f"calls?action={action}&queue={queue}")["calls"]
        return calls

    def asked(self, queue: str) -> set[str]:
        """The actions that anybody has asked of one queue so far."""
        return {call["action"] for call in self._control("GET", f"calls?queue={queue}")["calls"]}

    def _control(self, method: str, path: str, body: Sequence[object] | None = None) -> Kombus:
        request = urllib.request.Request(
            f"{self.endpoint}/_sandbox/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read() or b"null")
