"""What the judge says of a flow, and which repeats promise 5 allows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from redrive_service.sandbox.incident.incident import records_of
from redrive_service.sandbox.judge import Finding, Judgement, Offence, judge
from redrive_service.sandbox.shop.calls import calls_since
from tests.proof.dependencies.flow import Flow

#: Ends of an attempt whose letter arrived, after which it may go again.
_GOES_AGAIN = ("unknown", "returned")


@dataclass(frozen=True, slots=True)
class Verdict:
    """`broken`: in sentences; `repeats`: letters that arrived again, each after an attempt of unknown end."""

    judgement: Judgement
    broken: tuple[str, ...]
    repeats: int


def verdict(flow: Flow, since: int) -> Verdict:
    """On everything that was called since that call, when all letters of the flow are finished."""
    books = records_of(flow.letters())
    calls = list(calls_since(flow.servers.endpoint, since))
    judgement = judge(flow.experiment(), calls, flow.consumed(), books)
    arrived = _arrivals(calls, flow.source)
    attempts = flow.attempts()
    unfounded = [one for one in judgement.findings if not _is_allowed(one, arrived, attempts)]
    return Verdict(
        judgement,
        tuple(f"{flow.name}: {one.offence}: {one.sentence}" for one in unfounded),
        sum(one.offence is Offence.DUPLICATE for one in judgement.findings) - len(unfounded),
    )


def sends_between(flow: Flow, since: int, began: float, ended: float) -> int:
    """Letters of ours that the source took between two moments, by the clock of the local SQS."""
    return sum(
        entry["accepted"]
        for call in calls_since(flow.servers.endpoint, since)
        if call["queue"] == flow.source and began <= call["at"] < ended
        for entry in call["sent"]
    )


def moments(flow: Flow, since: int) -> Iterator[float]:
    for call in calls_since(flow.servers.endpoint, since):
        if call["queue"] == flow.source:
            yield from (call["at"] for entry in call["sent"] if entry["accepted"])


def _arrivals(calls: Iterable[Mapping[str, Any]], source: str) -> dict[str, list[dict[str, str]]]:
    """The attributes of what the source took of ours and did not swallow, by event, in order."""
    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    for call in calls:
        if call["queue"] == source:
            for entry in call["sent"]:
                if entry["accepted"] and not entry["duplicate"]:
                    found[entry["attributes"]["event_id"]].append(entry["attributes"])
    return found


def _is_allowed(finding: Finding, arrived: Mapping[str, list[dict[str, str]]], attempts: Mapping[str, str]) -> bool:
    """Promise 5: a repeat follows attempts of unknown end, is counted, and bears the same redrive id and key."""
    if finding.offence is not Offence.DUPLICATE:
        return False
    marks = [one["RedriveId"] for one in arrived[finding.event]]
    keys = {(one["RedriveId"].rpartition(":")[0], one["IdempotencyKey"]) for one in arrived[finding.event]}
    ended = [attempts[mark] for mark in marks[:-1]]
    return len(keys) == 1 and len(set(marks)) == len(marks) and all(one in _GOES_AGAIN for one in ended)
