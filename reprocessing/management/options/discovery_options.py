"""Add the options of discover_dlqs: where to search, and what to do with the DLQs that are found."""

from __future__ import annotations

from argparse import ArgumentTypeError, BooleanOptionalAction

from django.core.management.base import CommandParser

from reprocessing.domain.message.arn import is_region
from reprocessing.management.arguments import add_change_options, matching, not_empty, slug
from reprocessing.management.options.target_policy_options import read_role_arn


def add_discovery(parser: CommandParser) -> None:
    """Add the options of discover_dlqs."""
    parser.add_argument(
        "--role", action="append", type=read_role_arn, metavar="ARN",
        help="IAM role to assume, one for each AWS account; repeatable (default: the service's own role)",
    )  # fmt: skip
    parser.add_argument(
        "--region", action="append", type=matching(is_region, "a region", "eu-west-1"), metavar="REGION",
        help="AWS region to search; repeatable (default: AWS_DEFAULT_REGION)",
    )  # fmt: skip
    parser.add_argument("--prefix", type=not_empty, metavar="P", help="list only DLQs whose queue names begin with P")
    parser.add_argument(
        "--tag", action="append", type=tag, metavar="K=V", help="list only DLQs with this AWS tag; repeatable"
    )
    parser.add_argument(
        "--stored",
        action="store_true",
        help="show the stored results of earlier discoveries; send no requests to AWS",
    )
    actions = parser.add_mutually_exclusive_group()
    actions.add_argument(
        "--adopt", action="append", metavar="NAME",
        help="add the DLQ with this queue name or ARN, in mode observe; repeatable",
    )  # fmt: skip
    actions.add_argument(
        "--adopt-new", action="store_true",
        help="add every new DLQ that earlier discoveries found in these accounts and regions, in mode observe",
    )  # fmt: skip
    actions.add_argument(
        "--ignore", action="append", metavar="NAME",
        help="mark the DLQ with this queue name or ARN as ignored, so that it no longer counts as new, and nobody "
        "is notified of it; repeatable",
    )  # fmt: skip
    actions.add_argument("--unignore", action="append", metavar="NAME", help="undo --ignore of this DLQ; repeatable")
    actions.add_argument(
        "--daily", action=BooleanOptionalAction, default=None,
        help="repeat the discovery every REDRIVE_DISCOVER_EVERY seconds, and notify people of new DLQs",
    )  # fmt: skip
    actions.add_argument(
        "--forget",
        action="store_true",
        help="delete the stored results of these accounts and regions; registered DLQs stay registered",
    )
    parser.add_argument(
        "--policy", type=slug, metavar="NAME", help="policy of the added DLQs: a named set of DLQ settings"
    )
    parser.add_argument(
        "--team", action="append", type=not_empty, metavar="NAME",
        help="Django group (not the group of a role) whose members see the added DLQs in the admin; "
        "repeatable (default: none)",
    )  # fmt: skip
    add_change_options(parser, reason="discover_dlqs")


def tag(text: str) -> tuple[str, str]:
    """Read the value of --tag, NAME=VALUE, and return name and value."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ArgumentTypeError(f"{text!r} is not a tag. Example: team=orders")
    return name, value
