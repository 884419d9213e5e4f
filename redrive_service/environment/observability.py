"""Read the variables of logs, traces and the liveness file."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

from redrive_service.environment.variables import Variables

LogFormat = Literal["text", "json"]
_TRACES: Final = "REDRIVE_TRACES"
_MESSAGES: Final = "REDRIVE_TRACE_MESSAGES"
_ALIVE: Final = "REDRIVE_ALIVE_FILE"
_NEEDED: Final = ("opentelemetry", "opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
INSTALL: Final = "pip install --require-hashes -r requirements-otel.txt"


def log_format(variables: Variables) -> LogFormat:
    """Return the format of log lines, from LOG_FORMAT: text (the default) or json."""
    value = variables.value("LOG_FORMAT").lower() or "text"
    if value == "json":
        return "json"
    if value != "text":
        variables.problems.append("LOG_FORMAT must be text (the default) or json.")
    return "text"


def traces(variables: Variables) -> bool:
    """Return whether attempts are traced (REDRIVE_TRACES). Add a problem if OpenTelemetry is needed, but missing."""
    wanted = variables.yes_or_no(_TRACES)
    if wanted and not all(map(_is_installed, _NEEDED)):
        cure = f"Install it: {INSTALL} (or unset {_TRACES})"
        variables.problems.append(f"{_TRACES} is yes, but OpenTelemetry is not installed completely. {cure}.")
    return wanted


def trace_messages(variables: Variables, *, traces: bool) -> bool:
    """Return whether messages are sent with the trace context of their attempt (REDRIVE_TRACE_MESSAGES)."""
    wanted = variables.yes_or_no(_MESSAGES)
    if wanted and not traces:
        variables.problems.append(f"{_MESSAGES} is yes, but {_TRACES} is not. Set {_TRACES}=yes, or unset {_MESSAGES}.")
    return wanted


def alive_file(variables: Variables) -> str:
    """Return the path of the file that workers and beat touch while they are alive, or "" if they touch no file."""
    value = variables.value(_ALIVE)
    if value and not (Path(value).is_absolute() and Path(value).parent.is_dir()):
        variables.problems.append(f"{_ALIVE} must be the absolute path of a file in an existing folder: /tmp/alive")
    return value


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a parent package is missing
        return False
