"""Make a span for each attempt with OpenTelemetry's API. The process that uses this module sets the tracer provider."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final, TypeAlias

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.trace.span import TraceState

from reprocessing.domain.message.trace_context import TRACEPARENT, TRACESTATE, TraceContext
from reprocessing.domain.replay.attempt_span import AttemptFacts, SpanResult

StartedSpan: TypeAlias = Span
_NANOSECONDS: Final = 1_000_000_000


class AttemptTracer:
    """Starts the spans of attempts to send a message.

    No method waits for the network: OpenTelemetry exports ended spans in its own thread.
    """

    def __init__(self) -> None:
        self._tracer = trace.get_tracer("reprocessing")

    def start(self, facts: AttemptFacts, contexts: Sequence[TraceContext], *, opened_at: datetime) -> StartedSpan:
        """Start and return a span, in the trace of the first context. The other contexts become links of the span."""
        parents = [_span_context(context) for context in contexts]
        return self._tracer.start_span(
            facts.name,
            context=trace.set_span_in_context(NonRecordingSpan(parents[0]), Context()) if parents else Context(),
            kind=SpanKind.PRODUCER,
            attributes=facts.attributes,
            links=[Link(other) for other in parents[1:]],
            start_time=_nanoseconds(opened_at),
        )


def end(span: StartedSpan, result: SpanResult, *, opened_at: datetime, took: float) -> None:
    """End a span: add its result, and set its end time to `took` seconds after `opened_at`."""
    span.set_attributes(result.attributes)
    if result.error:
        span.set_status(Status(StatusCode.ERROR))
    span.end(_nanoseconds(opened_at) + max(0, int(took * _NANOSECONDS)))


def fields_of(span: StartedSpan) -> dict[str, str]:
    """Return the W3C trace fields to add to a message, so that its consumer's span becomes a child of this span.

    The result is empty if the span is not recorded, such as when it was not sampled.
    """
    context = span.get_span_context()
    if not span.is_recording() or not context.is_valid:
        return {}
    parent = f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
    state = context.trace_state.to_header()
    return {TRACEPARENT: parent, **({TRACESTATE: state} if state else {})}


def flush(seconds: float) -> None:
    """Export the ended spans, and wait at most `seconds` for the export."""
    force = getattr(trace.get_tracer_provider(), "force_flush", None)
    if force is None:
        return
    thread = threading.Thread(target=force, name="last spans", daemon=True)
    with suppress(RuntimeError):  # while the interpreter exits, no thread can be started
        thread.start()
        thread.join(seconds)


def _span_context(context: TraceContext) -> SpanContext:
    return SpanContext(
        context.trace_id, context.span_id, is_remote=True, trace_flags=TraceFlags(context.flags),
        trace_state=TraceState(list(context.state)),
    )  # fmt: skip


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * _NANOSECONDS)
