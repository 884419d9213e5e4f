"""Make HTTP requests on a libcurl handle, one after another, and return the outcome of each."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import pycurl

from reprocessing.domain.replay.verdicts import NotSent, Outcome, Unknown
from reprocessing.domain.safety import url_policy
from reprocessing.domain.safety.url_policy import Address, Endpoint
from reprocessing.domain.targets.async_sender import HttpCall
from reprocessing.domain.targets.http_responses import StatusMeanings, http_date, retry_after
from reprocessing.gateways.http.resolved_targets import ResolvedTarget

CONNECT: Final = 3.0  #: most seconds until a connection is open and its certificate is checked
LARGEST: Final = 4_096  #: most bytes of an answer's body; if the body is longer, the connection is closed
_BLANK: Final = (b"\r\n", b"\n")
#: Seconds for which an idle connection may be reused. Most servers close idle connections after 5 s or later.
_IDLE: Final = 4
_OLDEST: Final = 60  #: greatest age in seconds of a reused connection, because the host may get other addresses
_AGENT: Final = "redrive-service"

_IN_WORDS: Final = {
    pycurl.E_COULDNT_CONNECT: "no connection came about",
    pycurl.E_SSL_CONNECT_ERROR: "no secure connection came about",
    pycurl.E_PEER_FAILED_VERIFICATION: "its certificate is invalid",
    pycurl.E_GOT_NOTHING: "the connection was closed before an answer",
    pycurl.E_SEND_ERROR: "the connection broke while the request was sent",
    pycurl.E_RECV_ERROR: "the connection broke before an answer",
    pycurl.E_PARTIAL_FILE: "the connection broke during its answer",
    pycurl.E_ABORTED_BY_CALLBACK: "the connection was closed before an answer",
    pycurl.E_SEND_FAIL_REWIND: "the connection was closed before an answer",
}
OUT_OF_TIME: Final = "no time was left to begin its request"


@dataclass(frozen=True, slots=True)
class QueuedPost:
    """A request that waits until fewer requests are open, or until its host is resolved.

    Attributes:
        asked: the parsed URL.
        may_start: called immediately before the request is sent. If it returns False, the request is not sent.
        anew: whether to open a new connection instead of reusing one.
    """

    post: HttpCall
    asked: Endpoint
    may_start: Callable[[], bool]
    anew: bool = False


_NO_REQUEST: Final = QueuedPost(
    HttpCall(0, "", b"", (), CONNECT, StatusMeanings()), Endpoint("https", "nobody.invalid", 443, "/"), lambda: False
)


class Request:
    """A libcurl handle, used for one request after another. Its connections belong to the multi handle.

    libcurl repeats a request by itself, up to five times, if a reused connection breaks before the first byte of an
    answer. A message that crashes its consumer would be sent six times in one attempt. So `_may_send_now` lets each
    request start only once. libcurl calls `_may_send_now` after the TLS handshake, before it sends anything. A request
    that fails earlier was not sent. A request that fails later, without an answer, has the outcome Unknown.
    `_may_send_now` also checks whether a reused connection is still open.
    """

    def __init__(
        self, tls: ssl.SSLContext | None, clock: Callable[[], datetime], is_stale: Callable[[str, int], bool]
    ) -> None:
        self.handle = pycurl.Curl()
        self._clock = clock
        self._is_stale = is_stale
        self.drop_letter()
        _set_fixed_options(self.handle)
        _set_certificates(self.handle, tls)
        for option, callback in (
            (pycurl.PREREQFUNCTION, self._may_send_now),
            (pycurl.READFUNCTION, self._read),
            (pycurl.HEADERFUNCTION, self._head),
            (pycurl.WRITEFUNCTION, self._body),
        ):
            self.handle.setopt(option, callback)

    def prepare(self, queued: QueuedPost, place: ResolvedTarget) -> None:
        """Set up the libcurl handle to send the letter of `queued` to the addresses of `place`."""
        self.queued, self._good = queued, place.good
        post, asked = queued.post, queued.asked
        self._was_stale = self._is_released = self._too_late = self._has_head = self._is_full = False
        self._sent = self._length = 0
        self._later = self._dated = b""
        named = isinstance(asked.host, str)
        handle, milliseconds = self.handle, max(1, round(post.timeout * 1000))
        handle.setopt(pycurl.FRESH_CONNECT, queued.anew)
        handle.setopt(pycurl.URL, f"{asked.scheme}://{asked.authority}{asked.path}")
        handle.setopt(pycurl.RESOLVE, [_resolved(asked, place.current)] if named else [])
        handle.setopt(pycurl.HTTPHEADER, [*map(_line, post.headers), b"Expect:"])
        handle.setopt(pycurl.POSTFIELDSIZE_LARGE, len(post.body))
        handle.setopt(pycurl.TIMEOUT_MS, milliseconds)
        handle.setopt(pycurl.CONNECTTIMEOUT_MS, min(milliseconds, round(CONNECT * 1000)))

    def drop_letter(self) -> None:
        """Drop the letter, so that the libcurl handle can be used for another letter."""
        self.queued, self._good = _NO_REQUEST, ()

    def outcome(self, error: int | None) -> Outcome | None:
        """Return the outcome of the ended request; None: nothing was sent, so repeat it on a new connection.

        The result is None if the server had closed the reused connection. `error`: libcurl's error number; None: no
        error. An answer counts only if it is complete, or was cut off at `LARGEST` bytes.
        """
        if self._was_stale:
            return None
        if self._has_head and (error is None or self._is_full):
            status: int = self.handle.getinfo(pycurl.RESPONSE_CODE)
            return self.queued.post.answers.outcome(status, after=self._asked_to_wait() if self._later else None)
        if self._too_late:
            return NotSent(OUT_OF_TIME)
        if self._is_released or error is None:
            return Unknown(
                _in_words(error or pycurl.E_PARTIAL_FILE, f"it had not answered within {self.queued.post.timeout:g} s")
            )
        if error == pycurl.E_ABORTED_BY_CALLBACK:
            return NotSent("its connection led to an address that was not checked", unreachable=True)
        within = min(CONNECT, self.queued.post.timeout)
        return NotSent(_in_words(error, f"no connection came about within {within:g} s"), unreachable=True)

    def _asked_to_wait(self) -> timedelta | None:
        """Return how long Retry-After asks to wait; None if its value is not valid.

        A date in Retry-After is compared with the answer's Date header; without this header, with the clock.
        """
        sent = http_date(self._dated.decode("latin-1"))
        return retry_after(self._later.decode("latin-1"), now=sent or self._clock())

    def _may_send_now(self, address: str, own: str, _port: int, own_port: int) -> int:
        """Return to libcurl whether it may send the request now over this connection (PREREQFUNC_OK or _ABORT)."""
        if self._is_released or url_policy.read_address(address) not in self._good:
            return pycurl.PREREQFUNC_ABORT
        if self._is_stale(own, own_port) and not self.queued.anew:
            self._was_stale = True
            return pycurl.PREREQFUNC_ABORT
        if not self.queued.may_start():
            self._too_late = True
            return pycurl.PREREQFUNC_ABORT
        self._is_released = True
        return pycurl.PREREQFUNC_OK

    def _read(self, most: int) -> bytes:
        piece = self.queued.post.body[self._sent : self._sent + most]
        self._sent += len(piece)
        return piece

    def _head(self, line: bytes) -> None:
        """Store the headers Retry-After and Date of the final answer. Headers of interim (1xx) answers are dropped.

        libcurl calls this for each header line, and limits the size of all headers.
        """
        name = line[:12].lower()
        if name.startswith(b"http/"):
            self._later = self._dated = b""
            self._has_head = False
        elif name in _BLANK:
            self._has_head = True
        elif name == b"retry-after:":
            self._later = line[12:]
        elif name.startswith(b"date:"):
            self._dated = line[5:]

    def _body(self, piece: bytes) -> int | None:
        self._length += len(piece)
        self._is_full = self._length > LARGEST
        return 0 if self._is_full else None


def _set_fixed_options(handle: pycurl.Curl) -> None:
    """Set the options that are equal for all requests. Proxies, redirects, cookies and credentials are not used."""
    for option, value in (
        (pycurl.POST, 1),
        (pycurl.NOSIGNAL, 1),
        (pycurl.PROXY, ""),
        (pycurl.NOPROXY, "*"),
        (pycurl.NETRC, pycurl.NETRC_IGNORED),
        (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
        (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1),  # one request at a time on each connection
        (pycurl.FOLLOWLOCATION, 0),
        (pycurl.PATH_AS_IS, 1),
        (pycurl.USERAGENT, _AGENT),
        (pycurl.BUFFERSIZE, LARGEST),
        (pycurl.MAXAGE_CONN, _IDLE),
        (pycurl.MAXLIFETIME_CONN, _OLDEST),
        (pycurl.SSL_VERIFYPEER, 1),
        (pycurl.SSL_VERIFYHOST, 2),
    ):
        handle.setopt(option, value)


def _set_certificates(handle: pycurl.Curl, tls: ssl.SSLContext | None) -> None:
    """Trust the certificates of the context `tls`; None: trust the system's certificates, as health checks do."""
    if tls is not None:
        shown = (ssl.DER_cert_to_PEM_cert(certificate) for certificate in tls.get_ca_certs(binary_form=True))
        handle.setopt(pycurl.CAINFO_BLOB, "".join(shown))
        return
    paths = ssl.get_default_verify_paths()
    if paths.cafile:
        handle.setopt(pycurl.CAINFO, paths.cafile)
    if paths.capath:
        handle.setopt(pycurl.CAPATH, paths.capath)


def _resolved(asked: Endpoint, current: Sequence[Address]) -> str:
    """Return the host's addresses for libcurl's option RESOLVE, so that libcurl resolves nothing itself."""
    texts = ",".join(f"[{address}]" if address.version == 6 else str(address) for address in current)  # noqa: PLR2004 - of IP
    return f"{asked.host}:{asked.port}:{texts}"


def _line(header: tuple[str, str]) -> bytes:
    """Return a header as a line for libcurl.

    An empty value needs a semicolon: libcurl drops a header that ends in a colon.
    """
    name, value = header
    return (f"{name}: {value}" if value else f"{name};").encode("latin-1")


def _in_words(error: int, too_late: str) -> str:
    """Return in words for people what libcurl's error number means. `too_late`: the words for a timeout.

    libcurl's own messages are not used: they may contain private data.
    """
    if error == pycurl.E_OPERATION_TIMEDOUT:
        return too_late
    return _IN_WORDS.get(error, f"what it answered is not HTTP, or the connection failed (libcurl's error {error})")
