"""The command `manage.py release_parked`, which releases parked messages, so that they are sent again."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser

from reprocessing.management.arguments import iso_time, not_empty
from reprocessing.management.console import format_time
from reprocessing.management.shared.parking_command import Decisions, ParkingCommand
from reprocessing.models import AuditAct, Run
from reprocessing.models.dlq import Mode
from reprocessing.models.run import RunKind
from reprocessing.pipeline.parking_lot import act_on_parked, release_target
from reprocessing.store.ordering import lanes


class Command(ParkingCommand):
    """Release parked messages: they are sent again.

    The messages return to their key queues, and their attempts are counted from zero. A message is sent when it is
    first in its key queue, even if later messages of its key were delivered already.

    Examples:
        release_parked orders --parked-for attempts_spent --reason "consumer fixed"
        release_parked orders --key 42 --at 2026-03-01T08:00:00Z --reason "consumer fixed" --confirm
    """

    done_word = "released"
    act = staticmethod(act_on_parked.release)
    audit_act = AuditAct.RELEASED

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--at", type=iso_time, metavar="TIME",
            help="time before which the messages are not sent (ISO 8601); later messages of their ordering keys also "
            "wait (default: now)",
        )  # fmt: skip
        parser.add_argument(
            "--target", type=not_empty, metavar="TARGET",
            help="send the messages to this target, whatever rules say: name, ARN or URL of a target that add_target "
            "or add_dlq added",
        )  # fmt: skip

    def act_arguments(self, options: dict[str, Any]) -> dict[str, Any]:
        due: datetime | None = options["at"]
        if due is not None and due <= lanes.database_now():
            raise CommandError(f"Nothing was done: {format_time(due)} is in the past. Leave out --at to send them now.")
        if options["target"] is None:
            return {"due": due, "target": None}
        target = release_target.find_target(options["target"], cure="Add it: manage.py add_target ARN --confirm")
        return {"due": due, "target": target.pk}

    def act_options(self, options: dict[str, Any]) -> list[str]:
        at = ["--at", options["at"].isoformat()] if options["at"] else []
        return [*at, *(["--target", options["target"]] if options["target"] else [])]

    def next_steps(self, decided: Decisions) -> Iterable[str]:
        for run in Run.objects.filter(letters__in=decided.done).select_related("dlq").distinct():
            if run.kind != RunKind.AUTOMATIC:
                yield (
                    f"The run {run.name} sends what was released, with workers. Without workers: "
                    f"manage.py rerun {run.name} --confirm"
                )
            elif run.dlq.mode == Mode.AUTOMATIC:
                yield f"The automatic run of {run.dlq.name} sends what was released, with beat and workers."
            else:
                yield (
                    f"The automatic run of {run.dlq.name} sends what was released, with beat and workers. Without "
                    "them, the next command sends it, and also the DLQ's other messages: "
                    f"manage.py drain_dlq {run.dlq.name} --confirm"
                )
