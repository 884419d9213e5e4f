"""Make HTTP exchanges on the connections of a botocore client, in a quarter of the time that http.client takes.

urllib3 and botocore still open, keep, check and close the connections, with proxies, TLS, timeouts and all errors. This
module writes only requests whose headers are `LeanHeaders`. It reads only plain answers: status 200, a known length,
and all headers in the first bytes that arrive. http.client, whose parser is slow, reads all other answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from http.client import HTTPResponse
from io import BufferedReader
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakValueDictionary

import urllib3
from botocore.awsrequest import (
    AWSHTTPConnection,
    AWSHTTPConnectionPool,
    AWSHTTPSConnection,
    AWSHTTPSConnectionPool,
)
from urllib3.connection import HTTPConnection

_BUFFER: Final = 65_536
_LINES: Final = 50  # most header lines that this module reads; it leaves longer heads to http.client
_PLAIN: Final = b"HTTP/1.1 200 "
_END: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,8})\r\n", re.IGNORECASE)
_UNUSUAL: Final = re.compile(rb"\r\n(?:transfer-encoding|connection):(?![ \t]*keep-alive\r\n)", re.IGNORECASE)


def use_lean_connections(session: Any) -> None:  # noqa: ANN401 - botocore's URLLib3Session, through a private attribute
    """Make a botocore session use this module's faster code for requests whose headers are `LeanHeaders`.

    The session then also looks up the connection pool of each URL only once.
    """
    session._pool_classes_by_scheme.update(http=_Pool, https=_TlsPool)  # noqa: SLF001 - has no public name
    manager_of = session._get_connection_manager  # noqa: SLF001 - has no public name
    known: WeakValueDictionary[str, urllib3.HTTPConnectionPool] = WeakValueDictionary()  # pools end with the session

    def find(url: str, proxy_url: str | None = None) -> SimpleNamespace:
        pool = known.get(url)
        if pool is None:
            pool = known[url] = manager_of(url, proxy_url).connection_from_url(url)
        return SimpleNamespace(connection_from_url=lambda _: pool)

    session._get_connection_manager = find  # noqa: SLF001 - has no public name


class LeanHeaders(dict[str, str]):
    """All headers of a request, in the order in which they are sent.

    Host, Accept-Encoding and Content-Length are included.
    """

    def copy(self) -> LeanHeaders:
        """Return a copy, to which urllib3 adds the headers for a proxy."""
        return LeanHeaders(self)


class PlainAnswer:
    """A plain answer (status 200, known length), with the attributes and methods that urllib3 and botocore use."""

    status: Final = 200
    version_string: Final = "HTTP/1.1"
    length_remaining: Final = 0
    retries: object
    _connection: object  # urllib3 sets `_connection` and `_pool`
    _pool: Any

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.headers: dict[str, str] = {}  # nobody reads the headers of a success

    def get_redirect_location(self) -> bool:
        """Return False, because an answer with status 200 is not a redirect."""
        return False

    def stream(self) -> Iterator[bytes]:
        """Return the connection to its pool, and yield the content."""
        self._pool._put_conn(self._connection)  # noqa: SLF001 - as urllib3's answers do
        yield self._content


if TYPE_CHECKING:
    _Connection = HTTPConnection
else:
    _Connection = object


class _LeanExchange(_Connection):
    """A mixin for botocore's connections that writes requests and reads plain answers itself."""

    _lean = False

    def request(self, method: str, url: str, body: Any = None, headers: Any = None, **options: Any) -> None:  # noqa: ANN401 - urllib3's
        self._lean = isinstance(headers, LeanHeaders)
        if not self._lean:
            super().request(method, url, body, headers, **options)
            return
        if self.sock is not None:
            self.sock.settimeout(self.timeout)
        lines = [f"{method} {url} HTTP/1.1", *[f"{name}: {value}" for name, value in headers.items()]]
        head = "\r\n".join(lines).encode("latin-1")
        if not head.count(b"\n") == head.count(b"\r") == len(headers):
            raise ValueError("A header contains a line break.")
        self.send(head + _END + body)

    def getresponse(self) -> Any:  # noqa: ANN401 - PlainAnswer is no class of urllib3
        if not self._lean:
            return super().getresponse()
        self.sock.settimeout(self.timeout)
        reader = cast("BufferedReader", self.sock.makefile("rb", _BUFFER))
        try:
            content = _plain_content(reader)
            return self._parsed(reader) if content is None else PlainAnswer(content)
        except BaseException:
            reader.close()
            raise

    def _parsed(self, reader: BufferedReader) -> urllib3.HTTPResponse:
        answer = HTTPResponse(cast("Any", SimpleNamespace(makefile=lambda _: reader)), method="POST")
        answer.begin()
        if answer.will_close:
            self.close()  # the socket stays open until the answer has been read
        return urllib3.HTTPResponse(
            body=answer, headers=urllib3.HTTPHeaderDict(answer.msg.items()),
            status=answer.status, version=answer.version, reason=answer.reason,
            preload_content=False, decode_content=False, enforce_content_length=False, original_response=answer,
            request_method="POST",
        )  # fmt: skip


def _plain_content(reader: BufferedReader) -> bytes | None:
    """Return the content of a plain answer. If the connection ends early, the content is incomplete.

    Return None if the answer is not plain. Then nothing was read from `reader`, so that another parser can read it.
    """
    begun = reader.peek()
    head = begun[: begun.find(_END) + 2]
    length = _LENGTH.search(head)
    is_plain = head.startswith(_PLAIN) and head.count(b"\n") <= _LINES and not _UNUSUAL.search(head)
    if length is None or not is_plain:
        return None
    reader.read(len(head) + 2)
    with reader:
        return reader.read(int(length[1]))


class _LeanConnection(_LeanExchange, AWSHTTPConnection):  # type: ignore[misc]  # as in botocore's stubs
    pass


class _LeanTlsConnection(_LeanExchange, AWSHTTPSConnection):  # type: ignore[misc]  # as in botocore's stubs
    pass


class _Pool(AWSHTTPConnectionPool):
    ConnectionCls = _LeanConnection


class _TlsPool(AWSHTTPSConnectionPool):
    ConnectionCls = _LeanTlsConnection
