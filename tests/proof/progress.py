"""What is said to somebody who waits, and to nobody else: the service's own log is not for them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: Seconds.
TELLS_EVERY: Final = 10.0


def say(text: str) -> None:
    print(text, file=sys.__stderr__, flush=True)


@contextmanager
def quiet_console() -> Iterator[None]:
    """What is logged is not written to the console. Whoever else listens, as `caplog` does, hears it all the same."""
    # By a filter: a console that wants higher levels is none for werkzeug, which then adds its own.
    consoles = [one for one in logging.getLogger().handlers if type(one) is logging.StreamHandler]
    for one in consoles:
        one.addFilter(_nothing)
    try:
        yield
    finally:
        for one in consoles:
            one.removeFilter(_nothing)


def _nothing(_: logging.LogRecord) -> bool:
    return False
