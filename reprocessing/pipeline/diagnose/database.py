"""PostgreSQL: its version, its migrations, and the clock that everything here goes by."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from reprocessing.domain.diagnosis import Remark, ill, note, warn, well
from reprocessing.models import hold, server, stops

_NAME: Final = "PostgreSQL"
#: Django 5.2's oldest, as the server counts. Django: Databases, PostgreSQL notes.
_OLDEST: Final = 14
_OWN: Final = timedelta(seconds=1)  #: two readings of one clock are not further apart


def remarks() -> Iterator[Remark]:
    """What is to be said of it.

    Raises:
        django.db.Error: it does not answer.
    """
    if missing := server.pending():
        names = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")  # noqa: PLR2004
        why = "Commands and workers of this version fail, or act on tables of another."
        yield ill(_NAME, f"Migrations are not applied: {names}.", why, "manage.py migrate")
        return  # what follows asks for what they make
    found = server.server()
    version = found.version // 10_000
    if version < _OLDEST:
        why = "This version of Django does not support it."
        yield ill(_NAME, f"It is version {version}.", why, f"Move to version {_OLDEST} or later.")
    else:
        yield well(_NAME, f"version {version}, all migrations applied.")
    if abs(found.ours - found.now) > _OWN:
        by = (found.ours - found.now).total_seconds()
        why = (
            "Leases, deadlines and times of expiry go by redrive_now(): with another clock they come too early or late."
        )
        cure = "Somebody replaced that function. Put back what the migrations made: SELECT clock_timestamp()."
        yield ill(_NAME, f"redrive_now() is {by:+,.1f} s from the server's clock.", why, cure)
    yield from _stops()
    if not server.has_dlqs():
        yield note("every dlq", "None has been added yet.", "manage.py add_dlq NAME --url URL --confirm")


def _stops() -> Iterator[Remark]:
    if held := hold.standing():
        what = f'Everything is held by {held.by} since a restore: "{held.reason}".'
        yield warn("every dlq", what, "Nothing is sent before somebody has decided.", "manage.py after_restore report")
    elif halt := stops.stopped(None):
        what = f'Everything is stopped by {halt.by} since {halt.since:%Y-%m-%d %H:%M} UTC: "{halt.reason}".'
        yield warn("every dlq", what, "Nothing is sent.", "manage.py resume_redrive --all --reason WHY --confirm")
