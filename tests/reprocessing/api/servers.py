"""Our web server on a port of its own, for programs outside of this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.core.wsgi import get_wsgi_application
from django.db import connections

from redrive_service.server import Address, Server


@contextmanager
def serving() -> Iterator[str]:
    """Serve; its threads keep no connection to PostgreSQL, so that the database can be emptied."""
    server = Server(get_wsgi_application(), Address("127.0.0.1", 0), threads=2)
    thread = threading.Thread(target=server.run)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(connections.settings["default"], "CONN_MAX_AGE", 0)
        thread.start()
        try:
            yield f"http://{server.address}"
        finally:
            server.end()
            thread.join()
