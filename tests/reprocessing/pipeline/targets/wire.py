"""Letters as they stand in the requests that carry them, and in what is received, read without any of our code."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.reprocessing.gateways.stand_ins import Asked

Typed = dict[str, tuple[str, str | bytes]]


@dataclass(frozen=True)
class Sent:
    """One letter, as it was put on the wire or as it arrived."""

    text: str
    attributes: Typed = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    group: str | None = None
    deduplication: str | None = None
    trace: str | None = None

    @property
    def key(self) -> object:
        return self.headers.get("idempotency-key") or self.attributes.get("IdempotencyKey", ("", ""))[1]

    @property
    def mark(self) -> object:
        return self.headers.get("redrive-id") or self.attributes.get("RedriveId", ("", ""))[1]


def entry(one: Mapping[str, Any]) -> Sent:
    return Sent(
        one["MessageBody"], _typed(one.get("MessageAttributes", {})), group=one.get("MessageGroupId"),
        deduplication=one.get("MessageDeduplicationId"),
        trace=one.get("MessageSystemAttributes", {}).get("AWSTraceHeader", {}).get("StringValue"),
    )  # fmt: skip


def received(one: Mapping[str, Any]) -> Sent:
    system = one["Attributes"]
    return Sent(
        one["Body"], _typed(one.get("MessageAttributes", {})), group=system.get("MessageGroupId"),
        deduplication=system.get("MessageDeduplicationId"), trace=system.get("AWSTraceHeader"),
    )  # fmt: skip


def post(letter: Asked) -> Sent:
    return Sent(letter.body.decode(), headers=letter.headers)


def member(one: Mapping[str, str]) -> Sent:
    found: Typed = {}
    for name in [name for name in one if name.startswith("MessageAttributes.entry.") and name.endswith(".Name")]:
        value = name.removesuffix("Name") + "Value."
        raw = one.get(f"{value}BinaryValue")
        held: str | bytes = base64.b64decode(raw) if raw is not None else one[f"{value}StringValue"]
        found[one[name]] = (one[f"{value}DataType"], held)
    group, deduplication = one.get("MessageGroupId"), one.get("MessageDeduplicationId")
    return Sent(one["Message"], found, group=group, deduplication=deduplication)


def _typed(attributes: Mapping[str, Mapping[str, Any]]) -> Typed:
    made: Typed = {}
    for name, one in attributes.items():
        raw = one.get("BinaryValue")
        held = base64.b64decode(raw) if isinstance(raw, str) else raw
        made[name] = (one["DataType"], one["StringValue"] if held is None else held)
    return made
