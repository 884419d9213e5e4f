"""How a process says that it cannot start: in sentences, not in a traceback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import ImproperlyConfigured


@contextmanager
def explained(*, exit_status: int = 1) -> Iterator[None]:
    """Turn a broken configuration into its message on standard error and the given exit status."""
    try:
        yield
    except ImproperlyConfigured as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(exit_status)
