"""The clients of this process: each made once, asked by many threads, never shared over a fork.

A session and a client cost some 70 ms, so they are kept. They try nothing twice: whether a request may be repeated is
decided where it is known what it carried.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

CONNECT_SECONDS: Final = 3.0
READ_SECONDS: Final = 10.0  #: how long an answer may take, on top of a long poll's wait
ALARM_SECONDS: Final = 5.0  #: how long CloudWatch's may: who asks it has letters waiting
_POOL: Final = 50


class CloudWatch(Protocol):
    """What is asked of CloudWatch, as boto3 names it; its own stubs would be as large as those of SQS."""

    def describe_alarms(self, **asked: object) -> dict[str, Any]:
        """The alarms of some names."""

    def get_metric_data(self, **asked: object) -> dict[str, Any]:
        """What some metrics were."""


class _Clients:
    """The session and the clients of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._session: boto3.session.Session | None = None
        self._made: dict[tuple[str, str, float], object] = {}

    def get(self, service: str, region: str, read_seconds: float) -> object:
        key = (service, region, read_seconds)
        known = self._made.get(key)
        if known is not None:
            return known
        with self._lock:  # a session is not made for two threads at a time
            if key not in self._made:
                self._made[key] = self._make(*key)
            return self._made[key]

    def region(self) -> str | None:
        with self._lock:
            return self._kept_session().region_name

    def _kept_session(self) -> boto3.session.Session:
        if self._session is None:
            self._session = boto3.session.Session()
        return self._session

    def _make(self, service: str, region: str, read_seconds: float) -> object:
        make = cast("Any", self._kept_session().client)  # its stubs know each service by a literal name
        made: object = make(
            service,
            region_name=region,
            config=Config(
                connect_timeout=CONNECT_SECONDS,
                read_timeout=read_seconds,
                max_pool_connections=_POOL,
                tcp_keepalive=True,
                retries={"mode": "standard", "total_max_attempts": 1},
            ),
        )
        return made


_clients = _Clients()


def client(region: str, *, wait: float = 0) -> SQSClient:
    """The client for a region, whose answers may take `wait` seconds more than others.

    Raises:
        botocore.exceptions.BotoCoreError: the AWS configuration of this process cannot be used.
    """
    return cast("SQSClient", _clients.get("sqs", region, READ_SECONDS + wait))


def cloudwatch(region: str) -> CloudWatch:
    """The client of a region's CloudWatch.

    Raises:
        botocore.exceptions.BotoCoreError: the AWS configuration of this process cannot be used.
    """
    return cast("CloudWatch", _clients.get("cloudwatch", region, ALARM_SECONDS))


def configured_region() -> str | None:
    """The region that the environment or the AWS configuration names, if any."""
    return _clients.region()


def forget() -> None:
    """Begin anew with the next call: in a forked child, after rotated credentials, or for another endpoint."""
    global _clients  # noqa: PLW0603  one per process is what it is for
    _clients = _Clients()


os.register_at_fork(after_in_child=forget)
