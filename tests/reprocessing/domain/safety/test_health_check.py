"""Only a value of at most its ceiling is healthy."""

from __future__ import annotations

import pytest

from reprocessing.domain.safety.health_check import HealthResult, Healthy, Unhealthy, within_ceiling


@pytest.mark.parametrize(
    ("depth", "result"),
    [
        (999.0, Healthy("its depth is 999 messages")),
        (1_000.0, Healthy("its depth is 1,000 messages")),
        (1_000.5, Unhealthy("its depth is 1,000.5 messages, above its ceiling of 1,000")),
    ],
)  # fmt: skip
def test_a_value_is_healthy_up_to_its_ceiling(depth: float, result: HealthResult) -> None:
    assert within_ceiling("its depth", depth, 1_000, "messages") == result
