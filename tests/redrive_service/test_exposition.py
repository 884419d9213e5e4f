"""What Prometheus reads: the right values, for who has the token, and never without one."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from prometheus_client.parser import text_string_to_metric_families
from pytest_django.fixtures import Settings

from reprocessing.domain.aws import metric_names
from reprocessing.domain.aws.metric_names import METRICS, Sample
from reprocessing.pipeline.aws import collect_metrics
from reprocessing.store import rows
from reprocessing.store.aws import metrics
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)

TOKEN = "t" * 32


@pytest.fixture
def token(settings: Settings) -> dict[str, str]:
    settings.METRICS_TOKEN = TOKEN
    return {"Authorization": f"Bearer {TOKEN}"}


def test_what_is_told_is_read_back_with_its_labels_and_values(client: Client, token: dict[str, str]) -> None:
    bench = Workbench(fields={"max_attempts": 1})
    for body in ("good", "bad"):
        bench.bury(body)
    bench.ready()
    with bench.refusing("bad"):
        bench.replay()
    answer = client.get("/metrics", headers=token)
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    families = {one.name: one for one in text_string_to_metric_families(answer.content.decode())}
    read = {
        (one.name, *(value for _, value in sorted(one.labels.items()))): one.value
        for family in families.values()
        for one in family.samples
    }
    name = bench.source_url.rsplit("/", 1)[-1]
    assert read["redrive_success_total", bench.name] == 1
    assert read["redrive_failure_total", bench.name] == 1
    assert read["redrive_parked_total", bench.name] == 1
    assert read["redrive_parked_letters", bench.name] == 1
    assert read["redrive_attempts_total", name] == 2
    assert read["redrive_breaker_state", "", name] == 0
    assert read["redrive_allowed_rate", "", name] == float("inf")
    assert read["redrive_slice_seconds_count",] == 1
    assert read["redrive_slice_seconds_bucket", "+Inf"] == 1


def test_every_metric_is_exposed_under_the_names_that_it_says(
    client: Client, token: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = {metric_names.Kind.HISTOGRAM: tuple(metric_names.histogram_parts(1.0))}
    every = [
        Sample(one, tuple("x" for _ in one.labels), 1.0, part) for one in METRICS for part in parts.get(one.kind, ("",))
    ]
    monkeypatch.setattr(collect_metrics, "samples", lambda **_: every)
    text = client.get("/metrics", headers=token).content.decode()
    names = {one.name for family in text_string_to_metric_families(text) for one in family.samples}
    assert names == {name for one in METRICS for name in one.exposed}


@pytest.mark.parametrize(
    ("given", "status"),
    [
        *((one, 401) for one in (None, "", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN, "Bearer täuschung")),
        (f"bearer {TOKEN}", 200),
        (f"BEARER  {TOKEN} ", 200),
    ],
)
def test_who_has_the_token_is_told_and_nobody_else(
    client: Client, token: dict[str, str], given: str | None, status: int
) -> None:
    answer = client.get("/metrics", headers={} if given is None else {"Authorization": given})
    assert (answer.status_code, b"redrive_" in answer.content) == (status, status == 200)
    assert answer.headers.get("WWW-Authenticate") == ("Bearer" if status == 401 else None)


def test_without_a_configured_token_there_are_no_metrics(client: Client, settings: Settings) -> None:
    settings.METRICS_TOKEN = ""
    answer = client.get("/metrics", headers={"Authorization": "Bearer "})
    assert (answer.status_code, b"REDRIVE_METRICS_TOKEN" in answer.content) == (404, True)


def test_while_postgres_does_not_answer_the_metrics_say_so(
    client: Client, token: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> None:
        raise OperationalError

    monkeypatch.setattr(metrics, "current_sums", gone)
    assert client.get("/metrics", headers=token).status_code == 503


@pytest.mark.soak
def test_asking_costs_the_same_number_of_statements_whatever_there_is(
    client: Client, token: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    execute = rows._execute

    def noted(cursor: Any, statement: Any, parameters: Any) -> None:  # noqa: ANN401  those of psycopg
        asked.append(statement)
        execute(cursor, statement, parameters)

    monkeypatch.setattr(rows, "_execute", noted)

    def cost() -> int:
        asked.clear()
        with CaptureQueriesContext(connection) as queries:
            assert client.get("/metrics", headers=token).status_code == 200
        return len(asked) + len(queries)

    Workbench()
    once = cost()
    for _ in range(3):
        bench = Workbench()
        for number in range(10):
            bench.bury(f"{number}")
        bench.ready()
        bench.replay()
    assert cost() == once
    assert len(asked) > 5
