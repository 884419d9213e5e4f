"""A watcher learns who is silent only after it has watched for long enough."""

from __future__ import annotations

from datetime import UTC, datetime

from reprocessing.domain.notifications.heartbeat import Signs, Silence, Watched, silence, watch

LATELY, SINCE = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)


def seen(*signs: Signs, elapsed: float = 15.0) -> Watched:
    known: Watched | None = None
    for sign in signs:
        known = watch(known, sign, elapsed=elapsed, longest=30.0)
    assert known is not None
    return known


def of(*signs: Signs, elapsed: float = 15.0) -> Silence:
    return silence(seen(*signs, elapsed=elapsed), silent_for=120.0)


def test_who_has_only_begun_to_watch_knows_nothing_however_old_the_signs_are() -> None:
    assert of(Signs(7, LATELY)) == of(*[Signs(7, LATELY)] * 8) == Silence(beat=None, workers=None)


def test_beat_without_ticks_is_silent_and_workers_are_then_not_known() -> None:
    assert of(*[Signs(7, LATELY)] * 9) == Silence(beat=True, workers=None)
    assert of(*[Signs(None, None)] * 9) == Silence(beat=True, workers=None)


def test_workers_are_silent_when_ticks_are_not_consumed() -> None:
    assert of(*(Signs(n, LATELY) for n in range(9))) == Silence(beat=False, workers=True)
    assert of(*(Signs(n, None) for n in range(9))) == Silence(beat=False, workers=True)


def test_both_are_alive_as_soon_as_a_tick_is_consumed() -> None:
    assert of(*[Signs(7, LATELY)] * 9, Signs(7, SINCE)) == Silence(beat=False, workers=False)


def test_after_beat_ticks_again_the_workers_are_not_known_yet() -> None:
    assert of(*[Signs(7, LATELY)] * 5, Signs(8, LATELY)) == Silence(beat=False, workers=None)


def test_a_machine_that_was_suspended_has_watched_nothing_meanwhile() -> None:
    assert of(Signs(7, LATELY), Signs(8, SINCE), Signs(8, SINCE), elapsed=86_400.0) == Silence(
        beat=False, workers=False
    )


def test_silence_begins_when_its_time_is_over() -> None:
    found = [silence(Watched(Signs(7, LATELY), 0.0, seconds, 500.0), silent_for=120.0) for seconds in (119.9, 120.0)]
    assert [each.workers for each in found] == [False, True]
    found = [silence(Watched(Signs(7, LATELY), seconds, 0.0, 500.0), silent_for=120.0) for seconds in (119.9, 120.0)]
    assert [each.beat for each in found] == [False, True]
