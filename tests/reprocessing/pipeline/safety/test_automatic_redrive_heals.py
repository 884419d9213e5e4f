"""Automatic redrive outlasts an outage: nothing is parked, and no person is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from django.db.models import F

from reprocessing.domain.replay.verdicts import Refused
from reprocessing.models import Attempt, Breaker, Letter, Run, Wave
from reprocessing.pipeline.maintenance import recover
from reprocessing.pipeline.replay import send_batches
from reprocessing.store.maintenance import counters
from reprocessing.store.replay.intent import IntendedSend
from reprocessing.store.replay.settlement import presume_delivered
from reprocessing.store.runs import run_transitions
from tests.reprocessing.pipeline.bench import Clock, Outcomes, Workbench
from tests.stories.scene import lettered, published

pytestmark = [pytest.mark.soak, pytest.mark.django_db(transaction=True)]

AUTOMATIC: dict[str, Any] = {
    "mode": "automatic", "waves": True, "max_attempts": 2,
    "backoff_base": 1, "backoff_cap": 1, "backoff_jitter": "none",
}  # fmt: skip
HOUR = 3_600.0
Down = Callable[[IntendedSend], bool]


@contextmanager
def failing(down: Down) -> Iterator[list[IntendedSend]]:
    """The target answers 503 to letters that are `down`. Yield all letters that it gets."""
    post, sent = send_batches.letters, list[IntendedSend]()

    def answer(intended: Sequence[IntendedSend], *rest: Any, **options: Any) -> Outcomes:  # noqa: ANN401  those of deliver
        sent.extend(intended)
        lost = [letter for letter in intended if down(letter)]
        taken = [letter for letter in intended if letter not in lost]
        refused: Outcomes = {letter.attempt_id: Refused("503", "Service Unavailable") for letter in lost}
        return refused | (post(taken, *rest, **options) if taken else {})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(send_batches, "letters", answer)
        yield sent


def automatic(letters: int, **fields: object) -> Workbench:
    bench = Workbench(fields={**AUTOMATIC, **fields})
    published(bench.sqs, bench.dlq_url, (lettered(f"{n}") for n in range(letters)))
    bench.capture()
    return bench


def live_through(bench: Workbench, clock: Clock, seconds: float, *, step: float = 30) -> None:
    for _ in range(int(seconds / step)):
        bench.replay()
        recover.sweep_service()
        clock.advance(step)


def counted() -> set[int]:
    """The numbers of attempts that count, of unfinished messages."""
    found = Letter.objects.exclude(state="delivered").annotate(
        n=F("attempts") - F("attempts_before_release") - F("spared")
    )
    return set(found.values_list("n", flat=True))


@pytest.mark.parametrize("well_before", [0, 1, 15], ids=["the first wave", "the wave of ten", "the last wave"])
def test_an_outage_parks_nothing_and_needs_no_person(clock: Clock, well_before: int) -> None:
    bench = automatic(130)
    fell = list[IntendedSend]()

    def down(letter: IntendedSend) -> bool:
        fell.append(letter)
        return len(fell) > well_before

    with failing(down):
        live_through(bench, clock, 1_200)
    assert Letter.objects.filter(state="delivered").count() == well_before
    assert counted() == {0}
    live_through(bench, clock, 1_500)
    assert set(bench.states().values()) == {"delivered"}
    assert len(bench.delivered()) == 130
    assert (Run.objects.get().state, Breaker.objects.get().state) == ("running", "closed")
    failed = Attempt.objects.filter(outcome="refused")
    assert (failed.count(), failed.filter(spared=False).count()) == (len(fell) - well_before, 0)


def test_while_a_target_is_down_each_cooldown_sends_one_canary(clock: Clock) -> None:
    bench = automatic(30)
    with failing(lambda _: True) as sent:
        bench.replay()
        bench.replay()
        assert len(sent) == 1
        live_through(bench, clock, 1_200)
    assert len(sent) == 6  # rests of 30, 60, 120, 240, 480 s, and 600 s from then on
    assert len({letter.letter_id for letter in sent}) == 6  # each another message
    assert set(Wave.objects.values_list("size", flat=True)) == {1}
    clock.advance(600)
    bench.replay()
    assert list(Wave.objects.filter(size__gt=1).values_list("size", "failed")) == [(10, 0), (100, None)]


def test_a_target_that_stays_down_pauses_the_run(clock: Clock) -> None:
    bench = automatic(20, give_up_after=2 * HOUR)
    with failing(lambda _: True):
        live_through(bench, clock, 2 * HOUR - 60)
        assert Run.objects.get().state == "running"
        live_through(bench, clock, HOUR, step=60)
    run = Run.objects.get()
    assert (run.state, run.stopped_by) == ("paused", "the service")
    assert run.why.startswith(f"No message to {bench.target} succeeded: ")
    assert run.why.endswith(" keys; the last failure: 503: Service Unavailable.")
    assert counted() == {0}
    run_transitions.resume(run.pk, by="ann", reason="mended")
    live_through(bench, clock, 1_800)
    assert set(bench.states().values()) == {"delivered"}


@pytest.mark.long
def test_a_resumed_run_gets_the_whole_time_again(clock: Clock) -> None:
    bench = automatic(20, give_up_after=2 * HOUR)
    with failing(lambda _: True):
        live_through(bench, clock, 3 * HOUR, step=60)
        run_transitions.resume(Run.objects.get().pk, by="ann", reason="I looked")
        live_through(bench, clock, HOUR, step=60)
        assert Run.objects.get().state == "running"


def test_a_message_that_fails_while_others_succeed_uses_its_attempts(clock: Clock) -> None:
    bench = automatic(40)
    poison = Letter.objects.order_by("id").first()
    assert poison is not None
    with failing(lambda letter: letter.letter_id == poison.pk) as sent:
        live_through(bench, clock, 900)
    assert (bench.states()[bytes(poison.payload.body).decode()], Run.objects.get().state) == ("parked", "running")
    assert Letter.objects.filter(state="delivered").count() == 39
    tried = sum(letter.letter_id == poison.pk for letter in sent)
    assert tried - Attempt.objects.filter(spared=True).count() == AUTOMATIC["max_attempts"]


def test_spent_messages_open_the_breaker_if_nothing_succeeds(clock: Clock) -> None:
    bench = automatic(2, waves=False)
    with failing(lambda _: True):
        live_through(bench, clock, 300)
        assert (Breaker.objects.get().state, counted()) == ("open", {0})
    live_through(bench, clock, 1_200)
    assert set(bench.states().values()) == {"delivered"}


def test_a_limit_of_one_attempt_outlasts_an_outage(clock: Clock) -> None:
    bench = automatic(30, max_attempts=1, waves=False)
    with failing(lambda _: True):
        live_through(bench, clock, 600)
    assert not Letter.objects.filter(state="parked").exists()
    live_through(bench, clock, 1_500)
    assert set(bench.states().values()) == {"delivered"}


def test_returns_after_the_breaker_opened_do_not_count(clock: Clock) -> None:
    bench = automatic(8, waves=False, max_attempts=1)
    bench.judge_by_absence(window=600)
    bench.replay()
    sent = bench.delivered()
    assert len(sent) == 8
    for message in sent:  # the first five open it
        bench.take_back(message)
    assert Breaker.objects.get().state == "open"
    assert (set(bench.states().values()), counted()) == ({"waiting"}, {0})


def test_failures_count_again_once_a_message_sent_after_them_turns_out_well(clock: Clock) -> None:
    bench = automatic(8, waves=False, max_attempts=1)
    bench.judge_by_absence(window=600)
    bench.replay()
    sent = {message["MessageId"]: message for message in bench.delivered()}
    *failing_ones, _, _, well = Attempt.objects.order_by("id")
    for attempt in failing_ones:
        bench.take_back(sent[attempt.sent_message_id or ""])
    fates = Letter.objects.filter(history__in=failing_ones).values_list("state", "reason", "attempts", "spared")
    assert list(fates.all()) == [("waiting", "", 1, 1)] * 5
    presume_delivered([well.pk])
    live_through(bench, clock, 300)
    assert list(fates.all()) == [("parked", "attempts_spent", 1, 0)] * 5


def test_a_failure_before_a_success_counts(clock: Clock) -> None:
    bench = automatic(7, waves=False)
    order = list(Letter.objects.order_by("id").values_list("pk", flat=True))
    with failing(lambda letter: letter.letter_id != order[1]):
        bench.replay()
    assert Breaker.objects.get().state == "open"
    spared = Attempt.objects.order_by("id").values_list("letter_id", "spared")
    assert list(spared) == [(letter, letter not in order[:2]) for letter in order]


def test_a_message_that_comes_back_again_and_again_is_parked(clock: Clock) -> None:
    bench = automatic(1, waves=False)
    Breaker.objects.update(threshold=1, canaries_to_close=1)
    for _ in range(8):
        live_through(bench, clock, 120, step=60)
        for message in bench.delivered():
            bench.come_back(message)
        bench.capture()
    assert (bench.letter().state, bench.letter().attempts) == ("parked", AUTOMATIC["max_attempts"])


def test_a_redrive_loop_pauses_the_run(clock: Clock) -> None:
    bench = automatic(12, waves=False)
    rounds = 0
    while Run.objects.get().state == "running" and rounds < 10:
        rounds += 1
        bench.replay()
        for message in bench.delivered():
            bench.sqs.send_message(QueueUrl=bench.dlq_url, MessageBody=message["Body"])  # a copy without its marks
        bench.capture()
        bench.capture()
        counters.fold_deltas()
        recover.sweep_service()
    run = Run.objects.get()
    assert (run.state, run.stopped_by) == ("paused", "the service")
    assert run.why.startswith("The DLQ refills with redriven messages: the bodies of 4")
    assert rounds == 5
    run_transitions.resume(run.pk, by="ann", reason="mended")
    recover.sweep_service()
    assert Run.objects.get().state == "running"
