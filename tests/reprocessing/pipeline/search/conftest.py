from __future__ import annotations

from tests.reprocessing.payload_rings import encrypted, rings

__all__ = ["encrypted", "rings"]
