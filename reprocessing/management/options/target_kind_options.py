"""What a person may say of where letters go back to: of which kind it is, and in which form it is to have them."""

from __future__ import annotations

from argparse import BooleanOptionalAction
from typing import Final

from django.core.management.base import CommandParser

from reprocessing.models.target import TargetKind

#: Options by the names of the target's fields that they fill.
FIELDS: Final = ("kind", "strips_eta", "strips_expires", "resets_retries", "renews_id")


def add_target(parser: CommandParser) -> None:
    """The options of targets' kinds."""
    _add_celery(parser)


def _add_celery(parser: CommandParser) -> None:
    parser.add_argument(
        "--celery", dest="kind", action="store_const", const=TargetKind.CELERY.value,
        help="Celery workers consume the origins: letters are task messages, and what workers would throw away, or "
        "what is a part of a group, waits for a person",
    )  # fmt: skip
    parser.add_argument(
        "--no-celery", dest="kind", action="store_const", const=TargetKind.SQS.value,
        help="other consumers do; the default",
    )  # fmt: skip
    for option, field, what in (
        ("--strip-eta", "strips_eta", "tasks go without their eta: they are run at once"),
        ("--strip-expires", "strips_expires", "tasks go without their expiry; else what has expired is parked"),
        ("--reset-retries", "resets_retries", "tasks go as if they had never been retried"),
        ("--new-id", "renews_id", "tasks go under new ids, except parts of groups"),
    ):
        parser.add_argument(
            option, dest=field, action=BooleanOptionalAction, help=f"with --celery: {what}; default: no"
        )
