"""When a DLQ refills with the messages that were just redriven out of it."""

from __future__ import annotations

from reprocessing.domain.safety.redrive_loop import NewestMessages, redrive_loop


def test_several_different_messages_that_went_round_are_a_loop() -> None:
    assert redrive_loop(NewestMessages(seen=50, again=40, different=10)) == (
        "The DLQ refills with what is redriven: 40 of its newest 50 messages were delivered 2 times or more within the "
        "last hour, and came again as new messages."
    )


def test_equal_heartbeats_are_no_loop() -> None:
    assert redrive_loop(NewestMessages(seen=50, again=50, different=9)) is None


def test_new_failures_beside_those_that_go_round_are_no_loop() -> None:
    assert redrive_loop(NewestMessages(seen=50, again=39, different=39)) is None
