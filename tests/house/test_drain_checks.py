"""A drain's figures are believed only if every letter was sent as often as planned, in order."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import pytest

from benchmarks.drains.drain_calls import SqsCalls
from benchmarks.drains.drain_plan import Plan, add_options, plan_of


def plan(options: str) -> Plan:
    """The plan of these options."""
    parser = argparse.ArgumentParser()
    add_options(parser)
    return plan_of(parser, parser.parse_args(options.split()))


def told(numbers: Sequence[int], *, dropped: int | None = None) -> SqsCalls:
    """The calls of sends of one key's letters in this order."""
    calls = SqsCalls(first_sent=100.0)
    for number in numbers:
        sent = {
            "md5": f"md5 of {number}", "accepted": True, "duplicate": number == dropped,
            "attributes": {"account": "drain-1", "sequence": str(number)},
        }  # fmt: skip
        calls.add({"action": "SendMessageBatch", "at": 100.0, "received": [], "sent": [sent]}, of_dlq=False)
    return calls


def received(calls: SqsCalls, at: float, messages: int) -> None:
    """Add a receive from the DLQ."""
    found: list[Any] = [{}] * messages
    calls.add({"action": "ReceiveMessage", "at": at, "received": found, "sent": []}, of_dlq=True)


def test_a_drain_that_sent_each_letter_once_in_order_is_believed() -> None:
    told([20, 21, 22]).check(plan("--letters 3"), 20)


@pytest.mark.parametrize(
    ("calls", "why"),
    [
        (told([0, 1]), "2 sends of 2 letters were accepted"),
        (told([0, 1, 1, 2]), "4 sends of 3 letters were accepted"),
        (told([0, 1, 1]), "3 sends of 2 letters were accepted"),
        (told([0, 1, 2], dropped=2), "1 of them dropped by a FIFO queue"),
        (told([0, 2, 1]), "1 letters were sent after a later letter of their key"),
    ],
)
def test_a_drain_that_lost_repeated_or_reordered_letters_has_no_figures(calls: SqsCalls, why: str) -> None:
    with pytest.raises(SystemExit, match=why):
        calls.check(plan("--letters 3"), 0)


def test_a_letter_that_its_consumer_failed_is_sent_twice_and_out_of_order() -> None:
    failing = plan("--letters 4 --outcome absence --failures 0.5")
    told([4, 5, 6, 7, 4, 6]).check(failing, 4)
    with pytest.raises(SystemExit, match="6 sends"):
        told([4, 5, 6, 7, 4]).check(failing, 4)


def test_letters_without_a_key_have_no_order() -> None:
    told([2, 0, 1]).check(plan("--letters 3 --kind keyless"), 0)


def test_silence_is_between_the_last_full_receive_and_the_first_send() -> None:
    calls = told([0])
    for at, messages in ((90.0, 10), (95.0, 0), (99.0, 0), (101.0, 3)):
        received(calls, at, messages)
    assert calls.silence() == 10.0


def test_what_the_consumer_calls_is_not_the_service_s() -> None:
    calls = told([0])
    calls.add({"action": "ReceiveMessage", "at": 101.0, "received": [{}], "sent": []}, of_dlq=False)
    assert calls.calls == 1
