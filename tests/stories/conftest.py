"""What the stories share."""

from tests.reprocessing.pipeline.bench import clock

__all__ = ["clock"]
