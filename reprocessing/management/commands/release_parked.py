"""`manage.py release_parked`: parked letters go back to their lanes, since a person says so."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db.models import Q

from reprocessing.management.console import moment, when, words
from reprocessing.management.shared.parking_command import Decided, ParkingCommand
from reprocessing.models import DeadLetterQueue, Run, Target
from reprocessing.models.run import RunKind
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.store.ordering import lanes


class Command(ParkingCommand):
    """Releases parked letters."""

    help = (
        "Puts parked letters back onto their lanes, due at once, with as many attempts as their dlq allows anew. "
        "They go though later ones of their lane were delivered."
    )
    deed = "released"
    act = staticmethod(act_on_parked.release)

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--at", type=moment, metavar="TIME",
            help="not before then (ISO 8601); what is behind one of them in its lane waits with it",
        )  # fmt: skip
        parser.add_argument(
            "--target", type=words, metavar="TARGET",
            help="to this known target, by its name, ARN or URL, whatever rules say; those it cannot take stay parked",
        )  # fmt: skip

    def how(self, options: dict[str, Any]) -> dict[str, Any]:
        """When, and where to."""
        due: datetime | None = options["at"]
        if due is not None and due <= lanes.clock():
            raise CommandError(f"Nothing was done: {when(due)} has passed. Leave out --at to replay them at once.")
        return {"due": due, "target": None if options["target"] is None else _target(options["target"])}

    def how_said(self, options: dict[str, Any]) -> list[str]:
        """The same on the command line."""
        at = ["--at", options["at"].isoformat()] if options["at"] else []
        return [*at, *(["--target", options["target"]] if options["target"] else [])]

    def after(self, decided: Decided) -> Iterable[str]:
        """Who sends them."""
        for run in Run.objects.filter(letters__in=decided.done).distinct():
            if run.kind == RunKind.STANDING:
                yield "They are of the standing run: workers replay them."
            else:
                go_on = f"manage.py rerun {run.name} --confirm"
                yield f"Their run is {run.name}: workers replay it; without workers: {go_on}"


def _target(name: str) -> int:
    """The id of the one target that goes by this name.

    Raises:
        CommandError: there is none, or several, or it is a dlq that is watched.
    """
    named = Q(arn=name) | Q(url=name) | Q(arn__endswith=f":{name}")
    found = list(Target.objects.filter(named).order_by("arn")[:3])
    if len(found) != 1:
        cure = (
            "Name one of them by its ARN: " + ", ".join(one.arn for one in found)
            if found
            else "Add it: manage.py add_target ARN --confirm"
        )
        raise CommandError(f'Nothing was done: {"several targets are" if found else "no target is"} "{name}". {cure}')
    if watched := DeadLetterQueue.objects.filter(arn=found[0].arn).first():
        raise CommandError(
            f"Nothing was done: {name} is watched, as {watched.name}: what is sent there would be captured as having "
            "failed. Name a queue that is not watched."
        )
    return found[0].pk
