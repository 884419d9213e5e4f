"""What tests of faults share."""

from tests.reprocessing.pipeline.bench import clock

__all__ = ["clock"]
