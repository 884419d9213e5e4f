"""How attempts failed is told without a text that may quote a message."""

from __future__ import annotations

import pytest

from reprocessing.domain.outcomes.failed_answers import in_words


@pytest.mark.parametrize(
    ("outcome", "said", "told"),
    [
        ("returned", "x", "they came back to the DLQ"), ("failed", "x", "their consumer reported that they failed"),
        ("silent", "x", "their consumer did not report in time"),
        ("refused", "503", "503 Service Unavailable"), ("refused", "AccessDenied", "AccessDenied"),
        ("refused", "order 4711", "their target refused them"), ("unknown", "", "there was no answer"),
        ("unknown", "it answered 503: order 4711", "503 Service Unavailable"),
        ("unknown", "no reply within 30 s", "no reply within 30 s"),
        ("unknown", "it answered 5031", "it answered 5031"),
    ],
)  # fmt: skip
def test_a_failure_is_told_by_its_outcome_its_code_or_the_lack_of_an_answer(outcome: str, said: str, told: str) -> None:
    assert in_words(outcome, said) == told
