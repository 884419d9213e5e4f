"""kombu's asynchronous SQS connection, changed: requests have deadlines, and failures are returned, not raised."""

from __future__ import annotations

import pycurl
from kombu.asynchronous.aws.connection import AsyncHTTPSConnection
from kombu.asynchronous.aws.sqs.connection import AsyncSQSConnection
from kombu.asynchronous.http import Request

from redrive_service.broker.failure import ReceiveFailure
from redrive_service.broker.timeouts import Timeouts
from redrive_service.broker.version import KombuValue

_HTTP_OK = 200
_KEEPALIVE_IDLE = 15  # seconds; less than the 30 s that a receive may last, so that a dead connection is noticed before
_KEEPALIVE_INTERVAL = 5  # seconds between two keepalive probes


class BoundedHttpConnection(AsyncHTTPSConnection):
    """One HTTP request, aborted after its deadline.

    kombu calculates timeouts, but `CurlClient._setup_request` never passes them to curl. So curl would wait for ever
    for a server that does not answer. Here, `on_prepare`, kombu's documented hook for curl options, sets the timeouts.
    """

    def __init__(self, *, http_client: KombuValue, connect: float, total: float) -> None:
        super().__init__(http_client=http_client)
        self._connect = connect
        self._total = total

    def getrequest(self) -> Request:
        """Return the request. It sets its deadline on its curl handle, because kombu reuses handles of old requests."""
        request = super().getrequest()
        request.on_prepare = self._prepare
        return request

    def _prepare(self, curl: pycurl.Curl) -> None:
        curl.setopt(pycurl.NOSIGNAL, 1)  # a timeout by SIGALRM could interrupt any thread
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, round(self._connect * 1000))
        curl.setopt(pycurl.TIMEOUT_MS, round(self._total * 1000))
        curl.setopt(pycurl.TCP_KEEPALIVE, 1)
        curl.setopt(pycurl.TCP_KEEPIDLE, _KEEPALIVE_IDLE)
        curl.setopt(pycurl.TCP_KEEPINTVL, _KEEPALIVE_INTERVAL)
        curl.setopt(pycurl.FOLLOWLOCATION, 0)  # another server must not get the request's signature


class ContainedSqsConnection(AsyncSQSConnection):
    """An SQS connection whose receives return a dict of messages or a `ReceiveFailure`, and never raise.

    For status 5xx, kombu 5.7.0 returns a list, but its channel expects a dict. For all other errors, kombu raises an
    exception. In both cases, the worker would end, or stop polling the queue.
    """

    def __init__(self, *, timeouts: Timeouts, long_poll: float, **kwargs: KombuValue) -> None:
        super().__init__(**kwargs)
        self._patience = timeouts
        self._long_poll = long_poll

    def get_http_connection(self) -> BoundedHttpConnection:
        """Return a connection for one request. Every request has the deadline of a receive, the longest call."""
        return BoundedHttpConnection(
            http_client=self._httpclient,
            connect=self._patience.connect,
            total=self._patience.receive(long_poll=self._long_poll),
        )

    def _on_list_ready(
        self, parent: KombuValue, markers: KombuValue, operation: str, response: KombuValue
    ) -> KombuValue:
        try:
            if response.status != _HTTP_OK:
                curl_error = getattr(response.response.error, "errno", None)
                return ReceiveFailure.from_answer(response, curl_error=curl_error)
            parsed = super()._on_list_ready(parent, markers, operation, response)  # type: ignore[misc]  # not in the stubs
        except Exception as error:  # noqa: BLE001  # an unreadable answer is a failure too
            return ReceiveFailure.from_exception(error)
        return parsed if isinstance(parsed, dict) else ReceiveFailure(status=response.status, code="")
