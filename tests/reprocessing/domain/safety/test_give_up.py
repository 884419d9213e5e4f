"""When automatic redrive gives up a target that keeps failing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reprocessing.domain.safety.give_up import FailingTarget, KeepTrying, ParkMessage, PauseRun, duration, give_up

DAY = 86_400.0
DEAD = FailingTarget(
    name="orders", seconds=DAY, give_up_after=DAY, attempts=150, of_message=13, keys=12, max_attempts=3,
    has_others=True, has_other_targets=False, last_failure="503: Service Unavailable",
)  # fmt: skip


def test_a_run_pauses_when_messages_of_several_keys_failed_for_long_enough() -> None:
    assert give_up(DEAD) == PauseRun(
        "No message to orders succeeded: 150 attempts in 24 h failed, for 12 ordering keys; the last failure: "
        "503: Service Unavailable.",
        public_why="No message to orders succeeded: 150 attempts in 24 h failed, for 12 ordering keys.",
    )


def test_a_run_of_one_key_pauses_when_more_messages_wait() -> None:
    why = "No message to orders succeeded: 150 attempts in 24 h failed, for 1 ordering key."
    assert give_up(replace(DEAD, keys=1, last_failure="")) == PauseRun(why, public_why=why)


def test_the_only_message_of_a_run_is_parked() -> None:
    alone = replace(DEAD, keys=1, has_others=False, attempts=9, last_failure="")
    assert give_up(alone) == ParkMessage(
        "9 attempts in 24 h failed, and the run has no other message to test orders with."
    )


@pytest.mark.parametrize("of_message", [0, 2])
def test_a_message_is_not_parked_before_it_has_failed_as_often_as_the_dlq_allows(of_message: int) -> None:
    """The attempts of other messages do not count, and without a message there is none to park."""
    assert give_up(replace(DEAD, has_others=False, of_message=of_message)) == KeepTrying()


@pytest.mark.parametrize(
    "spared", [{"seconds": DAY - 1}, {"give_up_after": None}, {"has_other_targets": True}, {"attempts": 1}]
)
def test_a_target_is_tried_on(spared: dict[str, object]) -> None:
    assert give_up(replace(DEAD, **spared)) == KeepTrying()  # type: ignore[arg-type]  # one field each, by its name


def test_two_failures_are_enough_however_few_they_are() -> None:
    assert isinstance(give_up(replace(DEAD, attempts=2)), PauseRun)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (119, "119 s"), (120, "2 min"), (3_600, "1 h"), (DAY, "24 h"), (3 * DAY, "3 days")],
)
def test_a_duration_is_told_in_the_unit_that_fits(seconds: float, words: str) -> None:
    assert duration(seconds) == words
