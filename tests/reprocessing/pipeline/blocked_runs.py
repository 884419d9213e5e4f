"""Two runs of a key: the first run sends nothing, and its message comes before the message of the second run."""

from __future__ import annotations

from typing import Final

from reprocessing.models import Run
from reprocessing.store.runs import progress, run_transitions
from tests.reprocessing.pipeline.bench import KEYED, Workbench

Runs = tuple[Workbench, Run, Run]

_WHO: Final = {"by": "ann", "reason": "why"}


def behind_a_late_return() -> Runs:
    """The first message comes back to its finished run after the second run was started."""
    bench = Workbench(fields=KEYED)
    first = bench.enqueue_lane("1")
    bench.replay()
    progress.finish_runs()
    second = bench.enqueue_lane("2")
    [sent] = bench.delivered()
    bench.take_back(sent)
    return bench, first, second


def behind_a_paused_run() -> Runs:
    bench = Workbench(fields=KEYED)
    first = bench.enqueue_lane("1")
    run_transitions.pause(first.pk, **_WHO)
    return bench, first, bench.enqueue_lane("2")


def behind_an_aborted_run() -> Runs:
    """The first run is aborted after the second run was started."""
    bench, first, second = behind_a_paused_run()
    run_transitions.abort(first, **_WHO, stop_dlq=False)
    return bench, first, second
