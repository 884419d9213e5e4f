from __future__ import annotations

import html
from collections.abc import Callable
from datetime import timedelta

import pytest

from reprocessing.domain.runs.selection import ALL_LETTERS
from reprocessing.domain.safety.failure_cause import WAITS_FOR_CAUSE
from reprocessing.models import Breaker, DeadLetterQueue, HealthCheck, Lane, Letter, Run, Target, Wave
from reprocessing.pipeline.runs import drain
from reprocessing.store.dlqs import automatic_redrive
from reprocessing.store.ordering import lane_counts
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.runs import run_transitions
from reprocessing.store.runs.plans import RunRequest
from reprocessing.store.safety import stops
from tests.reprocessing.admin.parking_lot.parked_messages import HOUR, LOOKS, dlq, parked, person, tried_again

pytestmark = pytest.mark.django_db


def _running(*, waves: bool = False) -> Run:
    """A run of two letters, each on a lane of its own, that are due."""
    source = dlq()
    run = drain.plan_run(source.dlq, RunRequest("monday", "ann", ALL_LETTERS, in_waves=waves))
    run_transitions.start(run, by="ann", reason="mended")
    for _ in range(2):
        letter = parked(source)
        Lane.objects.filter(letters=letter).update(run=run, phase="ready", due_at=database_now() - HOUR)
        Letter.objects.filter(pk=letter.pk).update(state="waiting", reason="", finished_at=None, run=run)
    return Run.objects.get()


def _its_wave(run: Run) -> None:
    tried_again(Letter.objects.earliest("pk"), run=run, wave=Wave.objects.get(run=run))


BURNS = {"by": "ben", "reason": "it burns"}
OBSTACLES: list[tuple[Callable[[Run], object], str]] = [
    (lambda _: stops.stop(None, **BURNS), "everything is stopped by ben: it burns"),
    (lambda run: stops.stop(run.dlq_id, **BURNS), "the DLQ is stopped by ben: it burns"),
    (lambda _: DeadLetterQueue.objects.update(mode="observe"), "the DLQ is in mode observe"),
    (_its_wave, "the outcome of the run's wave is not known yet"),
    (
        lambda _: HealthCheck.objects.create(target=Target.objects.get(), kind="alarm", subject="shop"),
        "the target is not known to be healthy",
    ),
    (lambda _: Breaker.objects.update(state="open", retry_at=database_now() + HOUR), "the circuit breaker is open"),
    (
        lambda _: Breaker.objects.update(state="half_open", canary_until=database_now() + HOUR),
        "the circuit breaker is half open, and its canary has no outcome yet",
    ),
]


@pytest.mark.parametrize(("put", "why"), OBSTACLES)
def test_obstacle_is_the_same_in_status_message_and_run(put: Callable[[Run], object], why: str) -> None:
    run = _running(waves=put is _its_wave)
    put(run)
    ann = person("ann", *LOOKS, "view_run", "view_lane")
    letter = Letter.objects.earliest("pk")
    of_letter = html.unescape(ann.get(f"/admin/reprocessing/letter/{letter.pk}/change/").content.decode())
    of_run = html.unescape(ann.get(f"/admin/reprocessing/run/{run.pk}/change/").content.decode())
    assert [(one.n, lane_counts.describe_lanes(one)) for one in lane_counts.lane_counts(run.dlq_id)] == [(2, why)]
    assert (f"this message waits: {why}<" in of_letter, "as soon as" in of_letter) == (True, False)
    of_lane = html.unescape(ann.get(f"/admin/reprocessing/lane/{letter.lane_id}/change/").content.decode())
    assert f"its first message waits: {why}<" in of_lane
    assert (f"<b>2</b> key queues: {why}<" in of_run, f"end unknown: {why}" in of_run) == (True, True)
    assert "by rate limits, ramp-up and the order of each key, if nothing fails" not in of_run


@pytest.mark.parametrize("is_open", [True, False])
def test_message_that_waits_for_the_circuit_breaker_links_to_it(*, is_open: bool) -> None:
    run = _running()
    if is_open:
        Breaker.objects.update(state="open", retry_at=database_now() + HOUR)
    else:
        stops.stop(run.dlq_id, **BURNS)
    link = f'<a href="/admin/reprocessing/breaker/{Breaker.objects.get().pk}/change/">Circuit breaker</a>'
    address = f"/admin/reprocessing/letter/{Letter.objects.earliest('pk').pk}/change/"
    pages = [person(name, *LOOKS, *more).get(address) for name, more in (("ann", ["view_breaker"]), ("ben", []))]
    assert [page.content.decode().count(link) for page in pages] == ([2, 0] if is_open else [0, 0])


def test_wave_waits_for_a_message_that_was_not_accepted() -> None:
    run = _running(waves=True)
    letter, wave = Letter.objects.earliest("pk"), Wave.objects.get(run=run)
    tried_again(letter, closed_at=database_now(), outcome="not_sent", run=run, wave=wave)
    assert sorted((one.n, lane_counts.describe_lanes(one)) for one in lane_counts.lane_counts(run.dlq_id)) == [
        (1, "due: waiting for a worker"),
        (1, "the target did not accept a message of the run's wave, which will be sent again"),
    ]


@pytest.mark.parametrize(
    ("state", "next_step"),
    [
        ("aborted", "The automatic run, or the next run of the DLQ, takes its messages over."),
        ("paused", "Resume that run."),
    ],
)
def test_a_run_behind_an_aborted_run_says_so(state: str, next_step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automatic_redrive, "missing_processes", lambda **_: [])
    monday = _running()
    ahead = Letter.objects.earliest("pk")
    later = Run.objects.create(name="tuesday", dlq=monday.dlq, state="running", asked_by="ben", selected=1)
    Letter.objects.filter(pk=parked(monday.dlq.sources.get()).pk).update(
        state="waiting", reason="", finished_at=None, run=later, lane=ahead.lane, sequence="9"
    )
    if state == "aborted":
        run_transitions.abort(monday, by="ann", reason="why", stop_dlq=False)
    else:
        run_transitions.pause(monday.pk, by="ann", reason="why")
    page = person("ann", *LOOKS, "view_run").get(f"/admin/reprocessing/run/{later.pk}/change/").content.decode()
    why = f"the run monday is {state}"
    assert f"Waits for the run monday, whose messages come first in 1 key queue: {why}. {next_step}" in page
    assert f"<b>1</b> key queue: a message of the run monday comes first ({why})<" in page
    assert "the run ends after earlier messages of other runs" in page


def test_due_message_is_sent_and_its_run_has_an_end() -> None:
    run = _running()
    ann = person("ann", *LOOKS, "view_run")
    letter = Letter.objects.earliest("pk")
    of_letter = ann.get(f"/admin/reprocessing/letter/{letter.pk}/change/").content.decode()
    of_run = ann.get(f"/admin/reprocessing/run/{run.pk}/change/").content.decode()
    assert "this message is sent as soon as a worker is free<" in of_letter
    assert "<b>2</b> key queues: due: waiting for a worker<" in of_run
    assert "by rate limits, ramp-up and the order of each key, if nothing fails" in of_run


def test_paused_run_is_named_by_its_messages() -> None:
    run = _running()
    run_transitions.pause(run.pk, by="ben", reason="it burns")
    letter = Letter.objects.earliest("pk")
    page = person("ann", *LOOKS).get(f"/admin/reprocessing/letter/{letter.pk}/change/").content.decode()
    assert "this message waits: the run monday is paused<" in page


def test_pending_wave_has_no_estimate() -> None:
    run = _running(waves=True)
    page = person("ann", "view_run").get(f"/admin/reprocessing/run/{run.pk}/change/").content.decode()
    assert "end unknown: the next wave depends on the outcome of the wave of 1" in page


@pytest.mark.parametrize("seconds", [-1, 5])
def test_message_without_attempts_left_waits_for_others_everywhere(
    seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(automatic_redrive, "missing_processes", lambda **_: [])
    run = _running()
    letter, due = Letter.objects.earliest("pk"), database_now() + timedelta(seconds=seconds)
    Lane.objects.update(due_at=due, why=WAITS_FOR_CAUSE)
    ann = person("ann", *LOOKS, "view_run")
    of_letter = html.unescape(ann.get(f"/admin/reprocessing/letter/{letter.pk}/change/").content.decode())
    of_run = html.unescape(ann.get(f"/admin/reprocessing/run/{run.pk}/change/").content.decode())
    told = (
        "this message has used up its attempts. It is parked, or the circuit breaker opens, within 60 s after its last "
        "failure: the service first waits for the outcomes of other messages"
    )
    assert (f"Queued: {told}.</strong>" in of_letter, WAITS_FOR_CAUSE in of_letter) == (True, False)
    assert "is sent as soon as" not in of_letter
    assert f"</strong> Waits: {WAITS_FOR_CAUSE}.</p>" in of_run
    assert "end unknown: the first message has used up its attempts</p>" in of_run
    assert "key queues: the first message has used up its attempts</li>" in of_run
    assert of_run.count(WAITS_FOR_CAUSE) == 1
    assert ("next attempt" in of_run, "ends at" in of_run) == (False, False)


def test_reason_of_a_breaker_that_has_closed_is_not_shown() -> None:
    _running()
    Lane.objects.update(why="the circuit breaker is open")
    page = person("ann", *LOOKS).get(f"/admin/reprocessing/letter/{Letter.objects.earliest('pk').pk}/change/")
    assert "this message is sent as soon as a worker is free<" in page.content.decode()
