"""Make spans with OpenTelemetry, which is an optional dependency. Import `tracer` only when traces are switched on."""
