from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from reprocessing.domain.safety.redrive_loop import DIFFERENT, ROUNDS
from reprocessing.models import Letter, Run
from reprocessing.models.system import HourlyCount
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.safety.redrive_loops import pause_looping_runs
from tests.reprocessing.store.safety.history import History

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)
BODIES, TIMES = 12, 8


def _looping() -> History:
    history = History()
    now = database_now()
    for round_ in range(TIMES):
        letters = history.more_letters(BODIES)
        for place, letter in enumerate(letters):
            Letter.objects.filter(pk=letter.pk).update(
                body_hash=bytes([place]) * 32, captured_at=now - timedelta(minutes=TIMES - round_), state="delivered",
                finished_at=now,
            )  # fmt: skip
    for what in ("captured", "delivered"):
        HourlyCount.objects.update_or_create(
            dlq_id=history.dlq.pk, hour=now - timedelta(minutes=30), what=what, defaults={"n": DIFFERENT * ROUNDS}
        )
    return history


@pytest.mark.soak
def test_a_dlq_that_refills_with_delivered_messages_pauses_its_run() -> None:
    _looping()
    assert len(pause_looping_runs()) == 1
    assert (Run.objects.get().state, pause_looping_runs()) == ("paused", [])


def _returned(**fields: object) -> None:
    Letter.objects.filter(state="delivered").update(**fields)


def _counted(what: str) -> None:
    HourlyCount.objects.filter(what=what).update(n=DIFFERENT * ROUNDS - 1)


@pytest.mark.parametrize(
    "happened",
    [
        pytest.param(lambda: Run.objects.update(kind="drain"), id="is manual"),
        pytest.param(lambda: _returned(state="waiting", finished_at=None), id="delivered nothing"),
        pytest.param(lambda: _returned(captured_at=database_now() - 2 * HOUR), id="delivered them long ago"),
        pytest.param(lambda: Run.objects.update(changed_at=database_now()), id="was resumed since"),
        pytest.param(lambda: _counted("delivered"), id="delivers little"),
        pytest.param(lambda: _counted("captured"), id="captures little"),
        pytest.param(lambda: HourlyCount.objects.update(hour=database_now() - 3 * HOUR), id="rests since long ago"),
    ],
)
def test_a_dlq_is_no_loop_if_its_run(happened: Callable[[], None]) -> None:
    _looping()
    happened()
    assert pause_looping_runs() == []


def test_a_loop_of_another_dlq_pauses_no_run_of_this_one() -> None:
    looping, other = _looping(), History()
    HourlyCount.objects.update(dlq_id=other.dlq.pk)
    assert pause_looping_runs() == []
    assert Run.objects.filter(dlq=looping.dlq, state="running").exists()


def test_messages_whose_equals_were_delivered_only_later_are_no_repeats() -> None:
    _looping()
    newest = Letter.objects.order_by("-id").values_list("pk", flat=True)[: BODIES * (TIMES - 2)]
    Letter.objects.filter(pk__in=list(newest)).update(captured_at=database_now() - 2 * HOUR)
    assert pause_looping_runs() == []
