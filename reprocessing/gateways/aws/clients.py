"""The AWS clients of this process: each is created once, used by many threads, and not shared with forked children.

Creating a session and a client takes some 70 ms, so both are kept. Clients never retry a request: the caller knows what
the request carried, and decides whether it may be repeated.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import boto3
import botocore.session
from botocore.config import Config

from reprocessing.gateways.aws.configuration import explain_configuration_errors
from reprocessing.gateways.aws.roles import AssumedRoleProvider
from reprocessing.gateways.aws.throttling import count_throttling

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

CONNECT_SECONDS: Final = 3.0
READ_SECONDS: Final = 10.0  #: longest time to an answer, on top of the wait of a long poll
ALARM_SECONDS: Final = 5.0  #: the same for CloudWatch; shorter, since letters wait meanwhile
_POOL: Final = 50


class AwsClient(Protocol):
    """A boto3 client of a service whose type stubs are not installed."""

    def __getattr__(self, action: str) -> Callable[..., dict[str, Any]]:
        """Return the method for an action, by its boto3 name."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """Properties by which clients differ; each combination has its own client."""

    service: str
    region: str
    role: str
    read_seconds: float
    connections: int


class _Clients:
    """The clients of one process, and its sessions, one for each role."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[str, boto3.session.Session] = {}
        self._made: dict[_Kind, object] = {}

    def get(self, service: str, region: str, role: str, read_seconds: float, connections: int = _POOL) -> object:
        kind = _Kind(service, region, role, read_seconds, connections)
        known = self._made.get(kind)
        if known is not None:
            return known
        with self._lock:  # two threads must not create a session at the same time
            if kind not in self._made:
                with explain_configuration_errors(kind.service):
                    self._made[kind] = self._make(kind)
            return self._made[kind]

    def region(self) -> str | None:
        with self._lock, explain_configuration_errors():
            return self._session("", None).region_name

    def _session(self, role: str, region: str | None) -> boto3.session.Session:
        if role not in self._sessions:
            core = botocore.session.get_session()
            if role:
                core.register_component("credential_provider", AssumedRoleProvider(role, region))
            self._sessions[role] = boto3.session.Session(botocore_session=core)
        return self._sessions[role]

    def _make(self, kind: _Kind) -> object:
        # The type stubs accept only literal service names.
        make = cast("Any", self._session(kind.role, kind.region).client)
        made: object = make(
            kind.service,
            region_name=kind.region,
            config=Config(
                connect_timeout=CONNECT_SECONDS,
                read_timeout=kind.read_seconds,
                max_pool_connections=kind.connections,
                tcp_keepalive=True,
                retries={"mode": "standard", "total_max_attempts": 1},
            ),
        )
        count_throttling(made, kind.service)
        return made


_clients = _Clients()


def client(region: str, *, role: str = "", wait: float = 0) -> SQSClient:
    """Return the SQS client of a region. Answers may take `wait` seconds longer than usual, for long polls.

    `role`: the ARN of the role to assume, which is renewed before it expires; empty: the process's own role.

    Raises:
        AwsConfigurationIsUnclear: the AWS configuration of this process cannot be used. If a role cannot be assumed,
            the calls of the client raise `roles.RoleIsNotAssumed`.
    """
    return cast("SQSClient", _clients.get("sqs", region, role, READ_SECONDS + wait))


def cloudwatch(region: str, role: str = "") -> AwsClient:
    """Return the client of a region's CloudWatch. Raises what `client` does."""
    return cast("AwsClient", _clients.get("cloudwatch", region, role, ALARM_SECONDS))


def lambda_client(region: str, role: str, *, seconds: float, connections: int) -> AwsClient:
    """Return the client of a region's Lambda, with so many connections, and `seconds` for each answer."""
    return cast("AwsClient", _clients.get("lambda", region, role, seconds, connections))


def sns_client(region: str, role: str = "") -> AwsClient:
    """Return the client of a region's SNS. Raises what `client` does."""
    return cast("AwsClient", _clients.get("sns", region, role, READ_SECONDS))


def eventbridge_client(region: str, role: str = "") -> AwsClient:
    """Return the client of a region's EventBridge. Raises what `client` does."""
    return cast("AwsClient", _clients.get("events", region, role, READ_SECONDS))


def s3_client(region: str, role: str = "") -> AwsClient:
    """Return the client of a region's S3. Raises what `client` does."""
    return cast("AwsClient", _clients.get("s3", region, role, READ_SECONDS))


def configured_region() -> str | None:
    """Return the region that the environment or the AWS configuration names, if any. Raises what `client` does."""
    return _clients.region()


def forget_clients() -> None:
    """Drop all clients, so that the next call creates new ones: after a fork, or after credentials were rotated."""
    global _clients  # noqa: PLW0603  one per process is what it is for
    _clients = _Clients()


os.register_at_fork(after_in_child=forget_clients)
