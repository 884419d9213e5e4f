"""Add the options that set waves, ramp-up, circuit breakers, and when a second person is needed."""

from __future__ import annotations

from argparse import BooleanOptionalAction

from django.core.management.base import CommandParser

from reprocessing.management.arguments import number, or_off, whole_number
from reprocessing.models.target import MAX_SECONDS


def add_safety(parser: CommandParser) -> None:
    """Add the options of a DLQ and its targets: waves, ramp-up, circuit breakers and approvals."""
    parser.add_argument(
        "--waves",
        action=BooleanOptionalAction,
        help="send runs in waves: 1 message, then 10, then 100, then all (default: yes)",
    )
    parser.add_argument(
        "--wave-success", type=number(0, 1), metavar="SHARE",
        help="share of a wave's messages that must succeed. If fewer succeed, the run pauses; in mode automatic, the "
        "circuit breaker opens instead (default: 0.8)",
    )  # fmt: skip
    parser.add_argument(
        "--give-up-after", type=or_off(number(1, MAX_SECONDS)), metavar="SECONDS",
        help="in mode automatic: pause the run when no message to a target has succeeded for this time, or off for "
        "never (default: 86400)",
    )  # fmt: skip
    parser.add_argument(
        "--approval-above", type=or_off(whole_number(0)), metavar="N",
        help="runs, discards, releases and edits of more than N messages, and changes of rules, need the approval of "
        "a second person; 0: even of one message; off: this DLQ has the limit of the command require_approvals "
        "(default: off)",
    )  # fmt: skip
    add_target_safety(parser)


def add_target_safety(parser: CommandParser) -> None:
    """Add the options of a target: ramp-up and circuit breaker."""
    parser.add_argument(
        "--ramp-from", type=or_off(number(0.001, 1)), metavar="SHARE",
        help="ramp-up: share of the rate limit with which sending starts, or off to start with the full rate "
        "(default: 0.1)",
    )  # fmt: skip
    parser.add_argument(
        "--ramp-every",
        type=number(0.1, MAX_SECONDS),
        metavar="SECONDS",
        help="ramp-up: seconds until the rate doubles (default: 10)",
    )
    parser.add_argument(
        "--breaker-threshold", type=whole_number(1, 1_000), metavar="N",
        help="number of failed attempts in a row that opens the circuit breaker (default: 5)",
    )  # fmt: skip
    parser.add_argument(
        "--breaker-ratio", type=number(0, 1, above=True), metavar="SHARE",
        help="the circuit breaker opens if this share of the last 100 attempts failed; it needs at least 20 attempts "
        "(default: 0.5)",
    )  # fmt: skip
    parser.add_argument(
        "--breaker-cooldown", type=number(0.1, MAX_SECONDS), metavar="SECONDS",
        help="seconds from the opening of the circuit breaker to its first canary; doubles after each failed canary, "
        "up to 600 (default: 30)",
    )  # fmt: skip
    parser.add_argument(
        "--breaker-closes-after", type=whole_number(1, 1_000), metavar="N",
        help="number of canaries in a row that must succeed before the circuit breaker closes (default: 3)",
    )  # fmt: skip
