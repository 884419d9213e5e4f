"""What the tests of the promises share."""

from tests.reprocessing.pipeline.bench import clock
from tests.reprocessing.pipeline.slow import endpoint

__all__ = ["clock", "endpoint"]
