"""The database's clock, here too."""

from __future__ import annotations

from tests.reprocessing.conftest import clock

__all__ = ["clock"]
