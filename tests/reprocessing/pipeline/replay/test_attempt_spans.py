"""Each attempt is one span in the trace of its message. Tracing delays no message, and changes none by default."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from django.db import DatabaseError
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from reprocessing.domain.replay.verdicts import Outcome, Refused
from reprocessing.domain.sources import message_trace
from reprocessing.domain.targets.async_sender import HttpCall
from reprocessing.models import Attempt, Target
from reprocessing.pipeline.replay import late_answers, send_batches, settle
from reprocessing.pipeline.replay.attempt_spans import spans_for
from reprocessing.store.replay.intent import IntendedSend
from tests.reprocessing.pipeline.bench import BRISK, KEYED, Workbench
from tests.reprocessing.pipeline.slow import Endpoint, bench_with

pytestmark = pytest.mark.django_db(transaction=True)

TRACED = replace(BRISK, traces=True)
CONTINUED = replace(BRISK, traces=True, trace_messages=True)
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"


class Blocked(SpanExporter):
    """An exporter whose collector does not answer."""

    def __init__(self) -> None:
        self.asked, self.answer = threading.Event(), threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        del spans
        self.asked.set()
        self.answer.wait(30)
        return SpanExportResult.FAILURE


def provided(patch: pytest.MonkeyPatch, processor: SpanProcessor) -> TracerProvider:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    patch.setattr(trace, "get_tracer", provider.get_tracer)
    return provider


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    provided(monkeypatch, SimpleSpanProcessor(exporter))
    return exporter


@pytest.fixture
def blocked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Blocked]:
    exporter = Blocked()
    processor = BatchSpanProcessor(exporter, max_queue_size=4, max_export_batch_size=2, schedule_delay_millis=10)
    provided(monkeypatch, processor)
    yield exporter
    exporter.answer.set()
    processor.shutdown()  # type: ignore[no-untyped-call]  # as OpenTelemetry has it


def refused_once(patch: pytest.MonkeyPatch) -> None:
    post, sent = send_batches.letters, list[IntendedSend]()

    def answer(intended: Sequence[IntendedSend], *rest: Any, **options: Any) -> dict[int, Outcome]:  # noqa: ANN401
        if sent:
            return post(intended, *rest, **options)
        sent.extend(intended)
        return {attempt.attempt_id: Refused("Busy", "canary") for attempt in intended}

    patch.setattr(send_batches, "letters", answer)


def parent_of(span: ReadableSpan) -> str:
    assert span.context is not None
    parent = span.parent
    return f"{span.context.trace_id:032x}/{parent.span_id:016x}" if parent else "none"


def told(span: ReadableSpan) -> dict[str, Any]:
    return {name: value for name, value in dict(span.attributes or {}).items() if name.startswith(("redrive", "err"))}


def test_a_failed_and_a_successful_attempt_are_two_spans_in_the_messages_trace(
    exported: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Workbench(conf=TRACED, fields=KEYED)
    message_id = bench.bury("letter", key="k", n="1", traceparent=PARENT, tracestate="vendor=1")
    run = bench.ready()
    refused_once(monkeypatch)
    bench.replay()
    first, second = exported.get_finished_spans()
    assert [parent_of(span) for span in (first, second)] == [f"{TRACE}/{SPAN}"] * 2
    assert [span.name for span in (first, second)] == [f"send {bench.name}"] * 2
    assert [span.status.status_code for span in (first, second)] == [StatusCode.ERROR, StatusCode.UNSET]
    same = {
        "redrive.id": str(bench.letter().public_id), "redrive.message_id": message_id, "redrive.dlq": bench.name,
        "redrive.key_queue_id": bench.lane().pk, "redrive.run": run.name,
    }  # fmt: skip
    assert told(first) == same | {"redrive.attempt": 1, "redrive.outcome": "refused", "error.type": "Busy"}
    assert told(second) == same | {"redrive.attempt": 2, "redrive.outcome": "accepted"}
    assert (first.kind, second.context and second.context.trace_state.get("vendor")) == (SpanKind.PRODUCER, "1")
    (delivered,) = bench.delivered()
    assert (second.attributes or {})["messaging.message.id"] == delivered["MessageId"]
    assert delivered["MessageAttributes"]["traceparent"]["StringValue"] == PARENT


def test_a_span_begins_with_its_attempt_and_ends_after_it(exported: InMemorySpanExporter) -> None:
    bench = Workbench(conf=TRACED)
    bench.redrive("letter")
    (span,) = exported.get_finished_spans()
    opened = Attempt.objects.get(letter__dlq=bench.dlq).opened_at
    assert abs((span.start_time or 0) - opened.timestamp() * 1e9) < 1_000
    assert (span.end_time or 0) > (span.start_time or 0)


def test_a_message_without_a_trace_begins_one(exported: InMemorySpanExporter) -> None:
    bench = Workbench(conf=TRACED)
    bench.redrive("letter")
    assert [parent_of(span) for span in exported.get_finished_spans()] == ["none"]


def test_the_trace_of_x_ray_is_continued_or_linked(exported: InMemorySpanExporter) -> None:
    bench = Workbench(conf=TRACED)
    header = {"DataType": "String", "StringValue": f"Root=1-{'1' * 8}-{'2' * 24};Parent={SPAN};Sampled=1"}
    for body, attributes in (("plain", {}), ("both", {"traceparent": {"DataType": "String", "StringValue": PARENT}})):
        bench.sqs.send_message(
            QueueUrl=bench.dlq_url, MessageBody=body, MessageAttributes=attributes,
            MessageSystemAttributes={"AWSTraceHeader": header},
        )  # fmt: skip
    bench.ready()
    bench.replay()
    spans = {
        parent_of(span): [f"{link.context.trace_id:x}" for link in span.links] for span in exported.get_finished_spans()
    }
    xray = f"{'1' * 8}{'2' * 24}"
    assert spans == {f"{xray}/{SPAN}": [], f"{TRACE}/{SPAN}": [xray]}


def test_an_unsampled_trace_gets_no_span_and_its_message_goes_unchanged(exported: InMemorySpanExporter) -> None:
    bench = Workbench(conf=CONTINUED)
    unsampled = f"00-{TRACE}-{SPAN}-00"
    bench.redrive("letter", traceparent=unsampled)
    assert exported.get_finished_spans() == ()
    (delivered,) = bench.delivered()
    assert delivered["MessageAttributes"]["traceparent"]["StringValue"] == unsampled


@pytest.mark.parametrize("own", [{}, {"traceparent": PARENT, "tracestate": "vendor=1"}])
def test_if_it_is_switched_on_a_message_carries_the_context_of_its_attempt(
    exported: InMemorySpanExporter, own: dict[str, str]
) -> None:
    bench = Workbench(conf=CONTINUED)
    bench.redrive("letter", **own)
    (span,) = exported.get_finished_spans()
    assert span.context is not None
    (delivered,) = bench.delivered()
    found = delivered["MessageAttributes"]
    sent = f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-{span.context.trace_flags:02x}"
    assert found["traceparent"]["StringValue"] == sent
    assert ("tracestate" in found) is bool(own)
    assert parent_of(span) == (f"{TRACE}/{SPAN}" if own else "none")


def test_a_message_without_room_for_the_mark_keeps_its_own_context(exported: InMemorySpanExporter) -> None:
    bench = Workbench(conf=CONTINUED)
    bench.redrive("letter", traceparent=PARENT, **{f"a{n}": "1" for n in range(9)})
    (delivered,) = bench.delivered()
    assert delivered["MessageAttributes"]["traceparent"]["StringValue"] == PARENT
    assert len(exported.get_finished_spans()) == 1


@pytest.mark.soak
def test_by_default_a_traced_message_has_the_attributes_that_it_has_untraced(exported: InMemorySpanExporter) -> None:
    sent = []
    for conf in (BRISK, TRACED):
        bench = Workbench(conf=conf)
        bench.redrive("letter", traceparent=PARENT)
        (delivered,) = bench.delivered()
        sent.append((delivered["Body"], sorted(delivered["MessageAttributes"])))
    assert sent[0] == sent[1]
    assert len(exported.get_finished_spans()) == 1


@pytest.mark.soak
def test_a_request_to_an_endpoint_carries_the_context_and_ends_with_its_answer(
    exported: InMemorySpanExporter, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers, started = list[dict[str, str]](), list[float]()
    start = endpoint.start

    def begin(calls: Sequence[HttpCall], *, may_start: Callable[[], bool]) -> None:
        headers.extend(dict(call.headers) for call in calls)
        started.append(time.monotonic())
        start(calls, may_start=may_start)

    monkeypatch.setattr(endpoint, "start", begin)
    bench = bench_with(keys=1, letters=1, conf=CONTINUED)
    endpoint.answer = lambda _: None
    bench.replay(0.2)
    assert exported.get_finished_spans() == ()
    answered = time.monotonic()
    endpoint.answer = lambda _: Refused("503", "canary")
    assert late_answers.wait_for_all(10)
    (span,) = exported.get_finished_spans()
    assert span.context is not None
    assert headers[0]["traceparent"].split("-")[2] == f"{span.context.span_id:016x}"
    assert (span.name, told(span)["error.type"]) == ("send hooks.example.com", "503")
    assert (span.end_time or 0) - (span.start_time or 0) >= (answered - started[0]) * 1e9


def test_an_attempt_whose_outcome_is_recorded_at_the_second_try_is_one_span(
    exported: InMemorySpanExporter, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, failed = settle.attempts, list[int]()

    def fail_once(intended: Sequence[IntendedSend], *rest: Any, **options: Any) -> settle.Settled:  # noqa: ANN401
        if not failed:
            failed.extend(attempt.attempt_id for attempt in intended)
            raise DatabaseError("the server closed the connection")
        return record(intended, *rest, **options)

    bench = bench_with(keys=1, letters=1, conf=TRACED)
    monkeypatch.setattr(settle, "attempts", fail_once)
    with pytest.raises(DatabaseError):
        bench.replay(1)
    assert late_answers.wait_for_all(10)
    assert endpoint.begun == ["0-0"]
    assert bench.states() == {"0-0": "delivered"}
    assert [told(span)["redrive.outcome"] for span in exported.get_finished_spans()] == ["accepted"]


def test_a_collector_that_hangs_delays_no_message_and_fills_no_memory(
    blocked: Blocked, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Workbench(conf=TRACED)
    bench.enqueue(*(f"letter {n}" for n in range(12)))
    with caplog.at_level(logging.CRITICAL, "opentelemetry"):
        assert bench.replay().taken == 12
    assert blocked.asked.wait(5)
    assert not blocked.answer.is_set()
    assert set(bench.states().values()) == {"delivered"}


@pytest.mark.soak
def test_tracing_that_fails_fails_no_message_and_is_logged_once_a_turn(
    exported: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("canary")

    monkeypatch.setattr(message_trace, "contexts", fail)
    for conf in (TRACED, CONTINUED):
        bench = Workbench(conf=replace(conf, intent_size=1))
        assert bench.redrive("one", "two").taken == 2
    assert exported.get_finished_spans() == ()
    assert [record.getMessage() for record in caplog.records if record.name.endswith("attempt_spans")] == [
        "Tracing failed (ValueError). The other attempts of this task are not traced."
    ] * 2


def test_a_span_says_nothing_of_a_messages_content(exported: InMemorySpanExporter) -> None:
    bench = Workbench(conf=TRACED, fields=KEYED)
    bench.redrive("canary-body", key="canary-key", n="1", other="canary-attribute")
    (span,) = exported.get_finished_spans()
    assert "canary" not in span.to_json()


def test_switched_off_tracing_costs_nothing(exported: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_trace, "contexts", None)
    assert spans_for(BRISK, dict[int, Target]()) is None
    bench = Workbench()
    assert bench.redrive("letter", traceparent=PARENT).taken == 1
    assert exported.get_finished_spans() == ()


_IMPORTS = """
import importlib.abc, sys
class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] == "opentelemetry":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
import django
django.setup()
import redrive_service.celery, redrive_service.server, redrive_service.beat
from reprocessing import conf
from reprocessing.pipeline.replay import attempt_spans
from reprocessing.pipeline.replay.send import Sender
assert Sender(conf.current(), lambda: 0.0)._spans is None
attempt_spans.flush(conf.current(), 1)
print(sorted(name for name in sys.modules if "opentelemetry" in name or name.endswith("tracing.tracer")))
"""


@pytest.mark.soak  # a process that imports everything
def test_without_opentelemetry_nothing_imports_it() -> None:
    done = subprocess.run([sys.executable, "-c", _IMPORTS], capture_output=True, text=True, check=False, timeout=120)
    assert (done.stdout.splitlines()[-1:], done.returncode) == (["[]"], 0), done.stderr
