"""Run the local SQS as a server of the sandbox, and create the service's own queues in it."""

from __future__ import annotations

import os
import re
import shutil
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from redrive_service.sandbox.errors import SandboxError
from redrive_service.sandbox.servers.process import PROJECT, RunningServer, Server
from redrive_service.sandbox.sqs.queues.directory import ACCOUNT_ID
from reprocessing.domain.aws.queue_diff import differences
from reprocessing.domain.aws.queue_spec import (
    AttributeDiffers,
    ExistingQueue,
    QueueMissing,
    WantedQueue,
    service_queues,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType

    Attributes = Mapping[QueueAttributeNameType, str]

REGION = "us-east-1"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "sandbox", "AWS_SECRET_ACCESS_KEY": "sandbox", "AWS_DEFAULT_REGION": REGION}
LOOPBACKS = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # how to reach a server that listens everywhere
OWN_QUEUES = ("redrive-control", "redrive-capture", "redrive-replay")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalQueues:
    """The server of the local SQS: its data folder and its address.

    Attributes:
        in_memory: if true, the server writes nothing to disk, and queues and messages are lost when it stops. (Writing
            a snapshot of a million messages takes some ten seconds, in which the server does not answer.)
    """

    folder: Path
    port: int
    host: str = "127.0.0.1"
    in_memory: bool = False

    @property
    def endpoint(self) -> str:
        """Return the URL of the local SQS, for the variable `AWS_ENDPOINT_URL_SQS`."""
        host = LOOPBACKS.get(self.host, self.host)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    def environment(self) -> dict[str, str]:
        """Return the standard environment variables with which boto3 uses the local SQS."""
        return {"AWS_ENDPOINT_URL_SQS": self.endpoint, **CREDENTIALS}

    def command(self) -> list[str]:
        """Return the command that runs the server."""
        options = ["--host", self.host, "--port", str(self.port)]
        data = [] if self.in_memory else ["--data", str(self.folder / "sqs")]
        return [sys.executable, "-m", "redrive_service.sandbox.sqs", *options, *data]

    def forget(self) -> None:
        """Remove all queues and messages of earlier starts."""
        shutil.rmtree(self.folder / "sqs", ignore_errors=True)

    def start(self, log: Path, lock: int | None = None) -> RunningServer:
        """Start the server, and return when it listens. `lock` is a file descriptor that the server keeps open.

        Raises:
            SandboxError: the server did not start.
        """
        environment = {**os.environ, "PYTHONPATH": str(PROJECT)}  # so that the current folder does not matter
        server = RunningServer(
            Server(name="The local SQS", command=self.command(), log=log, environment=environment, lock=lock)
        )
        ready = re.compile(rf"^ready \S*:{self.port}$", re.MULTILINE)
        server.await_ready(lambda: ready.search(server.log_since_start()) is not None)
        return server

    def make_own_queues(self, suffix: str = "") -> dict[str, str]:
        """Create the service's own queues, each with a DLQ, like `provision_queues --own`. Return their URLs by name.

        An existing queue is not changed, because a person may have changed it on purpose. If several services share
        this SQS, `suffix` is added to the names in SQS. The returned names do not have the suffix.

        Raises:
            SandboxError: SQS refused, or did not answer.
        """
        client = boto3.client(
            "sqs",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
            config=Config(connect_timeout=3, read_timeout=10),
        )
        with closing(client):
            try:
                return {name: _with_dlq(client, name + suffix) for name in OWN_QUEUES}
            except (BotoCoreError, ClientError) as error:
                raise SandboxError(f"The service's own queues could not be made: {error}") from error


def _with_dlq(client: SQSClient, name: str) -> str:
    """Return the URL of a queue. If the queue or its DLQ is missing, create it like the service's own queues."""
    return [_queue(client, wanted) for wanted in service_queues(name)][-1]


def _queue(client: SQSClient, wanted: WantedQueue) -> str:
    try:
        return client.get_queue_url(QueueName=wanted.name)["QueueUrl"]
    except client.exceptions.QueueDoesNotExist:
        attributes: dict[str, str] = {}
        for found in (None, ExistingQueue(arn=f"arn:aws:sqs:{REGION}:{ACCOUNT_ID}:{wanted.name}")):
            for each in differences(wanted, found):
                match each:
                    case QueueMissing():
                        attributes |= each.attributes
                    case AttributeDiffers():
                        attributes[each.attribute] = each.wanted
        return client.create_queue(QueueName=wanted.name, Attributes=cast("Attributes", attributes))["QueueUrl"]
