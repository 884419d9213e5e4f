"""What goes on beside a test: a thread that begins and ends with a block."""

from __future__ import annotations

import threading
from typing import Self

from django.db import connection


class Beside(threading.Thread):
    """Goes on until `over` is set, which the end of the block does. Its own connection to Postgres ends with it."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name)
        self.over = threading.Event()

    def go_on(self) -> None:
        raise NotImplementedError

    def run(self) -> None:
        try:
            self.go_on()
        finally:
            connection.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()
