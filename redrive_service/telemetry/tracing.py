"""Sends spans to an OpenTelemetry collector: sets the provider of this process. Imported only if traces are on."""

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
_TO_END: Final = 5.0  # seconds that a process which ends waits for its last spans


def start(exporter: SpanExporter | None = None) -> None:
    """Set the provider, unless an instrumentation has set one. OTEL_… variables say where spans go, and which.

    Spans wait in a queue of 2,048 (OTEL_BSP_MAX_QUEUE_SIZE) for a thread that exports them. A full queue drops spans.
    The SDK makes queue and thread anew in a forked process.
    """
    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return
    if "service.name=" not in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", ""):
        os.environ.setdefault("OTEL_SERVICE_NAME", SERVICE_NAME)
    provider = TracerProvider(shutdown_on_exit=False)  # the SDK waits 30 s for an exporter that hangs
    provider.add_span_processor(BatchSpanProcessor(exporter or OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    atexit.register(flush, _TO_END)
