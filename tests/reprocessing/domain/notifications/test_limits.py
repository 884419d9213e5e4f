"""Limits: twenty texts an hour to one destination, urgent ones ten seconds apart; retries back off."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from reprocessing.domain.notifications.limits import PER_HOUR, URGENT_APART, next_text_at, retry_at

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def test_the_twenty_first_text_of_an_hour_waits_until_the_first_is_an_hour_old() -> None:
    sent = [NOON - number * MINUTE for number in range(PER_HOUR)]
    assert next_text_at(sent, NOON) == NOON - 19 * MINUTE + timedelta(hours=1)
    assert next_text_at(sent[:-1], NOON) == NOON + URGENT_APART


def test_texts_older_than_an_hour_do_not_count() -> None:
    assert next_text_at([NOON - timedelta(hours=1)] * PER_HOUR, NOON) == NOON + URGENT_APART


def test_retries_double_from_half_a_minute_to_half_an_hour() -> None:
    waits = [(retry_at(failures, NOON) - NOON).total_seconds() for failures in (1, 2, 3, 7, 1_000)]
    assert waits == [30, 60, 120, 1_800, 1_800]
