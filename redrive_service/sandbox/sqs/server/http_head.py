"""Parse the head (request line and headers) of an HTTP/1.1 request."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

# Max bytes of a body: escapes of JSON can make a batch of 1 MiB six times larger.
LARGEST_BODY: Final = 8 * 1024 * 1024
TOO_LARGE: Final = 413
_MOST_LENGTH_DIGITS: Final = 15
_OUR_VERSIONS: Final = (b"HTTP/1.1", b"HTTP/1.0")
_REQUEST_LINE_PARTS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Request line and headers of a request. Names of headers are in lower case.

    `length` is the number of bytes of the body. If the request cannot be served, `trouble` says why, and `status` is
    the status of the answer. Otherwise, `trouble` is empty.
    """

    method: bytes = b""
    target: bytes = b""
    headers: Mapping[bytes, bytes] = field(default_factory=dict)
    length: int = 0
    keep_alive: bool = True
    trouble: str = ""
    status: int = 400

    def header(self, name: bytes) -> str:
        """Return the value of a header, or an empty text if the request does not have the header."""
        return self.headers.get(name, b"").decode("latin-1")


@dataclass(slots=True)
class HttpRequest:
    """One complete HTTP request: its head and its body."""

    head: Head
    body: bytes


@lru_cache(maxsize=1024)
def read_head(head: bytes) -> Head:
    """Return the parsed head of a request. Results are cached, because clients send equal heads again and again."""
    lines = head.lstrip(b"\r\n").split(b"\r\n")
    parts = lines[0].split(b" ")
    if len(parts) != _REQUEST_LINE_PARTS or parts[2] not in _OUR_VERSIONS:
        return unreadable("This is not an HTTP/1.1 request.")
    headers: dict[bytes, bytes] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        if not colon or not name or name != name.strip():
            return unreadable("A header line of the request is malformed.")
        headers[name.lower()] = value.strip()
    if b"transfer-encoding" in headers:
        return unreadable("Send the request with a Content-Length, not with a Transfer-Encoding.", 501)
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or len(length) > _MOST_LENGTH_DIGITS:
        return unreadable("The Content-Length of the request is malformed.")
    wish = headers.get(b"connection", b"").lower()
    too_large = int(length) > LARGEST_BODY
    return Head(
        method=parts[0],
        target=parts[1],
        headers=headers,
        length=int(length),
        keep_alive=wish != b"close" and (parts[2] == _OUR_VERSIONS[0] or wish == b"keep-alive"),
        trouble=f"The request is larger than {LARGEST_BODY} bytes." if too_large else "",
        status=TOO_LARGE if too_large else 200,
    )


def unreadable(trouble: str, status: int = 400) -> Head:
    """Return the `Head` for bytes that cannot be parsed. The server answers `trouble`, and closes the connection."""
    return Head(trouble=trouble, status=status, keep_alive=False)
