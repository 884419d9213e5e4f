from __future__ import annotations

from datetime import timedelta

import pytest

from reprocessing.models import Breaker, Letter, RateClass, Run
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.safety.used_up_attempts import last_failures
from tests.reprocessing.store.safety.history import History

pytestmark = pytest.mark.django_db


def _known(history: History) -> tuple[bool, bool] | None:
    """Return whether another succeeded since its first, and its last attempt; None: that is not asked."""
    found = last_failures([history.letter.pk]).get(history.letter.pk)
    return (found.success_since_first, found.success_since_last) if found else None


def _lived(story: str) -> History:
    history = History()
    for fate in story:
        if fate.isupper():
            history.tried(fate.lower(), history.letter)
        else:
            history.tried(fate)
    return history


@pytest.fixture
def history() -> History:
    return History()


@pytest.mark.parametrize(
    ("story", "known"),
    [
        ("XX", (False, False)),
        ("vXX", (False, False)),
        ("XvX", (True, False)),
        ("XXv", (True, True)),
        ("XoXo", (False, False)),
        ("XaXa", (False, False)),
        ("XxXr", (False, False)),
        ("XvXX", (False, False)),  # of three, the DLQ allows the last two
        ("XvNXX", (False, False)),
        ("AX", None),
        ("XA", None),
        ("NN", None),
        ("", None),
    ],
)
def test_successes_of_other_messages_count_from_when_this_one_failed(
    story: str, known: tuple[bool, bool] | None
) -> None:
    assert _known(_lived(story)) == known


def test_outage_attempts_are_not_used_up(history: History) -> None:
    history.tried("x", history.letter, spared=True)
    history.tried("v")
    history.tried("x", history.letter)
    assert _known(history) == (False, False)


def test_a_success_at_another_breaker_of_the_target_does_not_count(history: History) -> None:
    vip = Breaker.objects.create(target=history.target, rate_class=RateClass.objects.create(name="vip"))
    Letter.objects.filter(pk=history.letter.pk).update(rate_class=vip.rate_class)
    history.tried("x", history.letter, breaker=vip)
    history.tried("v")
    assert _known(history) == (False, False)


def test_a_message_failed_when_it_returned(history: History) -> None:
    history.tried("r", history.letter, closed_at=database_now() - timedelta(hours=1))
    found = last_failures([history.letter.pk])[history.letter.pk]
    assert found.seconds_ago < timedelta(minutes=30).total_seconds()


def test_messages_of_a_manual_run_are_left_out() -> None:
    history = _lived("XX")
    Run.objects.update(kind="drain")
    assert _known(history) is None


def test_once_a_person_resumed_the_run_a_message_spared_often_enough_is_left_out() -> None:
    history = _lived("XX")
    history.resumed()
    assert _known(history) == (False, False)
    Letter.objects.filter(pk=history.letter.pk).update(attempts=4, spared=2)
    assert _known(history) is None
