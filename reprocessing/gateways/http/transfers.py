"""Run many libcurl transfers in one thread: wait for their sockets, and return the transfers that have ended.

libcurl waits with select(), which supports at most 1,024 sockets in a process. This module waits with Python's
selectors, which have no such limit, and do not visit all transfers for each event.
"""

from __future__ import annotations

import contextlib
import select
import selectors
import socket
import time
from typing import Final

import pycurl

_LONGEST: Final = 3_600.0  #: longest wait for events, in seconds
_MOST_ENDS: Final = 10_000  #: most connections whose local ends are remembered
_ENDED: Final = select.POLLIN | select.POLLHUP | select.POLLERR

End = tuple[str, int]  #: the local end of a connection: its address and port on this machine


class Transfers:
    """The open transfers of one thread. Other threads may call only `wake`."""

    def __init__(self, *, connections: int) -> None:
        """Create the libcurl multi handle. `connections`: how many idle connections it keeps open."""
        self._multi = pycurl.CurlMulti()
        self._selector = selectors.DefaultSelector()
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._due: float | None = None
        self._ends: dict[End, int] = {}
        self._used: set[End] = set()
        for end in (self._wake_receiver, self._wake_sender):
            end.settimeout(0)
        self._selector.register(self._wake_receiver, selectors.EVENT_READ)
        self._multi.setopt(pycurl.M_MAXCONNECTS, connections)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._alarm)

    def __del__(self) -> None:
        for end in (self._wake_receiver, self._wake_sender):
            end.close()

    def add(self, handle: pycurl.Curl) -> None:
        """Add a transfer, which begins with the next call of `proceed`."""
        self._multi.add_handle(handle)

    def drop(self, handle: pycurl.Curl) -> None:
        """Remove a transfer; if it has not ended, its connection is closed."""
        self._multi.remove_handle(handle)

    def proceed(self, *, wait: float) -> list[tuple[pycurl.Curl, int | None]]:
        """Let transfers proceed, for up to `wait` seconds.

        Return the handle of each ended transfer, with the number of libcurl's error; None: no error.
        """
        until_due = _LONGEST if self._due is None else max(0.0, self._due - time.monotonic())
        for key, events in self._selector.select(min(wait, until_due)):
            if key.fileobj is self._wake_receiver:
                self._clear_wakes()
                continue
            mask = pycurl.CSELECT_IN if events & selectors.EVENT_READ else 0
            mask |= pycurl.CSELECT_OUT if events & selectors.EVENT_WRITE else 0
            self._multi.socket_action(key.fd, mask)
        if self._due is not None and self._due <= time.monotonic():
            self._due = None
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        return self._ended()

    def wake(self) -> None:
        """End the wait of `proceed` at once. Other threads call this, for example when a host is resolved."""
        with contextlib.suppress(OSError):  # the socket is closed, or its buffer is full of earlier wakes
            self._wake_sender.send(b"!")

    def is_stale(self, address: str, port: int) -> bool:
        """Return whether the server has closed a reused connection, or has sent data without a request.

        `address` and `port`: the connection's local end. This check is needed because libcurl checks a connection at
        most once a second, and sends the request again if the connection was already closed.
        """
        end = address, port
        wire = self._ends.get(end)
        if end not in self._used or wire is None:
            self._used.add(end)
            return False
        if _end(wire) != end:
            return False
        looking = select.poll()
        looking.register(wire, _ENDED)
        return bool(looking.poll(0))

    def close(self) -> None:
        """Close all connections. The caller must have dropped all transfers."""
        self._multi.close()
        self._selector.close()
        self._wake_receiver.close()
        self._wake_sender.close()

    def _ended(self) -> list[tuple[pycurl.Curl, int | None]]:
        ended: list[tuple[pycurl.Curl, int | None]] = []
        left = 1
        while left:
            left, well, broken = self._multi.info_read()
            ended += [(handle, None) for handle in well]
            ended += [(handle, error) for handle, error, _ in broken]
        return ended

    def _clear_wakes(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._wake_receiver.recv(4096):
                pass

    def _watch(self, event: int, wire: int, _multi: pycurl.CurlMulti, _data: object) -> None:
        """Watch the socket with the file number `wire` for exactly the events that libcurl wants (`event`)."""
        with contextlib.suppress(KeyError, ValueError, OSError):
            self._selector.unregister(wire)
        mask = selectors.EVENT_READ if event & pycurl.POLL_IN else 0
        mask |= selectors.EVENT_WRITE if event & pycurl.POLL_OUT else 0
        if event == pycurl.POLL_REMOVE or not mask:
            return
        self._selector.register(wire, mask)
        if end := _end(wire):
            if len(self._ends) >= _MOST_ENDS:
                self._ends.clear()
                self._used.clear()
            self._ends[end] = wire

    def _alarm(self, milliseconds: int) -> None:
        """Store the milliseconds after which libcurl wants to be called even without an event; negative: never."""
        self._due = None if milliseconds < 0 else time.monotonic() + milliseconds / 1000


def _end(wire: int) -> End | None:
    """Return the local address and port of the socket with this file number; None if it is not a connected socket."""
    try:
        lent = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fileno=wire)  # works for IPv6 too
    except OSError:
        return None
    try:
        address, port, *_ = lent.getsockname()
    except (OSError, ValueError):
        return None
    finally:
        lent.detach()
    return address, port
