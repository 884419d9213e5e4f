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
        help="runs, discards, releases and edits of more than N messages, and rule changes, need a second person; 0: "
        "all; off: as set with require_approvals (default: off)",
    )  # fmt: skip
    add_target_safety(parser)


def add_target_safety(parser: CommandParser) -> None:
    """Add the options of a target: ramp-up and circuit breaker."""
    parser.add_argument(
        "--ramp-from", type=or_off(number(0.001, 1)), metavar="SHARE",
        help="ramp-up: share of the rate to start with, or off for the full rate (default: 0.1)",
    )  # fmt: skip
    parser.add_argument(
        "--ramp-every",
        type=number(0.1, MAX_SECONDS),
        metavar="SECONDS",
        help="ramp-up: time until the rate doubles (default: 10)",
    )
    parser.add_argument(
        "--breaker-threshold", type=whole_number(1, 1_000), metavar="N",
        help="failures in a row that open the circuit breaker (default: 5)",
    )  # fmt: skip
    parser.add_argument(
        "--breaker-ratio", type=number(0, 1, above=True), metavar="SHARE",
        help="share of failures among the last messages (at least 20) that opens the circuit breaker (default: 0.5)",
    )  # fmt: skip
    parser.add_argument(
        "--breaker-cooldown", type=number(0.1, MAX_SECONDS), metavar="SECONDS",
        help="time from opening to the first canary; doubles after each failed canary, up to 600 s (default: 30)",
    )  # fmt: skip
    parser.add_argument(
        "--breaker-closes-after", type=whole_number(1, 1_000), metavar="N",
        help="canaries in a row that must succeed to close the circuit breaker (default: 3)",
    )  # fmt: skip
