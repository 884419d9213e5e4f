"""Print why a process cannot start: the text of the configuration error, without a traceback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import ImproperlyConfigured


@contextmanager
def explained(*, exit_status: int = 1) -> Iterator[None]:
    """If the block raises a configuration error, print its text on standard error, and exit with `exit_status`."""
    try:
        yield
    except ImproperlyConfigured as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(exit_status)
