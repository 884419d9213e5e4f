from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from reprocessing.models import Attempt, Breaker, DeadLetterQueue, Lane, Letter, Run, Target
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.safety.failing_targets import give_up_on_failing_targets
from reprocessing.store.safety.stops import stop
from tests.reprocessing.store.safety.history import History
from tests.reprocessing.store.stock import NOW

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)


def _dead(fates: str = "xxx", *, others: int = 1) -> History:
    """For two days nothing succeeded: one message failed so often, and so many others wait."""
    history = History()
    history.tried(fates, history.letter)
    history.more_letters(others)
    Breaker.objects.update(state="open", retry_at=database_now(), failing_since=database_now() - 2 * DAY)
    return history


def _follows() -> str:
    found = give_up_on_failing_targets()
    parked = Letter.objects.filter(state="parked").exists()
    return "paused" if found.paused else "parked" if parked else "tried on"


def _lane_to(history: History, breaker: Breaker | None, phase: str = "ready") -> None:
    Lane.objects.create(
        dlq=history.dlq, source=history.source, key_hash=b"o" * 32, run=history.run, phase=phase, due_at=NOW,
        breaker=breaker,
    )  # fmt: skip


def _failed(history: History, letter: Letter, *ago: timedelta) -> None:
    for before in ago:
        history.tried("x", letter, opened_at=database_now() - before, closed_at=database_now() - before)


def _another(history: History, **fields: object) -> Breaker:
    target = Target.objects.create(arn=f"{history.target.arn}-2", url="http://127.0.0.1:9/0/other", region="us-east-1")
    Breaker.objects.filter(target=target).update(**fields)
    return Breaker.objects.get(target=target)


def test_the_only_message_of_the_run_is_parked() -> None:
    _dead(others=0)
    assert (_follows(), Breaker.objects.get().failing_since) == ("parked", None)


def test_a_message_for_another_failing_target_is_no_other_message_to_try() -> None:
    history = _dead(others=0)
    other = _another(history, state="open", retry_at=NOW, failing_since=database_now())
    _lane_to(history, other)
    Letter.objects.filter(pk=history.more_letters(1)[0].pk).update(target=other.target)
    assert _follows() == "parked"


@pytest.mark.parametrize(
    "another",
    [
        pytest.param(lambda history: history.more_letters(1), id="waits behind it in its lane"),
        pytest.param(lambda history: _lane_to(history, history.breaker), id="waits behind the breaker"),
        pytest.param(lambda history: _lane_to(history, history.breaker, "leased"), id="is leased"),
        pytest.param(lambda history: history.tried("o"), id="awaits its outcome"),
    ],
)
def test_a_run_pauses_when_another_message_to_the_target(another: Callable[[History], None]) -> None:
    another(_dead(others=0))
    assert _follows() == "paused"


@pytest.mark.parametrize(("finished", "follows"), [("a later one", "parked"), ("all", "tried on")])
def test_a_finished_message_is_not_given_up(finished: str, follows: str) -> None:
    history = _dead(others=0)
    (later,) = history.more_letters(1)
    history.tried("xxx", later)
    some = Letter.objects.all() if finished == "all" else Letter.objects.filter(pk=later.pk)
    some.update(state="discarded", finished_at=database_now())
    assert _follows() == follows
    assert finished == "all" or Letter.objects.get(state="parked").pk == history.letter.pk


def _awaits_elsewhere(history: History) -> None:
    other = _another(history)
    history.tried("o", target=other.target, breaker=other)


def _almost_a_day_ago() -> datetime:
    return database_now() - DAY + timedelta(minutes=1)


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(lambda history: _lane_to(history, _another(history)), id="a message goes elsewhere"),
        pytest.param(_awaits_elsewhere, id="a message elsewhere awaits its outcome"),
        pytest.param(lambda history: _lane_to(history, _another(history), "leased"), id="a lane elsewhere is leased"),
        pytest.param(lambda history: _lane_to(history, None), id="a message goes nobody knows where"),
        pytest.param(lambda _: Run.objects.update(kind="drain"), id="a manual run"),
        pytest.param(lambda _: Run.objects.update(state="paused", stopped_by="ann", why="a test"), id="a paused run"),
        pytest.param(lambda _: Breaker.objects.update(failing_since=_almost_a_day_ago()), id="it failed for less"),
        pytest.param(lambda _: Run.objects.update(changed_at=_almost_a_day_ago()), id="the run was resumed"),
        pytest.param(lambda history: stop(history.dlq.pk, by="ann", reason="a test"), id="the DLQ was stopped"),
        pytest.param(lambda _: stop(None, by="ann", reason="a test"), id="everything was stopped"),
    ],
)
def test_a_target_is_tried_on_for(happens: Callable[[History], None]) -> None:
    happens(_dead())
    assert _follows() == "tried on"


@pytest.mark.parametrize("state", ["failing", "idle"])
def test_failing_and_idle_lanes_to_another_target_are_no_other_work(state: str) -> None:
    history = _dead()
    other = _another(history)
    _lane_to(history, other)
    if state == "failing":
        Breaker.objects.filter(pk=other.pk).update(state="open", retry_at=NOW, failing_since=database_now())
    else:
        Lane.objects.filter(breaker=other).update(phase="idle", due_at=None)
    assert _follows() == "paused"


def test_a_target_that_was_not_tried_lately_is_not_given_up() -> None:
    """The workers were away, or something else held all messages back."""
    history = _dead("")
    _failed(history, history.letter, *(n * HOUR for n in (30.2, 30.1, 30)))
    assert _follows() == "tried on"


def test_time_without_attempts_does_not_count() -> None:
    history = _dead("")
    _failed(history, history.letter, 31 * HOUR, 30.9 * HOUR, timedelta())
    assert _follows() == "tried on"
    _failed(history, history.letter, timedelta())
    assert _follows() == "tried on"


@pytest.mark.soak
def test_a_target_that_was_tried_all_the_time_since_a_pause_is_given_up() -> None:
    history = _dead("")
    _failed(history, history.letter, 47 * HOUR, *(n * HOUR / 4 for n in range(100, -1, -1)))
    assert _follows() == "paused"


@pytest.mark.parametrize(
    ("by", "hours"),
    [("the cooldown", (20, 11, 0)), ("its backoff", (18, 12, 0)), ("the backoff of the message before", (12, 6, 0))],
)
def test_a_pause_that_cooldown_or_backoff_explains_counts(by: str, hours: tuple[int, ...]) -> None:
    history = _dead("")
    if by == "the cooldown":
        Breaker.objects.update(cooldown=6 * 3_600, cooldown_cap=6 * 3_600)
    else:
        DeadLetterQueue.objects.update(backoff_base=6 * 3_600, backoff_cap=12 * 3_600)
    letters = [history.letter] * 3 if by == "its backoff" else [history.letter, *history.more_letters(2)]
    for letter, before in zip(letters, hours, strict=True):
        _failed(history, letter, before * HOUR)
    assert _follows() == "paused"


@pytest.mark.parametrize("fates", ["ppp", "vvv", "ooo", "nnn"])
def test_a_run_without_failures_does_not_pause(fates: str) -> None:
    _dead(fates)
    assert _follows() == "tried on"


def test_failures_before_the_last_success_do_not_count() -> None:
    history = _dead("")
    Breaker.objects.update(cooldown_cap=2 * DAY.total_seconds())  # the cooldown explains every pause
    _failed(history, history.letter, 3 * DAY, 3 * DAY, 3 * DAY, timedelta())
    assert _follows() == "tried on"
    _failed(history, history.letter, timedelta(), timedelta())
    assert _follows() == "paused"


def test_a_message_whose_copy_may_return_is_not_parked_yet() -> None:
    history = _dead(others=0)
    Target.objects.update(proof="absence", advance="settled", watched_by=history.dlq)
    sent = history.attempt(no=9, outcome="unknown", closed_at=database_now(), deadline=database_now() + DAY)
    since = Breaker.objects.get().failing_since
    assert (_follows(), Breaker.objects.get().failing_since) == ("tried on", since)
    Attempt.objects.filter(pk=sent.pk).update(returned_at=database_now())
    assert _follows() == "parked"


@pytest.mark.parametrize(("state", "phase"), [("sending", "leased"), ("awaiting", "awaiting"), ("waiting", "leased")])
def test_a_message_that_is_being_sent_is_parked_when_its_canary_has_failed(state: str, phase: str) -> None:
    history = _dead(others=0)
    since = Breaker.objects.get().failing_since
    sent = history.tried("o", history.letter, holds_lane=True) if state != "waiting" else []
    Letter.objects.update(state=state)
    Lane.objects.update(phase=phase, due_at=NOW if phase == "leased" else None, breaker=history.breaker)
    assert (_follows(), Breaker.objects.get().failing_since) == ("tried on", since)
    for canary in sent:
        failed = {"outcome": "refused", "closed_at": database_now(), "counts_as_failure": True, "holds_lane": False}
        Attempt.objects.filter(pk=canary.pk).update(**failed)
    Letter.objects.update(state="waiting")
    Lane.objects.update(phase="ready", due_at=NOW)
    assert (_follows(), Breaker.objects.get().failing_since) == ("parked", None)
