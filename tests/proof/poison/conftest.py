"""What all tests of poison share: the world in which every kind of target is made."""

from __future__ import annotations

from tests.reprocessing.pipeline.targets.conftest import surroundings, world

__all__ = ["surroundings", "world"]
