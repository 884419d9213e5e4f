"""Which failed attempts do not count: those that a circuit breaker opened over, and that nothing went well beside."""

from __future__ import annotations

import pytest

from reprocessing.models import Attempt, Breaker, DeadLetter, Run
from reprocessing.store.ordering.lanes import clock
from reprocessing.store.safety.spared_attempts import spare_epochs, spare_late
from tests.reprocessing.store.safety.history import History

pytestmark = pytest.mark.django_db


def _marks() -> str:
    """Of each attempt, in the order of sending, whether it is spared: + or -."""
    return "".join("+" if one else "-" for one in Attempt.objects.order_by("id").values_list("spared", flat=True))


@pytest.mark.parametrize(
    ("fates", "marks"),
    [
        ("xrx", "+++"),
        ("xvx", "--+"),
        ("xox", "+-+"),
        ("xax", "+-+"),  # what came back after all is no success, and is not spared: nothing tells an outage
        ("xnx", "+-+"),
    ],
)
def test_what_failed_after_the_last_success_of_an_epoch_is_spared_when_that_ends(fates: str, marks: str) -> None:
    history = History()
    history.tried(fates)
    spare_epochs({(history.breaker.pk, 0)})
    assert _marks() == marks


def test_of_a_message_that_failed_twice_both_attempts_are_spared_once() -> None:
    history = History()
    history.tried("xx", history.letter)
    assert [spare_epochs({(history.breaker.pk, 0)}) for _ in range(2)] == [1, 0]
    assert (DeadLetter.objects.get(pk=history.letter.pk).spared, _marks()) == (2, "++")


def test_what_failed_in_another_epoch_is_left_alone() -> None:
    history = History()
    history.tried("x")
    history.tried("x", breaker_epoch=1)
    spare_epochs({(history.breaker.pk, 0)})
    assert _marks() == "+-"


def test_a_manual_run_s_attempts_count() -> None:
    history = History()
    Run.objects.update(kind="drain")
    history.tried("xx")
    spare_epochs({(history.breaker.pk, 0)})
    assert _marks() == "--"


def test_what_a_person_released_meanwhile_has_no_attempt_to_be_spared() -> None:
    history = History()
    history.tried("x", history.letter)
    DeadLetter.objects.update(forgiven=1)
    spare_epochs({(history.breaker.pk, 0)})
    assert DeadLetter.objects.get(pk=history.letter.pk).spared == 0


@pytest.mark.parametrize(
    ("fields", "marks"),
    [
        ({"epoch": 0}, "-"),
        ({"epoch": 1, "state": "open", "retry_at": clock}, "+"),
        ({"epoch": 2, "state": "closed"}, "+"),
        ({"epoch": 0, "state": "half_open"}, "+"),
    ],
    ids=["closed all the time", "opened since", "closed again since", "the canary of a half-open one"],
)
def test_a_failure_that_becomes_known_late_is_spared_where_the_breaker_has_opened_since(
    fields: dict[str, object], marks: str
) -> None:
    history = History()
    (late,) = history.tried("r", breaker_epoch=0)
    Breaker.objects.update(**{name: value() if callable(value) else value for name, value in fields.items()})
    spare_late([late.pk])
    assert _marks() == marks


def test_what_goes_well_once_the_breaker_is_closed_again_says_nothing_of_those_before() -> None:
    history = History()
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
def test_once_a_person_says_that_its_target_is_well_what_was_spared_often_enough_counts(
    spared: int, resumed: dict[str, str] | None, marks: str
) -> None:
    history = History()
    DeadLetter.objects.filter(pk=history.letter.pk).update(attempts=2, spared=spared)
    history.tried("x", history.letter)
    if resumed is not None:
        history.resumed(**resumed)
    spare_epochs({(history.breaker.pk, 0)})
    assert _marks() == marks
