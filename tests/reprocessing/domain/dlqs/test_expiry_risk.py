"""The risk says when SQS drops the first message, as far as it is known."""

from __future__ import annotations

import pytest

from reprocessing.domain.dlqs.expiry_risk import Risk, RiskLevel, expiry_risk

DAY, HOUR = 86_400, 3_600


@pytest.mark.parametrize(
    ("messages", "age", "fifo", "risk"),
    [
        (0, None, False, Risk(RiskLevel.NONE, "no messages")),
        (3, None, False, Risk(RiskLevel.UNKNOWN, "drops a message 4 days after it was sent; age not known")),
        (3, 4 * DAY - 6 * HOUR, True, Risk(RiskLevel.SOON, "drops messages in 6 h", 6.0 * HOUR)),
        (3, 4 * DAY - 6 * HOUR, False, Risk(RiskLevel.SOON, "drops messages within 6 h", 6.0 * HOUR)),
        (3, 1 * DAY, False, Risk(RiskLevel.LATER, "drops messages within 3 days", 3.0 * DAY)),
        (3, 4 * DAY, False, Risk(RiskLevel.NOW, "drops messages now", 0.0)),
        (None, None, False, Risk(RiskLevel.UNKNOWN, "not known, because the queue could not be read")),
    ],
)
def test_the_risk_in_words(messages: int | None, age: float | None, fifo: bool, risk: Risk) -> None:
    assert expiry_risk(messages=messages, retention=4 * DAY, oldest_age=age, fifo=fifo) == risk


def test_the_most_urgent_risk_comes_first() -> None:
    found = [
        expiry_risk(messages=n, retention=4 * DAY, oldest_age=age, fifo=False)
        for n, age in ((0, None), (1, None), (1, 1.0 * DAY), (1, 3.5 * DAY), (1, 5.0 * DAY))
    ]
    assert sorted(found, key=lambda risk: risk.rank) == [found[4], found[3], found[2], found[1], found[0]]
