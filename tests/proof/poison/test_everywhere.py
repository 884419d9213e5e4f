"""Every payload at the first, the middle and the last place of a batch of ten, to every kind of target."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle as cycled
from itertools import islice, product
from time import monotonic

import pytest

from tests.conftest import empty
from tests.proof import names
from tests.proof.ledger import Ledger
from tests.proof.names import SCREENS, begun
from tests.proof.poison import cycle
from tests.proof.poison.corpus import CORPUS, Payload
from tests.proof.poison.cycle import Cycle
from tests.proof.poison.station import STATIONS, Station
from tests.reprocessing.pipeline.targets.kinds import World

pytestmark = [pytest.mark.prove, pytest.mark.django_db(transaction=True)]

LAYER = "poison"
PLACES = dict(zip(names.PLACES, (0, 4, 9), strict=True))
#: Payloads that die together, three in a batch among seven mates, and bytes of them.
TOGETHER, BYTES = 99, 12 << 20
_THROUGH_THE_GATEWAY = ("http", "lambda", "topic", "bus")


@dataclass(frozen=True)
class Case:
    """One payload at one place of a batch, to one station; with those of its shift it travels."""

    station: Station
    place: str
    payload: Payload
    shift: int

    @property
    def name(self) -> str:
        return f"{self.station.name}/{self.place}/{self.payload.name}"


def test_every_payload_at_every_place_to_every_target(
    world: World, caplog: pytest.LogCaptureFixture, ledger: Ledger, is_time: Callable[[], bool]
) -> None:
    if os.environ.get("POISON", "").startswith(SCREENS):
        pytest.skip("POISON asks for a screen")
    failed: list[str] = []
    done = 0
    for lot in _least_proved(ledger):
        if not is_time():
            break
        began = monotonic()
        placed = [(one.payload, PLACES[one.place]) for one in lot]
        station = lot[0].station
        through = world if station.kind in _THROUGH_THE_GATEWAY else None
        one = cycle.run(station, cycle.batches(station, placed), caplog, through)
        if station.rules:
            cycle.without_rules(one)
        broken = _noted(ledger, one, lot)
        failed += broken
        done += len(lot)
        took = monotonic() - began
        print(f"{station.name}: {len(lot)} cases in {took:.1f} s, {done} in all, {len(failed)} failed", flush=True)  # noqa: T201
        for line in broken:
            print(f"  {line}")  # noqa: T201
        world.gateway.forget()
        empty()
    assert failed == []


def _noted(ledger: Ledger, one: Cycle, lot: Sequence[Case]) -> list[str]:
    """Each case's entry; what failed, each with how to try it again."""
    mates = [f"{name}: {found}" for name, found in one.problems.items() if name not in CORPUS]
    broken = []
    for case in lot:
        ended = one.states.get(case.payload.name, "lost")
        why = "; ".join([*one.problems.get(case.payload.name, []), *mates[:1]])
        ledger.note(LAYER, case.name, passed=not why, why=why, **{ended: 1})
        if why:
            broken.append(f"{case.name}: {why}\n    again: POISON={shlex.quote(case.name)} make prove LAYER=poison")
    return broken


def _least_proved(ledger: Ledger) -> Iterator[list[Case]]:
    """Lots of cases of one station: what failed last comes first, then what was proved least often.

    POISON names a case, or how several begin.
    """
    cases = {one.name: one for one in _cases()}
    wanted = begun(os.environ.get("POISON", ""), cases)
    together: dict[tuple[int, int, str], list[Case]] = {}
    for name, turn in ledger.turns(LAYER, wanted).items():
        one = cases[name]
        together.setdefault((turn, one.shift, one.station.name), []).append(one)
    for some in together.values():
        yield from _lots(some)


def _cases() -> Iterator[Case]:
    """All, in the order in which nobody has tried them yet: each payload is soon somewhere, to every station."""
    for shift, station in product(range(len(PLACES)), STATIONS.values()):
        placed = zip(CORPUS.values(), islice(cycled(PLACES), shift, None), strict=False)
        yield from (Case(station, place, payload, shift) for payload, place in placed)


def _lots(some: Sequence[Case]) -> Iterator[list[Case]]:
    lot: list[Case] = []
    for one in some:
        if lot and (len(lot) == TOGETHER or sum(each.payload.size for each in lot) + one.payload.size > BYTES):
            yield lot
            lot = []
        lot.append(one)
    if lot:
        yield lot
