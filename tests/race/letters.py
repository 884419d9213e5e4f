"""Letters on lanes that are due, and the intent to send a lane's head."""

from __future__ import annotations

from reprocessing.models import Letter
from reprocessing.store.ordering.lanes import LeasedLane
from reprocessing.store.replay.intent import IntendedSend, intend
from tests.reprocessing.pipeline.bench import KEYED, Workbench, enqueued


def lettered(count: int, **fields: object) -> Workbench:
    """A workbench with so many letters, "0", "1" and so on, each on its own lane, enlisted in a running run."""
    return enqueued(*map(str, range(count)), fields=fields)


def bury(bench: Workbench, count: int) -> None:
    bench.bury_all(*map(str, range(count)))


def of_one_key(count: int, **fields: object) -> Workbench:
    """A workbench with so many letters of one key, "0", "1" and so on, enlisted in a running run."""
    bench = Workbench(fields={**KEYED, **fields})
    bench.enqueue_lane(*map(str, range(count)), key="a")
    return bench


def intend_head(lane: LeasedLane, letter: int | None = None, *, margin: float = 2) -> list[IntendedSend]:
    head = Letter.objects.get(lane=lane.lane_id).pk if letter is None else letter
    return intend([lane.lane_id], [lane.fence], [head], margin=margin, hold=8)
