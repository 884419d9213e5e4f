"""Make OpenTelemetry spans.

OpenTelemetry is an optional dependency, so import `tracer` only when traces are switched on.
"""
