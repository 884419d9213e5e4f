"""A target that dies and lives again, and what is to be seen of it: in the queue's call log, and in the tables."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django_celery_beat.models import IntervalSchedule

from reprocessing.models import Attempt, Breaker, DeadLetterQueue, Letter
from tests.beside import Beside
from tests.conditions import eventually
from tests.reprocessing.pipeline.bench import Workbench
from tests.stories.scene import Witness, lettered, published

#: A plan of the local SQS for each way to die: it says no, or it says nothing.
REFUSES = {"kind": "error", "status": 403, "code": "AccessDenied", "message": "not today"}
FAILS = {"kind": "error", "status": 500, "code": "InternalError", "message": "not well"}
DROPS = {"kind": "drop"}
HANGS = {"kind": "hang"}


def bury(bench: Workbench, numbers: range, *, keys: int) -> None:
    """Letters in the dlq, each with its event, its key and its place among those of the same key."""
    published(
        bench.sqs, bench.dlq_url,
        (lettered(f"{one}", key=f"account-{one % keys}", n=f"{one // keys}", event=f"{one}") for one in numbers),
    )  # fmt: skip


def give_to_beat(bench: Workbench) -> None:
    """From now on beat captures and redrives the dlq, every second."""
    every, _ = IntervalSchedule.objects.get_or_create(every=1, period="seconds")
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(mode="automatic", interval=every, next_poll_at=None)


def delivered(bench: Workbench) -> int:
    return Letter.objects.filter(dlq=bench.dlq, state="delivered").count()


def await_delivered(bench: Workbench, letters: int, *, within: float) -> None:
    eventually(lambda: delivered(bench) >= letters, within=within, every=0.05)


@contextmanager
def dead(bench: Workbench, fault: dict[str, Any]) -> Iterator[None]:
    """The source takes nothing, in this way; then it is well again."""
    _plan("PUT", [{**fault, "action": "SendMessageBatch", "queue": bench.source_url.rpartition("/")[2]}])
    try:
        yield
    finally:
        _plan("DELETE", None)


def _plan(method: str, faults: list[dict[str, Any]] | None) -> None:
    asked = urllib.request.Request(
        f"{os.environ['AWS_ENDPOINT_URL_SQS']}/_sandbox/faults", method=method,
        data=None if faults is None else json.dumps(faults).encode(),
    )  # fmt: skip
    with urllib.request.urlopen(asked, timeout=30):
        pass


@dataclass(frozen=True, slots=True)
class Sent:
    """One letter in one request to the source: `mark` is its redrive id with the number of the attempt."""

    at: float
    mark: str
    taken: bool
    call: int


def sends(bench: Workbench, witness: Witness) -> list[Sent]:
    """Every letter of ours in every request that reached the source, in their order."""
    name = bench.source_url.rpartition("/")[2]
    return [
        Sent(call["at"], entry["attributes"]["RedriveId"], entry["accepted"], call["n"])
        for call in witness.calls() if call["queue"] == name
        for entry in call["sent"] if "RedriveId" in entry["attributes"]
    ]  # fmt: skip


def marks(bench: Workbench, **which: object) -> dict[str, Attempt]:
    found = Attempt.objects.filter(letter__dlq=bench.dlq, **which).select_related("letter").order_by("id")
    return {f"{one.letter.public_id}:{one.no}": one for one in found}


class Unsettled(Beside):
    """Counts a target's letters that are sent and not settled, again and again; `most` at a time."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__("count of what is not settled")
        self.most = self.looks = 0
        self._open = Attempt.objects.filter(target=bench.target, closed_at=None)

    def go_on(self) -> None:
        while not self.over.wait(0.02):
            self.most, self.looks = max(self.most, self._open.count()), self.looks + 1


def breaker(bench: Workbench) -> Breaker:
    return Breaker.objects.get(target=bench.target, rate_class=None)


def await_state(bench: Workbench, *states: str, within: float) -> Breaker:
    found = Breaker.objects.filter(target=bench.target, state__in=states)
    return eventually(lambda: list(found.all()), within=within, every=0.01)[0]


def most_at_a_time(spans: list[tuple[datetime, datetime]]) -> int:
    """The most spans that overlap at any moment; one that ends when another begins does not overlap it."""
    now = most = 0
    for _, step in sorted([(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans]):
        now += step
        most = max(most, now)
    return most
