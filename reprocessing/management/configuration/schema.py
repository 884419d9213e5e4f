"""Make the JSON Schema of configuration files, with which editors complete and check a file."""

from __future__ import annotations

import json
from typing import Any

from reprocessing.domain.configuration.keys import CHECK_KEYS, KEYS, Kind
from reprocessing.domain.notifications.event import EventKind
from reprocessing.management.configuration.file_keys import check_keys, keys_of
from reprocessing.management.configuration.file_reader import REQUIRED

_TEXT: dict[str, Any] = {"type": "string"}
_TITLES = {
    Kind.POLICY: "Named sets of DLQ settings, which DLQs inherit and override",
    Kind.RATE_CLASS: "Rate limits and backoffs that rules assign to messages",
    Kind.TARGET: "Targets, by ARN (HTTP endpoints: by URL)",
    Kind.DLQ: "Dead-letter queues, by name",
    Kind.RULE: "Rules, by name; evaluated by position, then in the order in which they were added",
    Kind.NOTIFICATION: "Destinations of notifications, by name; REDRIVE_NOTIFY_<NAME> has the URL",
    Kind.APPROVAL: "Number of messages above which a second person is needed, for DLQs without approval_above; the "
    "only name here is all",
}


def schema_text() -> str:
    """Return the JSON Schema of configuration files as text."""
    return json.dumps(_schema(), indent=1) + "\n"


def _schema() -> dict[str, Any]:
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Configuration of the redrive service",
        "type": "object",
        "additionalProperties": False,
        "properties": {kind.value: _section(kind) for kind in Kind},
    }


def _section(kind: Kind) -> dict[str, Any]:
    properties = {key: _structured(key) or keys_of(kind)[key].schema() for key in KEYS[kind]}
    if kind is Kind.DLQ:
        properties["policy"] = {**_TEXT, "description": "policy whose settings the DLQ inherits"}
        properties["url"] = {**_TEXT, "description": "URL of the DLQ"}
    return {
        "description": _TITLES[kind],
        "type": ["object", "null"],
        "additionalProperties": {
            "type": ["object", "null"] if kind not in REQUIRED else "object",
            "additionalProperties": False,
            "required": list(REQUIRED.get(kind, ())),
            "properties": properties,
        },
    }


def _structured(key: str) -> dict[str, Any] | None:
    match key:
        case "sources":
            what = "target of each source, by the source's ARN: an ARN, the URL of an endpoint, or the word itself"
            return {"type": "object", "additionalProperties": _TEXT, "description": what}
        case "default_source":
            return {**_TEXT, "description": "ARN of the source that is assumed for messages without source information"}
        case "health_checks":
            return {
                "type": "array",
                "items": _check(),
                "description": "health checks of the target; nothing is sent to the target unless all succeed",
            }
        case "events":
            events = {"enum": [kind.value for kind in EventKind]}
            return {"type": "array", "items": events, "description": "events to send (default: all)"}
        case "dlqs":
            return {"type": "array", "items": _TEXT, "description": "only events of these DLQs (default: of all)"}
        case _:
            return None


def _check() -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "oneOf": [{"required": [key]} for key in CHECK_KEYS],
        "properties": {key: option.schema() for key, option in check_keys().items()},
    }
