from __future__ import annotations

import pytest
from django.db.models import F

from reprocessing.models import Attempt, Breaker, DeadLetterQueue, Letter, Run
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.safety.outage_attempts import count_again, spare_epochs, spare_late
from tests.reprocessing.store.safety.history import FATES, History

pytestmark = pytest.mark.django_db


def _marks() -> str:
    """Return for each attempt, in the order of sending, whether it is spared: + or -."""
    return "".join("+" if one else "-" for one in Attempt.objects.order_by("id").values_list("spared", flat=True))


@pytest.fixture
def history() -> History:
    return History()


@pytest.mark.parametrize(
    ("fates", "marks"),
    [
        ("xrx", "+++"),
        ("xvx", "--+"),
        ("xox", "+-+"),
        ("xax", "+-+"),  # returned after a success: neither a success nor spared
        ("xnx", "+-+"),
    ],
)
def test_failures_after_the_last_success_of_an_epoch_are_spared_when_it_ends(
    fates: str, marks: str, history: History
) -> None:
    history.tried(fates)
    spare_epochs({(history.breaker.pk, 0)})
    assert _marks() == marks


def test_both_failed_attempts_of_a_message_are_spared_once(history: History) -> None:
    history.tried("xx", history.letter)
    assert [spare_epochs({(history.breaker.pk, 0)}) for _ in range(2)] == [1, 0]
    assert (Letter.objects.get(pk=history.letter.pk).spared, _marks()) == (2, "++")


@pytest.mark.parametrize(("kind", "marks"), [("automatic", "+-"), ("drain", "--")])
def test_only_attempts_of_this_epoch_and_of_automatic_runs_are_spared(kind: str, marks: str, history: History) -> None:
    Run.objects.update(kind=kind)
    history.tried("x")
    history.tried("x", breaker_epoch=1)
    spare_epochs({(history.breaker.pk, 0)})
    assert _marks() == marks


def test_a_message_that_a_person_released_meanwhile_has_no_attempt_to_spare(history: History) -> None:
    history.tried("x", history.letter)
    Letter.objects.update(attempts_before_release=1)
    spare_epochs({(history.breaker.pk, 0)})
    assert Letter.objects.get(pk=history.letter.pk).spared == 0


@pytest.mark.parametrize(
    ("fields", "marks"),
    [
        ({"epoch": 0}, "-"),
        ({"epoch": 1, "state": "open", "retry_at": database_now}, "+"),
        ({"epoch": 2, "state": "closed"}, "+"),
        ({"epoch": 0, "state": "half_open"}, "+"),
    ],
    ids=["closed all the time", "opened since", "closed again since", "the canary of a half-open one"],
)
def test_a_late_failure_is_spared_if_the_breaker_has_opened_since(
    fields: dict[str, object], marks: str, history: History
) -> None:
    (late,) = history.tried("r", breaker_epoch=0)
    Breaker.objects.update(**{name: value() if callable(value) else value for name, value in fields.items()})
    spare_late([late.pk])
    assert _marks() == marks


def test_a_success_after_the_breaker_closed_again_does_not_count_against_earlier_failures(history: History) -> None:
    (late,) = history.tried("r")
    history.tried("v", breaker_epoch=2)
    Breaker.objects.update(epoch=2)
    spare_late([late.pk])
    assert _marks() == "+-"


@pytest.mark.parametrize(
    ("spared", "resumed", "marks"),
    [
        (2, {}, "-"),
        (1, {}, "+"),
        (2, {"after": "ann"}, "+"),
        (2, {"act": "paused"}, "+"),
        (2, None, "+"),
    ],
    ids=["said to be well", "spared less often", "a person had paused it", "nobody resumed it", "nothing was said"],
)  # fmt: skip
def test_once_a_person_resumed_the_run_failures_of_a_message_spared_often_enough_count(
    spared: int, resumed: dict[str, str] | None, marks: str, history: History
) -> None:
    Letter.objects.filter(pk=history.letter.pk).update(attempts=2, spared=spared)
    history.tried("x", history.letter)
    if resumed is not None:
        history.resumed(**resumed)
    spare_epochs({(history.breaker.pk, 0)})
    assert _marks() == marks


def _spared_then(history: History, story: str, *, max_attempts: int = 3) -> dict[int, int]:
    """Spare attempts of an epoch, then let the open ones succeed. X and O: of the history's letter."""
    DeadLetterQueue.objects.update(max_attempts=max_attempts)
    for fate in story:
        history.tried(fate.lower(), history.letter if fate.isupper() else None)
    spare_epochs({(history.breaker.pk, 0)})
    Attempt.objects.filter(outcome=None).update(**FATES["v"], closed_at=database_now())
    return count_again([history.letter.pk])


@pytest.mark.parametrize(
    ("story", "counted", "marks"),
    [
        ("Xox", {1}, "--+"),
        ("xoX", set(), "+-+"),
        ("XXo", {2}, "---"),
        ("XoX", {1}, "--+"),
        ("Xx", set(), "++"),
    ],
)
def test_a_spared_attempt_counts_again_once_a_later_message_succeeded(
    story: str, counted: set[int], marks: str, history: History
) -> None:
    found = _spared_then(history, story)
    letter = Letter.objects.get(pk=history.letter.pk)
    assert (set(found.values()), _marks()) == (counted, marks)
    assert letter.spared == Attempt.objects.filter(letter=letter, spared=True).count()


def test_a_success_of_another_epoch_does_not_make_an_attempt_count_again(history: History) -> None:
    history.tried("x", history.letter)
    spare_epochs({(history.breaker.pk, 0)})
    history.tried("v", breaker_epoch=1)
    assert (count_again([history.letter.pk]), _marks()) == ({}, "+-")


def test_a_success_whose_message_came_back_does_not_make_an_attempt_count_again(history: History) -> None:
    history.tried("x", history.letter)
    spare_epochs({(history.breaker.pk, 0)})
    history.tried("a")
    assert (count_again([history.letter.pk]), _marks()) == ({}, "+-")


def test_no_more_attempts_count_again_than_the_limit_allows(history: History) -> None:
    assert _spared_then(history, "XXXo", max_attempts=2) == {history.letter.pk: 2}
    assert (count_again([history.letter.pk]), _marks()) == ({}, "--+-")


def test_attempts_before_a_release_do_not_count_again(history: History) -> None:
    history.tried("x", history.letter)
    history.tried("o")
    spare_epochs({(history.breaker.pk, 0)})
    Attempt.objects.filter(outcome=None).update(**FATES["v"], closed_at=database_now())
    Letter.objects.filter(pk=history.letter.pk).update(attempts_before_release=F("attempts"), spared=0)
    assert (count_again([history.letter.pk]), _marks()) == ({}, "+-")
