"""The local SQS in a process of a test's own: its faults and its call log are nobody else's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

import boto3
from botocore.config import Config

from tests.contract.endpoints import REGION, Sandbox

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

SOURCES = Path(__file__).resolve().parents[2]


class LocalSqs(Sandbox):
    """A running local SQS inside a `with` block."""

    def __init__(self) -> None:
        super().__init__("")

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "redrive_service.sandbox.sqs"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=SOURCES)
        assert self.process.stdout is not None
        ready, _, self.url = self.process.stdout.readline().strip().partition(" ")
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
            "AWS_ENDPOINT_URL_SQS": self.url,
            "AWS_ACCESS_KEY_ID": "sandbox",
            "AWS_SECRET_ACCESS_KEY": "sandbox",
            "AWS_DEFAULT_REGION": REGION,
        }

    @property
    def client(self) -> SQSClient:
        return boto3.client(
            "sqs",
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id="sandbox",
            aws_secret_access_key="sandbox",
            config=Config(retries={"mode": "standard", "total_max_attempts": 1}),
        )

    def make_queue(self, name: str, **attributes: str) -> str:
        return self.client.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]  # type: ignore[arg-type]  # any attribute

    def visible(self, url: str) -> int:
        return self._count(url, "ApproximateNumberOfMessages")

    def in_flight(self, url: str) -> int:
        return self._count(url, "ApproximateNumberOfMessagesNotVisible")

    def _count(
        self, url: str, name: Literal["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    ) -> int:
        return int(self.client.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"][name])

    def plan(self, *faults: Mapping[str, object]) -> None:
        """Replace the faults that are to come. None at all lets go of whoever hangs."""
        self.release()
        if faults:
            super().plan(*faults)

    def fired(self) -> list[int]:
        return [fault["fired"] for fault in self.faults()]

    def asked(self, queue: str) -> set[str]:
        return {call["action"] for call in self.calls(queue=queue)}
