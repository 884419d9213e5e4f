"""Set up OpenTelemetry in this process, to export spans to a collector. Imported only with REDRIVE_TRACES=yes."""

from __future__ import annotations

import atexit
import os
from typing import Final

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from reprocessing.gateways.tracing.tracer import flush

SERVICE_NAME: Final = "redrive-service"
_FLUSH_SECONDS: Final = 5.0  # seconds for which an exiting process waits for the export of its last spans


def start(exporter: SpanExporter | None = None) -> None:
    """Start the export of spans, unless another instrumentation has set a tracer provider.

    Spans wait in a queue of 2,048 (OTEL_BSP_MAX_QUEUE_SIZE) for a thread that exports them. If the queue is full, spans
    are dropped. In a forked process, the SDK makes a new queue and thread. The environment variables OTEL_… configure
    the export.
    """
    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return
    if "service.name=" not in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", ""):
        os.environ.setdefault("OTEL_SERVICE_NAME", SERVICE_NAME)
    provider = TracerProvider(shutdown_on_exit=False)  # else the SDK waits 30 s for an exporter that hangs
    provider.add_span_processor(BatchSpanProcessor(exporter or OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    atexit.register(flush, _FLUSH_SECONDS)
