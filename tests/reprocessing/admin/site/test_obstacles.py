"""Why a lane does not go now: one answer, wherever somebody asks."""

from __future__ import annotations

import html
from collections.abc import Callable

import pytest

from reprocessing.domain.runs.selection import ALL
from reprocessing.models import Attempt, Breaker, DeadLetter, HealthCheck, Lane, Run, Target, Wave
from reprocessing.pipeline.runs import drain
from reprocessing.store.dlqs import dlq_status
from reprocessing.store.ordering.lanes import clock
from reprocessing.store.runs import run_transitions
from reprocessing.store.runs.plans import Asked
from reprocessing.store.safety import stops
from tests.reprocessing.admin.parking_lot.lot import HOUR, LOOKS, dlq, parked, person

pytestmark = pytest.mark.django_db


def _running(*, waves: bool = False) -> Run:
    """A run of two letters, each on a lane of its own, that are due."""
    origin = dlq()
    run = drain.prepare(origin.dlq, Asked("monday", "ann", ALL, in_waves=waves))
    run_transitions.start(run, by="ann", reason="mended")
    for _ in range(2):
        letter = parked(origin)
        Lane.objects.filter(letters=letter).update(run=run, phase="ready", due_at=clock() - HOUR)
        DeadLetter.objects.filter(pk=letter.pk).update(state="waiting", reason="", finished_at=None, run=run)
    return Run.objects.get()


def _everything(_: Run) -> None:
    stops.stop(None, by="ben", reason="it burns")


def _its_dlq(run: Run) -> None:
    stops.stop(run.dlq_id, by="ben", reason="it burns")


def _its_mode(run: Run) -> None:
    run.dlq.mode = "observe"
    run.dlq.save()


def _its_wave(run: Run) -> None:
    first = Attempt.objects.earliest("pk")
    Attempt.objects.create(
        letter=first.letter, lane=first.lane, target=first.target, no=2, epoch=1, fence=2, opened_at=clock(),
        holds_lane=False, run=run, wave=Wave.objects.get(run=run),
    )  # fmt: skip


def _its_health(_: Run) -> None:
    HealthCheck.objects.create(target=Target.objects.get(), kind="alarm", subject="shop")


def _its_breaker(_: Run) -> None:
    Breaker.objects.update(state="open", retry_at=clock() + HOUR)


def _its_canary(_: Run) -> None:
    Breaker.objects.update(state="half_open", canary_until=clock() + HOUR)


OBSTACLES: list[tuple[Callable[[Run], None], str]] = [
    (_everything, "everything is stopped by ben: it burns"),
    (_its_dlq, "the DLQ is stopped by ben: it burns"),
    (_its_mode, "the DLQ is in mode observe"),
    (_its_wave, "the outcome of the run's wave is not known yet"),
    (_its_health, "the target is not known to be healthy"),
    (_its_breaker, "the circuit breaker is open"),
    (_its_canary, "the circuit breaker is half open, and its canary has no outcome yet"),
]


@pytest.mark.parametrize(("put", "why"), OBSTACLES)
def test_what_holds_a_lane_is_said_alike_by_the_status_its_letter_and_its_run(
    put: Callable[[Run], None], why: str
) -> None:
    run = _running(waves=put is _its_wave)
    put(run)
    ann = person("ann", *LOOKS, "view_run")
    letter = DeadLetter.objects.earliest("pk")
    of_letter = html.unescape(ann.get(f"/admin/reprocessing/deadletter/{letter.pk}/change/").content.decode())
    of_run = html.unescape(ann.get(f"/admin/reprocessing/run/{run.pk}/change/").content.decode())
    assert [(one.n, dlq_status.in_words(one)) for one in dlq_status.lanes(run.dlq_id)] == [(2, why)]
    assert (f"this letter waits: {why}<" in of_letter, "as soon as" in of_letter) == (True, False)
    assert (f"<b>2</b> lanes: {why}<" in of_run, f"ends not known: {why}" in of_run) == (True, True)
    assert "left, if nothing fails" not in of_run


def test_a_letter_that_its_target_put_off_is_what_its_wave_waits_for() -> None:
    run = _running(waves=True)
    first = Attempt.objects.earliest("pk")
    Attempt.objects.create(
        letter=first.letter, lane=first.lane, target=first.target, no=2, epoch=1, fence=2, opened_at=clock(),
        closed_at=clock(), outcome="not_sent", holds_lane=False, run=run, wave=Wave.objects.get(run=run),
    )  # fmt: skip
    assert sorted((one.n, dlq_status.in_words(one)) for one in dlq_status.lanes(run.dlq_id)) == [
        (1, "due: waiting for a worker"),
        (1, "the target did not accept a message of the run's wave, which will be sent again"),
    ]


def test_what_nothing_holds_goes_as_soon_as_a_worker_has_time_and_its_run_has_an_end() -> None:
    run = _running()
    ann = person("ann", *LOOKS, "view_run")
    letter = DeadLetter.objects.earliest("pk")
    of_letter = ann.get(f"/admin/reprocessing/deadletter/{letter.pk}/change/").content.decode()
    of_run = ann.get(f"/admin/reprocessing/run/{run.pk}/change/").content.decode()
    assert "this letter goes as soon as a worker has time<" in of_letter
    assert ("<b>2</b> lanes: due: waiting for a worker<" in of_run, "left, if nothing fails" in of_run) == (
        True,
        True,
    )


def test_of_a_run_that_is_paused_its_letters_say_so() -> None:
    run = _running()
    run_transitions.pause(run.pk, by="ben", reason="it burns")
    letter = DeadLetter.objects.earliest("pk")
    page = person("ann", *LOOKS).get(f"/admin/reprocessing/deadletter/{letter.pk}/change/").content.decode()
    assert "this letter waits: the run monday is paused<" in page


def test_a_wave_that_is_under_way_has_no_estimate_behind_it() -> None:
    run = _running(waves=True)
    page = person("ann", "view_run").get(f"/admin/reprocessing/run/{run.pk}/change/").content.decode()
    assert "ends not known: how much goes next depends on how the wave of 1 goes" in page
