"""What is said to somebody who waits, and to nobody else: the service's own log is not for them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from typing import Final

#: Seconds.
TELLS_EVERY: Final = 10.0


def say(text: str) -> None:
    print(text, file=sys.__stderr__, flush=True)


@contextmanager
def telling(what: str, how_far: Callable[[], str] = str, *, every: float = TELLS_EVERY) -> Iterator[None]:
    """While the block goes on, say again and again what it does, how far it is, and since when it does it."""
    over, began = Event(), monotonic()

    def go_on() -> None:
        while not over.wait(every):
            say(f"{what}: {how_far()}{monotonic() - began:.0f} s")

    teller = Thread(target=go_on, name="telling", daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


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
