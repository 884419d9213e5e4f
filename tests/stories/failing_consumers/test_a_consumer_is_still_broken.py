"""The consumer is as broken as it was: a run in waves finds out with few messages. A drain stops itself, beat rests."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from django.core.management import call_command

from reprocessing.models import Attempt, AuditEntry, Breaker, Letter, Run, Wave
from reprocessing.pipeline.runs import drain
from tests.race.abreast import elsewhere
from tests.reprocessing.pipeline.bench import Workbench
from tests.stories.consumer import Consumer
from tests.stories.scene import Witness, drained, hands, lettered, published

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.soak,
    pytest.mark.alone,
    pytest.mark.long,
    pytest.mark.timeout(300),
]

KEYS = 2_500
KEYED: dict[str, Any] = {"ordering_key": "attribute:key", "sequence": "attribute:n", "max_attempts": 9, "waves": True}
WHO: dict[str, Any] = {"by": "a test", "reason": "the consumer is mended", "confirm": True}


class Broken:
    """Handles so many letters, and no other one before it is mended."""

    def __init__(self, well: int) -> None:
        self._left, self._lock = well, threading.Lock()
        self.mended = threading.Event()

    def handles(self, _: dict[str, Any]) -> bool:
        with self._lock:
            self._left -= 1
            return self.mended.is_set() or self._left >= 0


def test_a_drain_stops_itself_after_eleven_letters_says_why_and_goes_on_when_it_is_told_to() -> None:
    letters = 5_000
    witness = Witness()
    bench = _bench(letters)
    broken = Broken(well=1)
    with Consumer(bench.source_url, broken.handles), elsewhere() as begin:
        tally = begin(lambda: drained(bench, "the-run")).result(timeout=120)
        _has_stopped_itself(letters)
        assert (tally.letters, tally.open) == (letters, letters - 1)
        broken.mended.set()
        call_command("resume_run", "the-run", **WHO)
        run = Run.objects.get()
        work = begin(lambda: drain.replay_run(run, hands(bench), on_progress=lambda _: None))
        tally = work.result(timeout=200)
    assert (tally.presumed, tally.open, Run.objects.get().state) == (letters, 0, "finished")
    _is_clean(witness, bench, letters)
    sizes = list(Wave.objects.order_by("no").values_list("size", flat=True))
    assert sizes == [1, 10, 1, 10, 100, None]


def _bench(letters: int) -> Workbench:
    """Letters in a dlq whose source is judged by absence, and buries what its consumer fails."""
    bench = Workbench(fields=KEYED)
    Breaker.objects.update(cooldown=1, cooldown_cap=2)
    published(
        bench.sqs, bench.dlq_url,
        (lettered(f"{n}", key=f"k{n % KEYS}", n=f"{n // KEYS}", event=f"{n}") for n in range(letters)),
    )  # fmt: skip
    policy = json.dumps({"deadLetterTargetArn": bench.dlq.arn, "maxReceiveCount": "1"})
    bench.sqs.set_queue_attributes(QueueUrl=bench.source_url, Attributes={"RedrivePolicy": policy})
    bench.judge_by_absence(window=1, visibility=1)
    return bench


def _has_stopped_itself(letters: int) -> None:
    run = Run.objects.get()
    assert (run.state, run.stopped_by) == ("paused", "the service")
    assert "of the 10 messages sent in its wave of 10 failed; 80 % of a wave must succeed" in run.why
    assert run.why.startswith("Paused automatically: ")
    assert list(AuditEntry.objects.filter(act="paused").values_list("by", "reason")) == [("the service", run.why)]
    assert Attempt.objects.values("letter").distinct().count() <= 11
    assert Letter.objects.count() == letters


def _is_clean(witness: Witness, bench: Workbench, letters: int) -> None:
    assert bench.left() == 0
    judgement = witness.judges(bench, identity="event", ordering="key", sequence="n", advance="settled", max_attempts=9)
    assert (judgement.findings, judgement.counts()["delivered"]) == ((), letters)
