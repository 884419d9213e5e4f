"""`manage.py release_parked`: parked letters go back to their lanes, since a person says so."""

from __future__ import annotations

from collections.abc import Iterable

from reprocessing.management.parking import Decided, ParkingCommand
from reprocessing.models import Run
from reprocessing.models.run import RunKind
from reprocessing.pipeline import park


class Command(ParkingCommand):
    """Releases parked letters."""

    help = (
        "Puts parked letters back onto their lanes, due at once, with as many attempts as their dlq allows anew. "
        "They go though later ones of their lane were delivered."
    )
    deed = "released"
    act = staticmethod(park.release)

    def after(self, decided: Decided) -> Iterable[str]:
        """Who sends them."""
        for run in Run.objects.filter(letters__in=decided.done).distinct():
            if run.kind == RunKind.STANDING:
                yield "They are of the standing run: workers replay them."
            else:
                go_on = f"manage.py rerun {run.name} --confirm"
                yield f"Their run is {run.name}: workers replay it; without workers: {go_on}"
