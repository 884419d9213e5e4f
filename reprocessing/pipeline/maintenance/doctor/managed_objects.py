"""Find drift: objects of a configuration file that people changed, or unlocked, after the last apply of the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reprocessing.domain.configuration.changes import Action
from reprocessing.domain.maintenance.findings import DoctorFinding, note_finding, warning_finding
from reprocessing.store.configuration import managed
from reprocessing.store.configuration.managed import Drift

_WHY: Final = "The next apply of the file would undo the change."
_CURE: Final = "Apply the file again, or copy the change into the file from the output of: manage.py export_config"


def findings() -> Iterator[DoctorFinding]:
    """Yield a warning for each object of a configuration file that was changed by hand; if only unlocked, a note.

    Raises:
        django.db.Error: PostgreSQL does not answer.
    """
    for drift in managed.find_drift():
        name = str(drift.mark)
        unlocked = _unlocked(drift)
        if drift.change is None:
            yield note_finding(name, unlocked, "The next apply of the file locks it.")
        elif drift.change.action is Action.REMOVE:
            yield warning_finding(name, f"It was removed by hand. {unlocked}".rstrip(), _WHY, _CURE)
        else:
            keys = ", ".join(field.key for field in drift.change.fields) or "own settings"
            what = f"It was changed after its file was applied: {keys}. {unlocked}".rstrip()
            yield warning_finding(name, what, _WHY, _CURE)


def _unlocked(drift: Drift) -> str:
    mark = drift.mark
    return f"{mark.unlocked_by} unlocked it: {mark.unlock_reason}." if mark.unlocked_at else ""
