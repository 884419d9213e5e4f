"""A process sends its spans to a collector, under its own name, and never waits for long at its end."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from redrive_service.telemetry import tracing
from reprocessing.gateways.tracing.tracer import flush


class Collector(SpanExporter):
    """A collector that answers when it is allowed to."""

    def __init__(self) -> None:
        self.names, self.asked, self.may_answer = list[str](), threading.Event(), threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.asked.set()
        self.may_answer.wait(30)
        self.names += [span.name for span in spans]
        return SpanExportResult.SUCCESS


@pytest.fixture
def providers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The providers of this process; none is set at first."""
    found: list[Any] = [trace.ProxyTracerProvider()]
    ends = list[tuple[Callable[..., object], float]]()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: found[-1])
    monkeypatch.setattr(trace, "set_tracer_provider", found.append)
    monkeypatch.setattr(atexit, "register", lambda function, seconds: ends.append((function, seconds)))
    monkeypatch.setenv("OTEL_SERVICE_NAME", "")
    monkeypatch.delenv("OTEL_SERVICE_NAME")
    yield found
    assert ends == [(flush, 5.0)] * (len(found) - 1)
    for provider in found[1:]:
        provider.shutdown()


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ({}, "redrive-service"),
        ({"OTEL_SERVICE_NAME": "dlq"}, "dlq"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=dlq"}, "dlq"),
    ],
)
def test_spans_have_the_name_of_the_service_unless_a_variable_names_it(
    providers: list[Any], monkeypatch: pytest.MonkeyPatch, variable: dict[str, str], name: str
) -> None:
    for key, value in variable.items():
        monkeypatch.setenv(key, value)
    collector = Collector()
    collector.may_answer.set()
    tracing.start(collector)
    assert providers[1].resource.attributes["service.name"] == name
    providers[1].get_tracer("here").start_span("send orders").end()
    flush(5)
    assert collector.names == ["send orders"]


def test_the_provider_of_an_instrumentation_is_used(providers: list[Any]) -> None:
    providers[0] = TracerProvider(shutdown_on_exit=False)
    tracing.start(Collector())
    assert len(providers) == 1


def test_a_process_that_ends_does_not_wait_for_a_collector_that_hangs(providers: list[Any]) -> None:
    collector = Collector()
    tracing.start(collector)
    providers[1].get_tracer("here").start_span("send orders").end()
    flush(0.05)
    assert collector.asked.wait(5)
    assert collector.names == []
    collector.may_answer.set()


def test_without_a_provider_there_is_nothing_to_wait_for(providers: list[Any]) -> None:
    assert len(providers) == 1
    flush(5)
