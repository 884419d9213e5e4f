"""A letter that is given to a lane while its owner looks for the next head is seen, and does not wait for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import transaction

from reprocessing.models import Letter
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.pipeline.replay import lease_lanes, replay_slice
from reprocessing.store.ordering import lanes
from tests.race.abreast import elsewhere, waits_for_us
from tests.reprocessing.pipeline.bench import Clock, Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def _behind_a_parked_one(**fields: Any) -> tuple[Workbench, int]:  # noqa: ANN401  the fields of a dlq
    """A lane with G, which is parked, and H, its head; and G's id."""
    bench = Workbench(fields={"ordering_key": "attribute:key", "sequence": "attribute:n", "max_attempts": 1, **fields})
    bench.enqueue("G", key="K", n="1")
    with bench.refusing("G", poison=True):
        bench.replay()
    bench.enqueue("H", key="K", n="2")
    return bench, bench.letter(payload__body=b"G").pk


@contextmanager
def _stopped(
    where: object, name: str, first: Callable[[Any], Any]
) -> Iterator[tuple[threading.Event, threading.Event]]:
    """The first call of this function applies `first` to its result, and waits to go on."""
    real = getattr(where, name)
    there, go = threading.Event(), threading.Event()

    def slow(*args: Any, **options: Any) -> Any:  # noqa: ANN401  those of the function
        found = real(*args, **options) if there.is_set() or name == "_close" else []
        if not there.is_set():
            found = first(found)
            there.set()
            assert go.wait(30)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where, name, slow)
        yield there, go


def _release_meanwhile(bench: Workbench, letter: int, where: object, name: str, first: Callable[[Any], Any]) -> None:
    with _stopped(where, name, first) as (there, go), elsewhere() as do:
        turn = do(lambda: bench.replay(seconds=60))
        assert there.wait(30)
        with transaction.atomic():
            assert act_on_parked.release([letter], by="anna", reason="mended").done == (letter,)
            go.set()
            waits_for_us()
        turn.result(60)


def test_a_letter_released_while_a_dead_owner_s_lane_is_taken_over_goes(clock: Clock) -> None:
    bench, letter = _behind_a_parked_one()
    bench.replay_and_die(sent=False)
    clock.advance(10)
    _release_meanwhile(bench, letter, lease_lanes, "_close", lambda closed: closed)
    assert (bench.states()["G"], bench.lane().phase) == ("delivered", "idle")


def test_a_letter_released_while_its_lane_s_head_is_gone_goes() -> None:
    bench, letter = _behind_a_parked_one()

    def gone(_: object) -> list[object]:
        """Its head was ended by others while it waited for a token: the intent takes none."""
        Letter.objects.filter(payload__body=b"H").update(state="discarded", finished_at=lanes.database_now())
        return []

    _release_meanwhile(bench, letter, replay_slice, "intend", gone)
    assert (bench.states(), bench.lane().phase) == ({"G": "delivered", "H": "discarded"}, "idle")
