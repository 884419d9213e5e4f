"""The meanings of status codes: the defaults, and those that a target sets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.errors import InvalidAnswers
from reprocessing.domain.replay.verdicts import NotSent, Refused, Taken
from reprocessing.domain.targets.http_responses import Meaning, StatusMeanings, http_date, parse_answers, retry_after

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)

CODES = st.integers(200, 599).map(str) | st.sampled_from(["2xx", "3xx", "4xx", "5xx"])
SAID = st.dictionaries(CODES, st.sampled_from(Meaning), max_size=20)


@pytest.mark.parametrize(
    ("meaning", "codes"),
    [
        (Meaning.SUCCESS, {200, 201, 202, 204, 299}),
        (Meaning.WAIT, {429}),
        (
            Meaning.RETRY,
            {300, 301, 304, 401, 403, 404, 405, 407, 408, 409, 425, 451, 500, 501, 503, 504, 599, 600, 999},
        ),
        (Meaning.POISON, {400, 410, 411, 413, 414, 415, 422, 431}),
    ],
)
def test_codes_have_default_meanings(meaning: Meaning, codes: set[int]) -> None:
    assert {code for code in codes if StatusMeanings().meaning(code) is meaning} == codes


@pytest.mark.parametrize(
    ("text", "code", "meaning"),
    [
        ("409=success", 409, "success"), ("409=success 4xx=poison", 409, "success"),
        ("409=success 4xx=poison", 404, "poison"), ("4xx=retry", 422, "retry"), ("4xx=poison", 429, "wait"),
        ("429=retry", 429, "retry"), ("503=wait", 503, "wait"), ("5xx=poison", 404, "retry"),
        ("409=success,  409=success\n", 409, "success"),
    ],
)  # fmt: skip
def test_a_code_wins_over_a_class_and_both_over_the_defaults(text: str, code: int, meaning: str) -> None:
    assert parse_answers(text).meaning(code) is Meaning(meaning)


@pytest.mark.soak
@given(SAID)
def test_a_text_is_parsed_and_written_back(said: dict[str, Meaning]) -> None:
    text = ", ".join(f"{code}={meaning}" for code, meaning in said.items())
    assert parse_answers(text) == StatusMeanings(tuple(sorted(said.items())))
    assert parse_answers(str(parse_answers(text))) == parse_answers(text)


@pytest.mark.parametrize(
    "text", ["409", "409=", "=success", "409=fine", "40x=retry", "1xx=retry", "600=retry", "199=retry", "409 = success",
             "409=SUCCESS", "xxx=retry", "4xx=retry;5xx=retry", "٤٠٩=success", "409=success 409=retry",
             "409=success " * 50]
)  # fmt: skip
def test_an_unclear_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidAnswers):
        parse_answers(text)


def test_outcomes_show_the_status_alone() -> None:
    week, answers = timedelta(days=7), parse_answers("303=poison")
    assert answers.outcome(204, after=week) == Taken()
    assert answers.outcome(429) == NotSent("it answered 429: try again later", after=timedelta(seconds=1))
    assert answers.outcome(429, after=week) == NotSent("it answered 429: try again later", after=week)
    assert answers.outcome(503, after=week) == Refused("503", "it answered 503", after=week)
    assert answers.outcome(422, after=week) == Refused("422", "it answered 422", poison=True)
    redirect = "it answered 300, a redirect, which is not followed; use the redirect's address as target"
    assert answers.outcome(300) == Refused("300", redirect)
    assert answers.outcome(303, after=week) == Refused("303", redirect.replace("300", "303"), poison=True)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0), ("120", 120), (" 7 ", 7), ("86401", 86_400), ("9" * 300, 86_400),
        ("Sat, 21 Nov 2026 12:01:00 GMT", 60), ("Saturday, 21-Nov-26 12:01:00 GMT", 60),
        ("Sat Nov 21 12:01:00 2026", 60), ("Sat, 21 Nov 2026 11:00:00 GMT", 0),
        ("Sat, 28 Nov 2026 12:00:00 GMT", 86_400),
        ("-1", None), ("1.5", None), ("soon", None), ("", None), ("Sat, 99 Nov 2026 12:01:00 GMT", None),
        ("9" * 5_000, None), ("0x10", None), ("١٢", None),
    ],
)  # fmt: skip
def test_retry_after_is_read_in_seconds_or_as_a_date(text: str, seconds: int | None) -> None:
    assert retry_after(text, now=NOW) == (None if seconds is None else timedelta(seconds=seconds))


@given(st.text(max_size=80))
def test_any_header_is_a_bounded_wait_or_none(text: str) -> None:
    found = retry_after(text, now=NOW)
    assert found is None or timedelta() <= found <= timedelta(days=1)
    assert (http_date(text) or NOW).tzinfo is UTC
