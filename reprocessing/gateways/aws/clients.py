"""Create and keep the AWS clients of this process. Threads share a client, forked child processes create their own.

Sessions and clients are kept, because creating the first client takes about 70 ms. Clients never retry a request,
because only the caller knows whether the request may be repeated.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import boto3
from botocore.config import Config

from reprocessing.gateways.aws.configuration import explain_configuration_errors
from reprocessing.gateways.aws.lean_requests import use_lean_requests
from reprocessing.gateways.aws.roles import AssumedRoleProvider
from reprocessing.gateways.aws.sessions import new_session
from reprocessing.gateways.aws.throttling import count_throttling

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

CONNECT_SECONDS: Final = 3.0  #: longest wait for a connection
READ_SECONDS: Final = 10.0  #: longest wait for an answer, in addition to the wait of a long poll
ALARM_SECONDS: Final = 5.0  #: longest wait for an answer of CloudWatch or KMS; short, because a task waits for it
_POOL: Final = 50  #: most open connections of a client


class AwsClient(Protocol):
    """The type of boto3 clients whose type stubs are not installed, such as CloudWatch's client."""

    def __getattr__(self, action: str) -> Callable[..., dict[str, Any]]:
        """Return the method for an action of the service, by the action's boto3 name, such as put_metric_data."""


class _Clients:
    """The clients of one process, and its sessions: one session for each role."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[str, boto3.session.Session] = {}
        self._made: dict[tuple[str, str, str, float, int], object] = {}

    def get(self, service: str, region: str, role: str, read_seconds: float, connections: int = _POOL) -> object:
        kind = service, region, role, read_seconds, connections
        known = self._made.get(kind)
        if known is not None:
            return known
        with self._lock:  # two threads must not create a session at the same time
            if kind not in self._made:
                with explain_configuration_errors(service):
                    self._made[kind] = self._make(*kind)
            return self._made[kind]

    def region(self) -> str | None:
        with self._lock, explain_configuration_errors():
            return self._session("", None).region_name

    def _session(self, role: str, region: str | None) -> boto3.session.Session:
        if role not in self._sessions:
            core = new_session()
            if role:
                core.register_component("credential_provider", AssumedRoleProvider(role, region))
            self._sessions[role] = boto3.session.Session(botocore_session=core)
        return self._sessions[role]

    def _make(self, service: str, region: str, role: str, read_seconds: float, connections: int) -> object:
        # The type stubs accept only literal service names.
        make = cast("Any", self._session(role, region).client)
        made: object = make(
            service,
            region_name=region,
            config=Config(
                connect_timeout=CONNECT_SECONDS,
                read_timeout=read_seconds,
                max_pool_connections=connections,
                tcp_keepalive=True,
                # mypy checks the types of requests. botocore's own check takes a quarter of a batch request's time.
                parameter_validation=service != "sqs",
                retries={"mode": "standard", "total_max_attempts": 1},
            ),
        )
        count_throttling(made, service)
        if service == "sqs":
            use_lean_requests(made)
        return made


_clients = _Clients()


def client(region: str, *, role: str = "", wait: float = 0) -> SQSClient:
    """Return the SQS client of a region.

    Args:
        region: such as eu-west-1.
        role: the ARN of the role to assume, whose credentials are renewed before they expire; empty: the process's own.
        wait: seconds of the long polls of this client. The client waits that much longer for an answer.

    Raises:
        AwsConfigurationIsUnclear: the AWS configuration of this process cannot be used. If a role cannot be assumed,
            the calls of the client raise `roles.RoleIsNotAssumed`.
    """
    return cast("SQSClient", _clients.get("sqs", region, role, READ_SECONDS + wait))


def cloudwatch(region: str, role: str = "") -> AwsClient:
    """Return the CloudWatch client of a region. Raises AwsConfigurationIsUnclear if AWS is not configured."""
    return cast("AwsClient", _clients.get("cloudwatch", region, role, ALARM_SECONDS))


def lambda_client(region: str, role: str, *, seconds: float, connections: int) -> AwsClient:
    """Return the Lambda client of a region.

    `seconds`: longest wait for each answer. `connections`: the most open connections. Raises
    AwsConfigurationIsUnclear if AWS is not configured.
    """
    return cast("AwsClient", _clients.get("lambda", region, role, seconds, connections))


def kms_client(region: str) -> AwsClient:
    """Return the KMS client of a region. Raises AwsConfigurationIsUnclear if AWS is not configured."""
    return cast("AwsClient", _clients.get("kms", region, "", ALARM_SECONDS))


def sns_client(region: str, role: str = "") -> AwsClient:
    """Return the SNS client of a region. Raises AwsConfigurationIsUnclear if AWS is not configured."""
    return cast("AwsClient", _clients.get("sns", region, role, READ_SECONDS))


def eventbridge_client(region: str, role: str = "") -> AwsClient:
    """Return the EventBridge client of a region. Raises AwsConfigurationIsUnclear if AWS is not configured."""
    return cast("AwsClient", _clients.get("events", region, role, READ_SECONDS))


def s3_client(region: str, role: str = "") -> AwsClient:
    """Return the S3 client of a region. Raises AwsConfigurationIsUnclear if AWS is not configured."""
    return cast("AwsClient", _clients.get("s3", region, role, READ_SECONDS))


def configured_region() -> str | None:
    """Return the region that the environment or the AWS configuration files set; None: they set no region.

    Raises:
        AwsConfigurationIsUnclear: the AWS configuration cannot be used.
    """
    return _clients.region()


def forget_clients() -> None:
    """Drop all clients, so that new clients are created. Needed after a fork, and after credentials were rotated."""
    global _clients  # noqa: PLW0603  one object for each process
    _clients = _Clients()


os.register_at_fork(after_in_child=forget_clients)
