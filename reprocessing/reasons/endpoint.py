"""Send batches of reports to the service's endpoint, with Python's standard library only."""

from __future__ import annotations

import json
import ssl
from dataclasses import dataclass, field
from functools import lru_cache
from http.client import HTTPConnection, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

_LARGEST_ANSWER: Final = 1 << 16  # bytes
#: HTTP statuses after which the same request would fail again, so the batch is not retried.
_FOR_GOOD: Final = frozenset({400, 413, 422})


class InvalidEndpoint(ValueError):
    """The URL or the token of a reporter is not valid."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The endpoint accepted the batch of reports. `refused`: how many reports of the batch it refused."""

    refused: int = 0


@dataclass(frozen=True, slots=True)
class Rejected:
    """The endpoint refused the batch, and would refuse it again, so it is not retried.

    `why`: the reason, for the log.
    """

    why: str


@dataclass(frozen=True, slots=True)
class NotAccepted:
    """The batch must be sent again later. `why`: the reason, for the log.

    If the batch did arrive, the endpoint recognises the repeated reports.
    """

    why: str


Answer = Accepted | Rejected | NotAccepted


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The service's endpoint for reports, and the token to send.

    `timeout`: seconds for the connection, and for each read of the answer.
    """

    secure: bool
    host: str
    port: int | None
    path: str
    token: str = field(repr=False)
    timeout: float

    def post(self, body: bytes) -> Answer:
        """Send one batch, and return the result. Never raises.

        No redirect is followed, since another host would get the token.
        """
        try:
            return self._asked(body)
        except Exception as error:  # noqa: BLE001  # any network error
            return NotAccepted(type(error).__name__)

    def _asked(self, body: bytes) -> Answer:
        connection = self._connection()
        try:
            connection.request("POST", self.path, body, {
                "Authorization": f"Bearer {self.token}",
                "Content-Type": "application/json",
                "Connection": "close",
            })  # fmt: skip
            answer = connection.getresponse()
            text = answer.read(_LARGEST_ANSWER)
        finally:
            connection.close()
        if 200 <= answer.status < 300:  # noqa: PLR2004  # HTTP success
            return Accepted(_refused(text))
        why = f"it answered {answer.status}"
        return Rejected(why) if answer.status in _FOR_GOOD else NotAccepted(why)

    def _connection(self) -> HTTPConnection:
        if self.secure:
            return HTTPSConnection(self.host, self.port, timeout=self.timeout, context=_tls())
        return HTTPConnection(self.host, self.port, timeout=self.timeout)


def read_endpoint(url: str, token: str, *, timeout: float) -> Endpoint:
    """Return the endpoint for a URL and token, or raise InvalidEndpoint. `timeout` is in seconds."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    is_plain = url.isascii() and url.isprintable() and not parts.username
    if parts.scheme not in {"http", "https"} or not host or not is_plain:
        raise InvalidEndpoint(
            "The URL for reports is not valid. Use a URL like https://redrive.example.com/reports, without a password; "
            "or an empty text, to report nothing."
        )
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidEndpoint("The token for reports is not valid. Use the token that was shown when it was created.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Endpoint(parts.scheme == "https", host, port, path, token, timeout)


def _refused(text: bytes) -> int:
    try:
        return len(json.loads(text)["refused"])
    except (ValueError, LookupError, TypeError):
        return 0


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()
