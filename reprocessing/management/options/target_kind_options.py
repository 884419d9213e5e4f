"""Add the options for source queues whose consumers are Celery workers."""

from __future__ import annotations

from argparse import BooleanOptionalAction
from typing import Final

from django.core.management.base import CommandParser

from reprocessing.domain.targets.target_kind import TargetKind

#: Fields of a target that these options set.
CELERY_FIELDS: Final = ("kind", "strips_eta", "strips_expires", "resets_retries", "renews_id")


def add_celery_options(parser: CommandParser) -> None:
    """Add --celery, --no-celery, and the options that change task messages before they are sent."""
    parser.add_argument(
        "--celery", dest="kind", action="store_const", const=TargetKind.CELERY.value,
        help="Celery workers consume the source queues: park task messages that workers would drop, and tasks of "
        "Celery groups",
    )  # fmt: skip
    parser.add_argument(
        "--no-celery", dest="kind", action="store_const", const=TargetKind.SQS.value,
        help="the consumers of the source queues are not Celery workers (default)",
    )  # fmt: skip
    for option, field, what in (
        ("--strip-eta", "strips_eta", "remove the eta of tasks, so that tasks run at once"),
        ("--strip-expires", "strips_expires", "remove the expiry of tasks; otherwise expired tasks are parked"),
        ("--reset-retries", "resets_retries", "set the number of a task's retries to 0"),
        ("--new-id", "renews_id", "give tasks new task ids, except tasks of Celery groups"),
    ):
        parser.add_argument(
            option, dest=field, action=BooleanOptionalAction, help=f"with --celery: {what} (default: no)"
        )
