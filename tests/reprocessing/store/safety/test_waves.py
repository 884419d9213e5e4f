"""A run's open wave is judged by its letters' outcomes: the next one opens, or the run pauses and says why."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from reprocessing.models import Attempt, AuditEntry, Breaker, DeadLetterQueue, Lane, Letter, RateClass, Run, Wave
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.safety import waves
from reprocessing.store.safety.paused_runs import PausedRun
from tests.race.abreast import behind, together
from tests.reprocessing.post import statements
from tests.reprocessing.store.stock import Stock

pytestmark = pytest.mark.django_db(transaction=True)

#: Size, sent and failed.
Judged = tuple[int | None, int | None, int | None]


class Waves(Stock):
    """A running run that goes in waves, at its beginning."""

    def __init__(self) -> None:
        super().__init__()
        Run.objects.filter(pk=self.run.pk).update(waves=True)
        self.begin()

    def begin(self) -> None:
        with transaction.atomic():
            waves.begin(self.run.pk)

    def look(self) -> list[PausedRun]:
        return waves.judge_waves([self.run.pk])

    def history(self) -> list[Judged]:
        return list(Wave.objects.filter(run=self.run).order_by("no").values_list("size", "sent", "failed"))

    def judged(self) -> list[Judged]:
        """Look, which stops nothing, and return the history."""
        assert self.look() == []
        return self.history()

    def go(self, outcomes: Sequence[str | None], **fields: Any) -> list[Attempt]:  # noqa: ANN401
        """Create letters and their first attempts in the open wave; None: the outcome is open."""
        made = list[Attempt]()
        for outcome in outcomes:
            lane = Lane.objects.create(dlq=self.dlq, source=self.source, key_hash=uuid.uuid4().bytes, run=self.run)
            letter = self.another_letter(lane=lane, state="awaiting" if outcome is None else "waiting")
            wave = Wave.objects.get(run=self.run, settled_at=None)
            made.append(self.tried(letter, outcome, wave=wave, **fields))
        return made

    def tried(self, letter: Letter, outcome: str | None, **fields: Any) -> Attempt:  # noqa: ANN401
        closed = {"outcome": outcome, "closed_at": database_now()} if outcome else {}
        values = {"lane": letter.lane, "run": self.run, "breaker": self.target.breakers.get(rate_class=None)}
        return self.attempt(letter, **{**values, "opened_at": database_now(), **closed, **fields})


@pytest.fixture
def stock() -> Waves:
    return Waves()


@pytest.fixture
def automatic(stock: Waves) -> Waves:
    Run.objects.update(kind="automatic")
    return stock


@pytest.fixture
def last(stock: Waves) -> Waves:
    Wave.objects.update(size=None)
    return stock


def _class(stock: Stock, name: str) -> Breaker:
    return Breaker.objects.create(target=stock.target, rate_class=RateClass.objects.create(name=name))


def _states() -> dict[str | None, str]:
    return dict(Breaker.objects.values_list("rate_class__name", "state"))


@pytest.mark.parametrize(
    ("outcome", "fields", "history"),
    [
        ("accepted", {}, [(1, 1, 0), (10, None, None)]),
        ("silent", {"counts_as_failure": False}, [(1, 1, 0), (10, None, None)]),
        ("returned", {}, [(1, 1, 1), (1, None, None)]),
        ("refused", {}, [(1, 1, 1), (1, None, None)]),
        ("accepted", {"returned_at": "2026-01-01T00:00Z"}, [(1, 1, 1), (1, None, None)]),
        (None, {}, [(1, None, None)]),
    ],
    ids=["success", "a late success", "failure", "poison", "returned after a success", "open"],
)
def test_the_outcome_of_its_letter_decides_what_follows_a_wave_of_one(
    stock: Waves, outcome: str | None, fields: dict[str, Any], history: list[Judged]
) -> None:
    stock.go([outcome], **fields)
    assert stock.judged() == history


def test_a_wave_waits_until_the_last_of_its_letters_is_settled(stock: Waves) -> None:
    (sent,) = stock.go([None])
    assert stock.judged() == [(1, None, None)]
    Attempt.objects.filter(pk=sent.pk).update(outcome="absent", closed_at=database_now())
    assert stock.judged() == [(1, 1, 0), (10, None, None)]


def test_three_failed_waves_of_one_letter_in_a_row_pause_the_run_with_an_audit_entry(stock: Waves) -> None:
    for _ in range(2):
        stock.go(["returned"])
        assert stock.look() == []
    stock.go(["returned"])
    (paused,) = stock.look()
    run = Run.objects.get()
    assert (run.state, run.stopped_by) == ("paused", "the service")
    assert run.why == "Paused automatically: 3 waves of one message failed in a row."
    assert (paused.run_id, paused.name, paused.why) == (run.pk, run.name, run.why)
    review = AuditEntry.objects.get(run=run)
    assert (review.act, review.by) == ("paused", "the service")
    assert (review.before, review.after) == ({"state": "running"}, {"state": "paused"})
    assert stock.history() == [(1, 1, 1)] * 3


def test_a_failed_wave_of_ten_stops_as_soon_as_it_cannot_succeed(stock: Waves) -> None:
    stock.go(["accepted"])
    stock.look()
    stock.go(["returned", "returned", None])
    assert stock.look() == []
    stock.go(["unknown"], counts_as_failure=True)
    (paused,) = stock.look()
    assert "3 of the 4 messages sent in its wave of 10 failed; 80 % of a wave must succeed" in paused.why
    assert stock.history() == [(1, 1, 0), (10, 4, 3)]


@pytest.mark.parametrize(("then", "verdict"), [("accepted", (10, None, None)), ("refused", (1, None, None))])
def test_a_letter_that_was_not_sent_is_judged_by_its_next_attempt(stock: Waves, then: str, verdict: Judged) -> None:
    (attempt,) = stock.go(["not_sent"])
    assert stock.judged() == [(1, None, None)]
    stock.tried(attempt.letter, then, no=2)
    assert stock.judged()[-1] == verdict


def _ended(attempt: Attempt, **fields: str) -> None:
    Letter.objects.filter(pk=attempt.letter_id).update(finished_at=database_now(), **fields)


@pytest.mark.parametrize(
    ("outcome", "happens"),
    [
        pytest.param("not_sent", lambda _, sent: _ended(sent, state="discarded"), id="is discarded"),
        pytest.param("unknown", lambda stock, sent: stock.another_letter(lane=sent.lane, sequence="0"), id="is second"),
        pytest.param(
            "unknown", lambda _, sent: Lane.objects.filter(pk=sent.lane_id).update(phase="held"), id="is held"
        ),
        pytest.param("silent", lambda _, sent: _ended(sent, state="parked", reason="no_answer"), id="is parked"),
    ],
)
def test_a_letter_without_an_outcome_is_silent_when_it(stock: Waves, outcome: str, happens: Any) -> None:  # noqa: ANN401
    (attempt,) = stock.go([outcome])
    assert stock.judged() == [(1, None, None)]
    happens(stock, attempt)
    assert stock.judged() == [(1, 1, 0), (1, None, None)]


def test_a_letter_that_rests_because_its_target_asked_for_it_is_waited_for(stock: Waves) -> None:
    (attempt,) = stock.go(["not_sent"])
    Letter.objects.filter(pk=attempt.letter_id).update(due_at=database_now() + timedelta(days=1), released_by="ann")
    assert stock.judged() == [(1, None, None)]


@pytest.mark.soak
def test_the_last_wave_stops_when_too_many_of_the_last_hundred_failed(last: Waves) -> None:
    last.go(["accepted"] * 60 + ["refused"] * 20 + ["accepted"] * 20)
    assert last.look() == []
    last.go([None, "refused"])
    (paused,) = last.look()
    assert "21 of its last 100 messages failed" in paused.why
    assert last.history() == [(None, 102, 21)]


def test_a_failed_wave_of_an_automatic_run_opens_the_breakers_of_its_failures_and_begins_anew(automatic: Waves) -> None:
    vip, slow = _class(automatic, "vip"), _class(automatic, "slow")
    Wave.objects.update(size=10)
    automatic.go(["accepted"] * 2)
    for outcome, breaker, epoch in (("refused", vip, 0), ("refused", slow, 1), ("accepted", slow, 0)):
        automatic.go([outcome] * 2, counts_as_failure=outcome == "refused", breaker=breaker, breaker_epoch=epoch)
    assert automatic.judged() == [(10, 8, 4), (1, None, None)]
    assert (_states(), Run.objects.get().state) == ({None: "closed", "vip": "open", "slow": "closed"}, "running")


@pytest.mark.parametrize(
    ("size", "poison", "failed", "state"),
    [(1, 1, 0, "closed"), (10, 3, 0, "closed"), (10, 2, 1, "closed"), (10, 6, 2, "open"), (None, 21, 0, "closed")],
)
def test_poison_letters_of_an_automatic_run_open_no_breaker_unless_too_many_others_failed(
    automatic: Waves, size: int | None, poison: int, failed: int, state: str
) -> None:
    Wave.objects.update(size=size)
    automatic.go(["refused"] * failed, counts_as_failure=True)
    automatic.go(["refused"] * poison)
    assert automatic.judged() == [(size, poison + failed, poison + failed), (1, None, None)]
    assert (Breaker.objects.get().state, Run.objects.get().state) == (state, "running")


def test_the_third_poison_letter_in_a_row_opens_the_breaker(automatic: Waves) -> None:
    states = []
    for _ in range(3):
        automatic.go(["refused"])
        automatic.look()
        states.append(Breaker.objects.get().state)
    assert states == ["closed", "closed", "open"]


def test_a_failed_wave_opens_no_breaker_at_which_only_poison_failed(automatic: Waves) -> None:
    vip = _class(automatic, "vip")
    Wave.objects.update(size=10)
    automatic.go(["refused"] * 3, counts_as_failure=True)
    automatic.go(["refused"], breaker=vip)
    automatic.look()
    assert _states() == {None: "open", "vip": "closed"}


@pytest.mark.soak
def test_failures_after_which_the_breaker_opened_do_not_stop_the_last_wave(last: Waves) -> None:
    last.go(["refused"] * 30, counts_as_failure=True)
    Breaker.objects.update(state="open", retry_at=database_now(), current_cooldown=30, epoch=1)
    assert last.look() == []
    Breaker.objects.update(state="closed", retry_at=None, failing_since=None, epoch=2)
    last.go(["refused"] * 30, counts_as_failure=True, breaker_epoch=2)
    assert len(last.look()) == 1


@pytest.mark.soak
def test_attempts_after_the_newest_settled_one_are_not_counted_yet(last: Waves) -> None:
    last.go(["refused"] * 5 + ["accepted"] * 14 + [None] * 60)
    assert last.look() == []
    last.go(["refused"])
    assert last.look() == []


def test_a_look_costs_one_statement_when_nothing_follows(stock: Waves) -> None:
    stock.go([None])
    with statements() as sent:
        stock.look()
    assert len(sent) == 1


@pytest.mark.parametrize("state", ["planned", "paused", "aborted", "finished"])
def test_a_run_that_is_not_running_is_left_alone(stock: Waves, state: str) -> None:
    stock.go(["accepted"])
    Run.objects.filter(pk=stock.run.pk).update(state=state, why="w", stopped_by="s", finished_at=database_now())
    assert stock.judged() == [(1, None, None)]


def test_simultaneous_looks_settle_a_wave_once(stock: Waves) -> None:
    stock.go(["accepted"])
    together([stock.look] * 4)
    assert stock.history() == [(1, 1, 0), (10, None, None)]


@pytest.mark.soak
def test_simultaneous_looks_stop_a_run_once(last: Waves) -> None:
    last.go(["refused"] * 20)
    paused = together([last.look] * 4)
    assert sum(len(some) for some in paused) == 1
    assert AuditEntry.objects.filter(run=last.run, act="paused").count() == 1


@pytest.mark.soak
def test_a_look_waits_for_an_intent_and_counts_what_that_sent(last: Waves) -> None:
    last.go(["refused"] * 20)

    def intend() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT id FROM redrive_wave WHERE settled_at IS NULL FOR UPDATE")
        last.go(["accepted"] * 80)

    assert behind(intend, last.look) == (None, [])
    assert last.history() == [(None, None, None)]


def test_a_run_that_begins_again_begins_with_one_letter(stock: Waves) -> None:
    stock.go(["accepted"])
    stock.look()
    stock.go(["accepted", "refused", None])
    stock.begin()
    assert stock.history() == [(1, 1, 0), (10, 3, 1), (1, None, None)]


def test_a_run_without_waves_gets_none(stock: Waves) -> None:
    Run.objects.filter(pk=stock.run.pk).update(waves=False)
    stock.begin()
    assert stock.judged() == [(1, 0, 0)]


def test_after_a_stop_failed_waves_in_a_row_are_counted_anew(stock: Waves) -> None:
    for paused in (0, 0, 1, 0, 0, 1):
        stock.go(["returned"])
        assert len(stock.look()) == paused
        if paused:
            Run.objects.filter(pk=stock.run.pk).update(state="running")
            stock.begin()


@pytest.mark.parametrize(
    ("unfinished", "sent", "anew"), [(True, True, False), (False, False, False), (False, True, True)]
)
def test_waves_begin_anew_when_no_letter_is_left_and_one_was_sent(
    stock: Waves, unfinished: bool, sent: bool, anew: bool
) -> None:
    if sent:
        stock.go(["accepted"])
    if not unfinished:
        Letter.objects.filter(run=stock.run).update(state="delivered", finished_at=database_now())
    with transaction.atomic():
        waves.restart_when_empty(stock.run.pk)
    assert len(stock.history()) == (2 if anew else 1)


def test_a_sweep_looks_where_a_look_was_lost(stock: Waves) -> None:
    stock.go(["accepted"])
    waves.judge_all_waves()
    assert stock.history() == [(1, 1, 0), (10, None, None)]


def test_the_dlq_says_which_share_of_a_wave_has_to_succeed(stock: Waves) -> None:
    DeadLetterQueue.objects.filter(pk=stock.dlq.pk).update(wave_success=0)
    stock.go(["returned"])
    assert stock.judged() == [(1, 1, 1), (10, None, None)]
