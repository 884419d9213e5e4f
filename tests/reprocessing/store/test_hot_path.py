"""The cost of a statement on the hot path depends only on the letters it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import pytest
from celery.app.task import Task
from django.core.management import call_command

from reprocessing import tasks
from reprocessing.domain.replay.verdicts import Refused
from reprocessing.domain.safety.wave_progression import SIZES
from reprocessing.models import Breaker, DeadLetterQueue, DlqCopy, Wave
from reprocessing.pipeline.maintenance import recover
from reprocessing.pipeline.replay import send_batches
from reprocessing.store.replay.intent import IntendedSend
from reprocessing.store.safety.breaker_window import ATTEMPTS_READ
from tests.reprocessing.pipeline.bench import BRISK, Outcomes, Workbench
from tests.reprocessing.store.explained import Explained, explained
from tests.reprocessing.store.seeded_letters import (
    automatic_run,
    nothing_is_vacuumed,
    seed,
    with_statistics,
    without_statistics,
)
from tests.stories.scene import lettered, published

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak, pytest.mark.timeout(900)]

#: Letters of the run. A table of the lesser number is small enough to be scanned where all of it is asked about.
FEW: Final = 5_000
MANY: Final = 100_000
#: New letters of a turn, and how many may be sent and not settled.
AT_A_TIME: Final = 60
#: Shared buffers of one execution, whatever there is in the tables: for each letter that it is asked for, and in any
#: case. The most for a letter takes the intent: a lane, a letter, a claim, an attempt, and the indexes of each.
A_LETTER: Final = 135
IN_ANY_CASE: Final = 600
#: These look back from the newest attempt, whatever they are asked for, and read about three buffers for two attempts.
LOOKS_BACK: Final = {
    "store.safety.breaker_window.windows": 3 * ATTEMPTS_READ // 2,  # of a breaker
    "store.safety.waves._counts": 1_500,  # a thousand, of a wave
    "store.outcomes.reports.unmatched_attempts": 20 * AT_A_TIME,  # what is sent and not settled
    "store.outcomes.evidence.presumable_attempts": 20 * AT_A_TIME,  # the same
}
#: Without these nothing would be measured.
HAPPENS: Final = {
    "store.replay.intent.commit", "store.replay.settlement.presume_delivered", "store.capture.returned_messages.record",
    "store.aws.aws_redrive_checks.dlqs_to_ask_about",
}  # fmt: skip
#: What they read is bounded otherwise.
EXEMPT: Final = {
    "store.capture.capture_lease.mark_finished_copies": "a thousand held copies, whatever there is",
    "store.safety.redrive_loops.pause_looping_runs": "20,000 letters at most, of a run that looks like a loop",
    "store.capture.capture_lease.count_held": "counts held copies, which the custody limit bounds; once a capture",
    "store.capture.capture_lease.count_invisible": "the same, where a capture ran dry and SQS has some in flight",
    "the test": "asked by no service",
}
#: Until the first ANALYZE, a minute after the first letters, the planner sorts the due lanes of a run to lease some,
#: and reads dead entries of leased ones.
EXEMPT_WITHOUT_STATISTICS: Final = {
    "store.ordering.lanes.lease",
    "store.ordering.lanes.hint",
    "store.replay.task_hints.next_hint_round",
}


@pytest.mark.parametrize("letters", [pytest.param(FEW, marks=pytest.mark.long), MANY])
def test_the_reads_of_a_statement_do_not_grow_with_the_run(letters: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Task, "apply_async", lambda *_, **__: None)
    call_command("flush", verbosity=0, interactive=False)  # dead index entries of earlier tests would be read, too
    with nothing_is_vacuumed():
        bench = _bench()
        run = automatic_run(bench)
        without_statistics()
        seed(bench, run, 1, letters)
        without = _too_much(_turn(bench, 1), letters, but=EXEMPT_WITHOUT_STATISTICS)
        with_statistics()
        assert (without, _too_much(_turn(bench, 2), letters)) == ({}, {})


def test_the_largest_wave_with_a_size_is_read_as_a_whole() -> None:
    """The statement that counts a wave's attempts stops at a hundred (store/safety/send_limits.py)."""
    assert max(size for size in SIZES if size is not None) == 100


def _bench() -> Workbench:
    keys = {"ordering_key": "attribute:key", "sequence": "attribute:n", "idempotency_key": "attribute:n"}
    bench = Workbench(
        conf=replace(BRISK, max_unsettled=AT_A_TIME), fields={"mode": "automatic", "waves": True, **keys}
    )  # fmt: skip
    bench.judge_by_absence(window=0)
    return bench


def _too_much(
    found: Sequence[Explained], letters: int, *, but: frozenset[str] | set[str] = frozenset()
) -> dict[str, str]:
    """Return the statements that read too much, or scan a large table."""
    return {
        f"{one.name}: {one.text[:100]}": f"{one.buffers} buffers for {one.letters}, scans {sorted(one.scanned)}"
        for one in found
        if one.name not in EXEMPT and one.name not in but
        if (letters == MANY and one.scanned)
        or one.buffers > LOOKS_BACK.get(one.name, IN_ANY_CASE) + A_LETTER * one.letters
    }


def _turn(bench: Workbench, number: int) -> list[Explained]:
    """Run a turn of a DLQ, from capture to sweep, and return its statements."""
    with explained() as found:
        names = (f"{number}-{n}" for n in range(AT_A_TIME))
        published(bench.sqs, bench.dlq_url, (lettered(one, key=one, n=one) for one in names))
        bench.capture()
        _show_again(bench, 10)
        DeadLetterQueue.objects.update(aws_redrive_answered_at=None, aws_redrive_asked_at=None)  # AWS is to be asked
        tasks.tick()
        bench.replay(seconds=30)
        for one in bench.delivered()[:10]:
            bench.come_back(one)
        _settled(bench)
        with _failing(AT_A_TIME // 2):
            bench.replay(seconds=30)
        tasks.tick()
        Breaker.objects.filter(target=bench.target).update(state="half_open", retry_at=None, canary_until=None)
        bench.replay(seconds=3)
        recover.sweep_all(conf=bench.conf)
        bench.delivered()
        _settled(bench)
        Breaker.objects.filter(target=bench.target).update(
            state="closed", retry_at=None, canary_until=None, failing_since=None
        )  # fmt: skip
        Wave.objects.filter(settled_at=None).update(size=None)
    assert {one.name for one in found} >= HAPPENS
    return found


def _settled(bench: Workbench) -> None:
    for _ in range(2):
        bench.capture()
        bench.promote()


def _show_again(bench: Workbench, some: int) -> None:
    for copy in DlqCopy.objects.filter(dlq=bench.dlq, state="held").exclude(handle="none")[:some]:
        bench.sqs.change_message_visibility(
            QueueUrl=bench.dlq_url, ReceiptHandle=copy.handle, VisibilityTimeout=0
        )  # fmt: skip


@contextmanager
def _failing(first: int) -> Iterator[None]:
    """The target refuses the first so many letters."""
    post, left = send_batches.letters, [first]

    def refuse(intended: Sequence[IntendedSend], *rest: Any, **options: Any) -> Outcomes:  # noqa: ANN401  # those of deliver
        refused = intended[: left[0]]
        left[0] -= len(refused)
        outcomes: Outcomes = {one.attempt_id: Refused("Busy", "not now") for one in refused}
        others = intended[len(refused) :]
        return outcomes | (post(others, *rest, **options) if others else {})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(send_batches, "letters", refuse)
        yield
