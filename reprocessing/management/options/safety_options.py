"""What a person may say of a dlq's brakes: its waves, and the breakers and ramps of its targets."""

from __future__ import annotations

from argparse import BooleanOptionalAction

from django.core.management.base import CommandParser

from reprocessing.management.console import number, whole
from reprocessing.management.shared.rule_command import or_off
from reprocessing.models.target import FORTNIGHT


def add_brakes(parser: CommandParser) -> None:
    """The options of waves, ramps and breakers."""
    _add_waves(parser)
    add_brakes_of_targets(parser)


def add_brakes_of_targets(parser: CommandParser) -> None:
    """The options of ramps and breakers."""
    _add_ramp(parser)
    _add_breaker(parser)


def _add_waves(parser: CommandParser) -> None:
    parser.add_argument(
        "--waves", action=BooleanOptionalAction,
        help="one letter of a run goes first, then ten, then a hundred, then all; default: yes",
    )  # fmt: skip
    parser.add_argument(
        "--wave-success", type=number(0, 1), metavar="SHARE",
        help="the share of a wave that has to go well, or the run stops itself (in mode automatic the breaker opens "
        "instead, and the waves begin again with one message); default: 0.8",
    )  # fmt: skip
    parser.add_argument(
        "--give-up-after", type=or_off(number(1, FORTNIGHT)), metavar="SECONDS",
        help="mode automatic: pause the run and notify people when no message to a target succeeded for so long; "
        'default: 86400 (24 hours); "off": never',
    )  # fmt: skip


def _add_ramp(parser: CommandParser) -> None:
    parser.add_argument(
        "--ramp-from", type=or_off(number(0.001, 1)), metavar="SHARE",
        help='the share of the rate that it begins with, and climbs from while letters go well; default: 0.1; "off": 1',
    )  # fmt: skip
    parser.add_argument(
        "--ramp-every", type=number(0.1, FORTNIGHT), metavar="SECONDS",
        help="how long it stays on a step, at the least; default: 10",
    )  # fmt: skip


def _add_breaker(parser: CommandParser) -> None:
    parser.add_argument(
        "--breaker-threshold", type=whole(1, 1_000), metavar="N",
        help="letters that fail in a row, after which nothing goes to a target until it has rested; default: 5",
    )  # fmt: skip
    parser.add_argument(
        "--breaker-ratio", type=number(0, 1, above=True), metavar="SHARE",
        help="the share of the last letters, 20 or more, whose failure does the same; default: 0.5",
    )  # fmt: skip
    parser.add_argument(
        "--breaker-cooldown", type=number(0.1, FORTNIGHT), metavar="SECONDS",
        help="how long it rests, twice as long after each try that fails; default: 30, at most 600 or this",
    )  # fmt: skip
    parser.add_argument(
        "--breaker-closes-after", type=whole(1, 1_000), metavar="N",
        help="tries of one letter that have to go well in a row before letters go again; default: 3",
    )  # fmt: skip
