"""When a DLQ refills with the messages that were just redriven from it."""

import pytest

from reprocessing.domain.safety.redrive_loop import NewestMessages, redrive_loop


def test_several_different_messages_that_came_back_are_a_loop() -> None:
    assert redrive_loop(NewestMessages(seen=50, again=40, different=10)) == (
        "The DLQ refills with redriven messages: the bodies of 40 of its newest 50 messages were delivered 2 times or "
        "more within the last hour, and came back as new messages."
    )


@pytest.mark.parametrize(
    "newest",
    [
        NewestMessages(seen=50, again=50, different=9),  # equal heartbeats
        NewestMessages(seen=50, again=39, different=39),  # new failures beside returned messages
    ],
)
def test_equal_messages_and_new_failures_are_no_loop(newest: NewestMessages) -> None:
    assert redrive_loop(newest) is None
