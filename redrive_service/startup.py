"""Prints why a process cannot start: the configuration error's text, without a traceback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import ImproperlyConfigured


@contextmanager
def explained(*, exit_status: int = 1) -> Iterator[None]:
    """Print a configuration error's message on standard error, and exit with the given status."""
    try:
        yield
    except ImproperlyConfigured as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(exit_status)
