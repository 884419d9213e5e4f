"""What would keep a plan's messages from being sent, on the plan's page, before the start, and in a dry run."""

from __future__ import annotations

import html
from datetime import timedelta

import pytest

from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.runs.selection import ALL_LETTERS
from reprocessing.management.output import drain_output
from reprocessing.models import Breaker, HealthCheck, RateClass, Run, Source, Target
from reprocessing.pipeline.runs import drain, forecast_plan
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.runs.plans import RunRequest
from reprocessing.store.safety import stops
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, person
from tests.reprocessing.commands.stock import add_letter

pytestmark = pytest.mark.django_db
THEN = "one message at a time is sent as a test, a canary, until enough of them succeed."
BREAKER = "The circuit breaker of shop-dlq-source is"


@pytest.fixture
def source() -> Source:
    return dlq()


@pytest.fixture
def run(source: Source) -> Run:
    add_letter(source, LetterState.CAPTURED, sequence="1", key_hash=b"1", planned=True, single=True)
    return drain.plan_run(source.dlq, RunRequest("monday", "ann", ALL_LETTERS))


def _obstacles(run: Run) -> list[str]:
    outlook = forecast_plan.forecast_run(run, count_lag=0)
    assert ("the obstacles are gone: the time until then is not included" in outlook.assumptions) == bool(
        outlook.obstacles
    )
    return outlook.obstacles


def test_a_healthy_target_is_no_obstacle(run: Run) -> None:
    HealthCheck.objects.create(target=Target.objects.get(), kind="alarm", subject="never asked")
    assert _obstacles(run) == []


def test_stop_breaker_and_failed_check_are_obstacles(run: Run) -> None:
    until = database_now() + timedelta(days=2)
    Breaker.objects.update(state="open", why="5 messages in a row failed", retry_at=until)
    HealthCheck.objects.create(
        target=Target.objects.get(), kind="alarm", subject="shop", verdict="unhealthy", detail="shop is in ALARM",
        checked_at=database_now().replace(microsecond=0) - timedelta(seconds=5), max_age=3_600,
    )  # fmt: skip
    stops.stop(run.dlq_id, by="ben", reason="it burns")
    ran = HealthCheck.objects.get().checked_at
    assert _obstacles(run) == [
        'shop-dlq is stopped by ben ("it burns"): nothing is sent until somebody resumes it.',
        (
            f"{BREAKER} open until {until:%Y-%m-%d %H:%M:%S} UTC (5 messages in a row failed): nothing is sent before. "
            f"Then {THEN}"
        ),
        (
            f"The health check alarm of shop-dlq-source did not pass when it last ran, {ran:%Y-%m-%d %H:%M:%S} UTC: "
            "shop is in ALARM. Nothing is sent until the check passes."
        ),
    ]


def test_an_old_result_of_a_check_and_a_breaker_of_a_rate_class_are_no_obstacles(run: Run) -> None:
    target = Target.objects.get()
    HealthCheck.objects.create(
        target=target, kind="alarm", subject="shop", verdict="unhealthy", max_age=60,
        checked_at=database_now() - timedelta(days=1),
    )  # fmt: skip
    gold = RateClass.objects.create(name="gold", rate=1)
    Breaker.objects.create(target=target, rate_class=gold, state="open", why="5 in a row", retry_at=database_now())
    assert _obstacles(run) == []


def test_half_open_breaker_and_ended_cooldown_are_obstacles(run: Run) -> None:
    Breaker.objects.update(state="half_open")
    assert _obstacles(run) == [f"{BREAKER} half open: {THEN}"]
    Breaker.objects.update(state="open", retry_at=database_now() - timedelta(seconds=1))
    assert _obstacles(run) == [f"{BREAKER} open, and its cooldown is over: {THEN}"]


def test_obstacle_is_named_before_the_start_and_the_plan_has_no_end(run: Run) -> None:
    ann = person("ann", "view_run", "view_deadletterqueue", "operate_run")
    page, question = (f"/admin/reprocessing/run/{run.pk}/{rest}" for rest in ("change/", "start/now"))
    assert "not known: see Obstacles" not in ann.get(page).content.decode()
    Breaker.objects.update(state="open", retry_at=database_now() + timedelta(hours=1))
    (sentence,) = _obstacles(run)
    said = html.unescape(ann.get(page).content.decode())
    assert f'<h3>Obstacles</h3><ul class="ways"><li>{sentence}</li>' in said
    assert "<dt>Ends, if started now</dt><dd>not known: see Obstacles</dd>" in said
    assert "the obstacles are gone: the time until then is not included" in said
    assert sentence in html.unescape(ann.get(question).content.decode())


def test_obstacle_is_part_of_the_dry_run(run: Run) -> None:
    Breaker.objects.update(state="half_open")
    outlook = forecast_plan.forecast_run(run, count_lag=0)
    assert f"  obstacle        {BREAKER} half open: {THEN}" in list(drain_output.plan_lines(outlook, 0))
    assert drain_output.plan_in_json(outlook, 0, "")["obstacles"] == outlook.obstacles
