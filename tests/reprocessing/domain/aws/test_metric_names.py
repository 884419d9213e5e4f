"""The parts of a histogram."""

from __future__ import annotations

from reprocessing.domain.aws.metric_names import histogram_parts


def test_a_run_is_counted_in_every_bucket_that_is_large_enough() -> None:
    buckets = dict.fromkeys(("5", "10", "30", "60", "150", "+Inf"), 1.0)
    assert histogram_parts(5.0) == {**buckets, "sum": 5.0}
