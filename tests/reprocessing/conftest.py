"""What the tests of the promises share."""

from tests.reprocessing.pipeline.bench import clock

__all__ = ["clock"]
