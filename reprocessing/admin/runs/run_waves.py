"""The waves of a run as steps on the run's page: finished waves, the current wave, and planned waves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from reprocessing.domain.safety import wave_progression
from reprocessing.domain.safety.wave_progression import LAST, WaveCounts
from reprocessing.models import Run, Wave
from reprocessing.models.run import RunState
from reprocessing.store.safety import waves

#: Max waves that the page shows, because an automatic run has many.
_WAVES: Final = 8
_ENDED: Final = (RunState.FINISHED, RunState.ABORTED)


def wave_steps(run: Run, *, left: int) -> list[dict[str, Any]]:
    """Return the template values of each wave, in order. `left`: number of messages that are still to be sent."""
    found = list(Wave.objects.filter(run=run).order_by("-no")[:_WAVES])[::-1] if run.waves else []
    steps = [_settled(wave, run.dlq.wave_success) for wave in found if wave.settled_at is not None]
    if found and found[-1].settled_at is None:
        counts = waves.open_wave_counts(run.pk) if run.state == RunState.RUNNING else None
        steps.append(_open(found[-1], counts, run))
        steps += _following(found[-1].size, left) if run.state not in _ENDED else []
    return steps


def _settled(wave: Wave, success: float) -> dict[str, Any]:
    sent, failed = wave.sent or 0, wave.failed or 0
    health = "none" if not sent else "well" if not failed else "ill" if 1 - failed / sent < success else "hurt"
    return {
        "kind": "done", "no": wave.no, "size": wave.size, "health": health,
        "text": f"{sent:,} sent, {failed:,} failed" if sent else "nothing was sent",
    }  # fmt: skip


def _open(wave: Wave, counts: WaveCounts | None, run: Run) -> dict[str, Any]:
    text = "paused" if run.state == RunState.PAUSED else f"since {wave.opened_at:%H:%M:%S} UTC"
    health = "none"
    if counts and counts.sent:
        health = "hurt" if counts.failed else "well"
        newest = f"of the last {counts.sent:,} sent" if wave.size is None and counts.sent >= LAST else ""
        text = f"{counts.failed:,} failed, {counts.open:,} open, " + (newest or f"{counts.sent:,} sent")
    return {"kind": "now", "no": wave.no, "size": wave.size, "health": health, "text": text}


def _following(size: int | None, left: int) -> Iterator[dict[str, Any]]:
    """Yield the waves after the current wave, until they can hold the `left` messages that are still to be sent.

    `size`: the size of the current wave; None: it has no maximum size.
    """
    for following in wave_progression.sizes_after(size) if left else ():
        yield {"kind": "next", "no": None, "size": following, "health": "none", "text": "if the wave before succeeds"}
        left -= following or left
        if left <= 0:
            return
