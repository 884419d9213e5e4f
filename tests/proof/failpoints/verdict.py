"""What a trial has shown: every broken promise in a sentence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from redrive_service.sandbox.incident.incident import records_of
from redrive_service.sandbox.judge import Experiment, Finding, Judgement, Offence, judge
from tests.proof.failpoints.cells import Cell
from tests.proof.failpoints.world import BURST, GROUP, RATE, TRIES, World

Call = Mapping[str, Any]


def judged(world: World, calls: Sequence[Call], consumed: Sequence[Mapping[str, Any]]) -> Judgement:
    """The independent judge's word, from the call log, the consumer's log and the service's books."""
    experiment = Experiment(
        sources=frozenset({world.source}), dlqs=frozenset({world.dlq}), identity="event", ordering="key", sequence="n",
        advance="settled" if world.shape.absence else "accepted", rate=RATE, burst=BURST, fifo=world.shape.fifo,
        max_attempts=None if world.shape.trouble == "outage" else TRIES,  # it cannot tell what an outage spares
    )  # fmt: skip
    return judge(experiment, calls, consumed, records_of(world.states()))


def broken(cell: Cell, world: World, calls: Sequence[Call], judgement: Judgement) -> Iterator[str]:
    """The promises that were broken, but for what this fault may repeat, and for the one case that nobody can fence."""
    counts = judgement.counts()
    if counts["letters"] != world.letters or counts["delivered"] + counts["parked"] != world.letters:
        yield f"not every one of {world.letters} letters is delivered or parked: {counts}"
    yield from (f"{number} {kind}" for kind, number in world.open().items() if number)
    sends = list(_sends(world, calls))
    late = _late(sends) if cell.is_late else set()
    if len({call for call, _ in late}) > 1:
        yield f"{len({call for call, _ in late})} requests were late"
    lanes = {event.partition(".")[0] for _, event in late}
    found = [one for one in judgement.findings if one.event.partition(".")[0] not in lanes]
    repeated = {one.event for one in found if one.offence is Offence.DUPLICATE}
    if len(repeated) > (GROUP if cell.may_repeat else 0):
        yield f"{len(repeated)} letters were sent twice: {_told(found)}"
    if others := [one for one in found if one.offence is not Offence.DUPLICATE]:
        yield _told(others)
    yield from _under_several_ids(sends)


def _told(found: Sequence[Finding]) -> str:
    return " ".join(f"[{one.offence}] {one.sentence}" for one in found[:8])


def _sends(world: World, calls: Sequence[Call]) -> Iterator[tuple[int, str, str, int]]:
    """Call, event, redrive id and attempt of everything that was sent to the source for a letter."""
    for call in calls:
        if call["queue"] != world.source:
            continue
        for entry in call["sent"]:
            mark = entry["attributes"].get("RedriveId")
            if mark and entry["accepted"]:
                letter, _, attempt = mark.rpartition(":")
                yield call["n"], entry["attributes"]["event"], letter, int(attempt)


def _late(sends: Sequence[tuple[int, str, str, int]]) -> set[tuple[int, str]]:
    """Call and event of attempts that reached the queue after a later one of the same letter."""
    newest: dict[str, int] = defaultdict(int)
    late = set()
    for call, event, letter, attempt in sends:
        if attempt < newest[letter]:
            late.add((call, event))
        newest[letter] = max(newest[letter], attempt)
    return late


def _under_several_ids(sends: Sequence[tuple[int, str, str, int]]) -> Iterator[str]:
    ids: dict[str, set[str]] = defaultdict(set)
    for _, event, letter, _ in sends:
        ids[event].add(letter)
    several = [event for event, letters in ids.items() if len(letters) > 1]
    if several:
        yield f"sent under several redrive ids: {several[:5]}"
