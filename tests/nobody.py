"""A port at which nobody listens, and at which nobody can begin to: who frees one may meet whoever is given it next."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def nobody() -> Iterator[int]:
    """The port, on the loopback, for as long as this lasts: connections to it are refused."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]
