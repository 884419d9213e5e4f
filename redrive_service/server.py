"""The web server: serves pages on one listener, and health checks on a second one.

waitress reads all requests in one loop, and passes only complete requests to its threads (docs/adr/0033). So a client
that sends half a request uses a file descriptor, but no thread.
"""

from __future__ import annotations

import gc
import logging
import resource
import signal
import socket
import threading
import time
from dataclasses import dataclass
from typing import Any, Final

from django.core.handlers.exception import convert_exception_to_response
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpRequest, HttpResponseNotFound
from django.http.response import HttpResponseBase
from django.template.loader import get_template
from django.template.utils import get_app_template_dirs
from django.urls import reverse
from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.server import TcpWSGIServer
from waitress.task import ThreadedTaskDispatcher

from redrive_service.health import HealthMiddleware

logger = logging.getLogger("redrive.web")

MOST_CONNECTIONS: Final = 2_000  #: max open connections of a listener; further connections wait until one is closed
_FILES: Final = 3 * MOST_CONNECTIONS  #: each connection: a socket, and up to two temporary files (body, answer)
_IDLE: Final = 30  # seconds after which an idle connection is closed
_TO_ARRIVE: Final = 60.0  # seconds in which a request must arrive completely
_LARGEST_BODY: Final = 4 * 1024 * 1024  # bytes; Django accepts 2.5 MiB of a form, /reports 1 MiB
_IN_MEMORY: Final = 64 * 1024  # max bytes in memory of a body, or of an answer to a slow client; more is in a file
_TO_FINISH: Final = 25.0  # seconds that running requests get after SIGTERM; `docker stop` kills after 10 by default
_TO_ARRIVE_AT_END: Final = 2.0  # the part of `_TO_FINISH` in which a partly received request must arrive


class _Parser(HTTPRequestParser):  # type: ignore[misc]  # waitress is untyped
    """Records when the first byte of a request arrived."""

    def __init__(self, adj: Adjustments) -> None:
        super().__init__(adj)
        self.began = time.monotonic()


class _Channel(HTTPChannel):  # type: ignore[misc]  # waitress is untyped
    parser_class = _Parser

    def is_busy(self) -> bool:
        """Return whether a request of this connection is being answered, or the answer is being sent."""
        return bool(self.requests or self.total_outbufs_len)

    def is_expected(self) -> bool:
        """Return whether a request can still arrive: a part of a request has arrived, or the connection is new."""
        return self.request is not None or self.last_activity == self.creation_time


class _Listener(TcpWSGIServer):  # type: ignore[misc]  # waitress is untyped
    """waitress's listener, which also closes a connection whose request does not arrive completely within 60 s."""

    channel_class = _Channel

    def maintenance(self, now: float) -> None:
        """Close connections that are idle for 30 s, or whose request has not arrived completely within 60 s."""
        super().maintenance(now)
        latest = time.monotonic() - _TO_ARRIVE
        for channel in self.active_channels.values():
            request = channel.request
            if isinstance(request, _Parser) and request.began < latest:
                channel.will_close = True

    def accept_queued(self) -> None:
        """Accept the connections that wait in the kernel. If the socket were closed first, they would be reset."""
        for _ in range(self.adj.backlog):
            before = len(self.active_channels)
            if before < self.adj.connection_limit:
                self.handle_accept()
            if len(self.active_channels) == before:
                return


@dataclass(frozen=True, slots=True)
class Address:
    """Host and port of a listener."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


class Server:
    """A web server on one address, with its own loop and threads."""

    def __init__(
        self, application: WSGIHandler, address: Address, *, threads: int, keeps_proxy_headers: bool = False
    ) -> None:
        """Open the socket. Requests are answered only in `run`. Raises OSError if the address cannot be used.

        `threads` is the number of requests that are answered at the same time. If `keeps_proxy_headers` is true, the
        application gets the headers that proxies add, such as X-Forwarded-For.
        """
        self._adjustments = Adjustments(
            threads=threads,
            ident=None,
            connection_limit=MOST_CONNECTIONS,
            channel_timeout=_IDLE,
            cleanup_interval=1,
            asyncore_use_poll=True,
            max_request_body_size=_LARGEST_BODY,
            inbuf_overflow=_IN_MEMORY,
            outbuf_overflow=_IN_MEMORY,
            clear_untrusted_proxy_headers=not keeps_proxy_headers,
        )
        self._connections: dict[int, Any] = {}  # waitress's sockets, by file descriptor
        self._threads = ThreadedTaskDispatcher()
        self._threads.set_thread_count(threads)
        family, kind, protocol, _, at = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
        self._listener = _Listener(
            application,
            map=self._connections,
            dispatcher=self._threads,
            adj=self._adjustments,
            sockinfo=(family, kind, protocol, at),
        )
        self._is_ending = False

    @property
    def address(self) -> Address:
        """Return host and port of the socket. If the address had port 0, this is the port that the system chose."""
        host, port = self._listener.socket.getsockname()[:2]
        return Address(host, port)

    def run(self) -> None:
        """Answer requests until `end` is called. Then finish requests that have begun to arrive, for at most 25 s."""
        while not self._is_ending:
            self._turn(1.0)
        self._stop_listening()
        self._turn(0.0)  # reads the bytes that have arrived
        began = time.monotonic()
        while self._close_idle(since=began) and time.monotonic() < began + _TO_FINISH:
            self._turn(0.1)
        self._threads.shutdown(timeout=1)
        self._listener.trigger.close()
        wasyncore.close_all(self._connections)

    def end(self) -> None:
        """Make `run` return. A signal handler may call this."""
        self._is_ending = True
        self._listener.pull_trigger()

    def _turn(self, seconds: float) -> None:
        wasyncore.loop(timeout=seconds, use_poll=True, map=self._connections, count=1)

    def _stop_listening(self) -> None:
        self._listener.accept_queued()
        self._listener.del_channel()
        self._listener.socket.close()

    def _close_idle(self, *, since: float) -> bool:
        """Close connections that have no request. Return whether other connections are still open.

        In the first 2 s after `since`, new connections, and connections with a part of a request, are not closed.
        """
        channels = list(self._listener.active_channels.values())
        may_arrive = time.monotonic() < since + _TO_ARRIVE_AT_END
        busy = [channel for channel in channels if channel.is_busy() or (may_arrive and channel.is_expected())]
        for channel in channels:
            if channel not in busy:
                channel.will_close = True
        return bool(busy)


class HealthApplication(WSGIHandler):
    """Answers health checks and /metrics, and nothing else."""

    def load_middleware(self, is_async: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002  Django's signature
        """Load only the middleware that answers health checks. Sessions and pages are not needed here."""
        self._answer: Any = convert_exception_to_response(HealthMiddleware(_nothing_else))

    def get_response(self, request: HttpRequest) -> HttpResponseBase:
        """Return the answer to a health check or to /metrics. Other paths get status 404."""
        answer: HttpResponseBase = self._answer(request)
        return answer


def _nothing_else(_request: HttpRequest) -> HttpResponseBase:
    return HttpResponseNotFound("This listener answers /healthz, /readyz, /health/… and /metrics.\n", "text/plain")


def prepare_pages() -> None:
    """Load all URLs and templates, then exempt all objects of this process from garbage collection.

    Otherwise, the first requests would load them, which takes half a second. And one request in several hundred would
    wait 0.1 s for a full garbage collection of 250,000 objects that live as long as the process.
    """
    reverse("admin:index")
    for folder in get_app_template_dirs("templates"):
        for file in sorted(folder.rglob("*.html")):
            get_template(file.relative_to(folder).as_posix())
    gc.collect()
    gc.freeze()


def serve(pages: Server, health: Server) -> None:
    """Answer pages in this thread and health checks in another, until SIGTERM or SIGINT."""
    _allow_open_files()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: pages.end())
    threading.Thread(target=health.run, name="health", daemon=True).start()
    logger.info("Listening at: http://%s (health: http://%s)", pages.address, health.address)
    pages.run()
    logger.info("Stopped.")


def _allow_open_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    if hard != resource.RLIM_INFINITY and hard < _FILES:
        logger.warning(
            "This process may open %d files, and %d connections may need %d. Raise the limit: ulimit -Hn %d.",
            hard, MOST_CONNECTIONS, _FILES, _FILES,
        )  # fmt: skip
