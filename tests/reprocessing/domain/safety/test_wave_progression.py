"""A larger wave follows only when enough letters of the last one succeeded; else the run pauses, and says why."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.safety.wave_progression import (
    AT_LEAST,
    LAST,
    SIZES,
    NextWave,
    OpenBreakers,
    PauseRun,
    RepeatWave,
    RestartWaves,
    WaitForOutcomes,
    WaveCounts,
    judge_wave,
    sizes_after,
)  # fmt: skip

LIMITED = st.sampled_from([size for size in SIZES if size])
SHARES = st.integers(0, 100).map(lambda percent: percent / 100)


@st.composite
def counts(draw: st.DrawFn, sizes: st.SearchStrategy[int | None] = LIMITED) -> WaveCounts:
    size = draw(sizes)
    sent = draw(st.integers(0, size or LAST))
    failed = draw(st.integers(0, sent))
    silent = draw(st.integers(0, sent - failed))
    known = failed + silent
    return WaveCounts(size, sent, draw(st.integers(0, sent - known)), failed, silent, draw(st.integers(0, 5)))


@pytest.mark.parametrize(("size", "following"), [(1, 10), (10, 100), (100, None)])
def test_a_wave_without_failures_is_followed_by_the_next(size: int, following: int | None) -> None:
    assert judge_wave(WaveCounts(size, size, 0, 0, 0), success=1) == NextWave(following)


def test_larger_waves_follow_and_none_after_that_of_all_letters() -> None:
    assert [sizes_after(size) for size in (1, 10, 100, None)] == [(10, 100, None), (100, None), (None,), ()]


@pytest.mark.parametrize(
    ("failed", "success", "verdict"),
    [
        (2, 0.8, NextWave(100)),
        (3, 0.8, PauseRun("3 of the 10 messages sent in its wave of 10 failed; 80 % of a wave must succeed")),
        (10, 0.0, NextWave(100)),
    ],
)
def test_as_many_letters_may_fail_as_the_share_allows(failed: int, success: float, verdict: object) -> None:
    assert judge_wave(WaveCounts(10, 10, 0, failed, 0), success=success) == verdict


def test_a_failed_letter_is_followed_by_another_and_three_in_a_row_stop_the_run() -> None:
    verdicts = [judge_wave(WaveCounts(1, 1, 0, 1, 0, tries), success=0.8) for tries in range(4)]
    assert verdicts == [RepeatWave(), RepeatWave(), PauseRun("3 waves of one message failed in a row"), RepeatWave()]


@pytest.mark.parametrize("tries", [0, 1, 3, 4])
def test_an_automatic_run_rests_when_a_letter_failed_and_goes_on_at_once_when_that_was_poison(tries: int) -> None:
    verdicts = [
        judge_wave(WaveCounts(1, 1, 0, 1, 0, tries, poison), success=0.8, is_automatic=True) for poison in (0, 1)
    ]
    assert isinstance(verdicts[0], OpenBreakers)
    assert verdicts[1] == RestartWaves()


@pytest.mark.parametrize("tries", [2, 5])
def test_an_automatic_run_rests_when_every_third_wave_of_one_in_a_row_was_poison(tries: int) -> None:
    """A target that refuses everything is broken, and its messages must not be parked at full speed."""
    verdict = judge_wave(WaveCounts(1, 1, 0, 1, 0, tries, 1), success=0.8, is_automatic=True)
    assert verdict == OpenBreakers("3 waves of one message failed in a row")


def test_a_wave_that_says_nothing_is_repeated() -> None:
    assert judge_wave(WaveCounts(10, 10, 0, 0, 10), success=0.8) == RepeatWave()


@pytest.mark.parametrize(
    ("sent", "failed", "verdict"),
    [
        (AT_LEAST - 1, AT_LEAST - 1, WaitForOutcomes()), (AT_LEAST, 4, WaitForOutcomes()),
        (AT_LEAST, 5, PauseRun("5 of its last 20 messages failed; 80 % of them must succeed")),
        (LAST, 20, WaitForOutcomes()),
        (LAST, 21, PauseRun("21 of its last 100 messages failed; 80 % of them must succeed")),
    ],
)  # fmt: skip
def test_the_last_wave_stops_when_too_many_of_its_newest_letters_failed(
    sent: int, failed: int, verdict: object
) -> None:
    assert judge_wave(WaveCounts(None, sent, 0, failed, 0), success=0.8) == verdict


@given(counts(), SHARES)
def test_a_wave_that_can_still_succeed_is_waited_for(count: WaveCounts, success: float) -> None:
    assert count.size is not None
    at_best = count.size - count.silent
    if (count.sent < count.size or count.open) and count.failed <= round(at_best * (1 - success), 6):
        assert judge_wave(count, success=success) == WaitForOutcomes()


@given(counts(), SHARES)
def test_only_a_finished_wave_with_the_required_share_is_followed_by_a_larger_one(
    count: WaveCounts, success: float
) -> None:
    if isinstance(judge_wave(count, success=success), NextWave):
        said = count.sent - count.silent
        assert (count.sent, count.open) == (count.size, 0)
        assert (said - count.failed) / said >= success


@given(counts(), SHARES)
def test_a_finished_wave_is_never_waited_for(count: WaveCounts, success: float) -> None:
    assert count.size is not None
    over = replace(count, sent=count.size, open=0)
    assert judge_wave(over, success=success) != WaitForOutcomes()


@given(counts(st.none()), SHARES)
def test_the_last_wave_stops_the_run_or_goes_on(count: WaveCounts, success: float) -> None:
    seen = count.sent - count.silent
    stopped = isinstance(judge_wave(count, success=success), PauseRun)
    assert stopped == (seen >= AT_LEAST and (seen - count.failed) / seen < success)
