"""Show how queues in SQS differ from the queues that provision_queues would create, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final, assert_never

from reprocessing.domain.aws import queue_spec
from reprocessing.domain.aws.queue_spec import (
    AttributeContradicts,
    AttributeDiffers,
    AttributeKept,
    Difference,
    QueueMissing,
)
from reprocessing.domain.runs.forecast import duration_in_words
from reprocessing.pipeline.aws.provision import QueueComparison, Step

_ATTRIBUTES: Final = {
    queue_spec.VISIBILITY: "visibility timeout",
    queue_spec.RETENTION: "retention",
    queue_spec.WAIT: "long poll",
    queue_spec.BY_CONTENT: "deduplication by content",
    queue_spec.SSE: "encryption by SQS",
    queue_spec.KEY: "KMS key",
    queue_spec.REDRIVE: "redrive policy",
    queue_spec.ALLOW: "redrive allow policy",
}


def lines(comparisons: Iterable[QueueComparison]) -> Iterable[str]:
    """Yield a line for each queue, followed by a line for each attribute whose value is not the wanted value."""
    for one in comparisons:
        yield f"{one.wanted.name}: {_state(one)}"
        yield from (f"  {line(each)}" for each in one.differences)
        if one.found is None and one.wanted.dlq:
            yield f"  redrive policy to {one.wanted.dlq} after {one.wanted.receives.value} receives"
        if one.found is None and one.wanted.sources:
            yield f"  redrive allow policy: only {', '.join(one.wanted.sources)}"


def line(one: Difference) -> str:
    """Return a line about one difference: the queue is missing, or an attribute does not have the wanted value."""
    match one:
        case QueueMissing():
            return "to be created: " + ", ".join(
                f"{_ATTRIBUTES[name]} {value(name, text)}"
                for name, text in one.attributes.items()
                if name in _ATTRIBUTES
            )
        case AttributeDiffers():
            return f"{_ATTRIBUTES[one.attribute]}: {_change(one)}"
        case AttributeKept():
            is_, wanted = value(one.attribute, one.found), value(one.attribute, one.wanted)
            return f"{_ATTRIBUTES[one.attribute]}: stays {is_}, instead of {wanted}: {one.why}"
        case AttributeContradicts():
            return f"REFUSED {_ATTRIBUTES[one.attribute]}: {one.what}.\n          {one.cure}"
        case _:
            assert_never(one)


def done(step: Step) -> str:
    """Return a line about a queue that was created, or whose attributes were changed."""
    return f"{step.name}: " + "; ".join(
        "created" if isinstance(one, QueueMissing) else f"{_ATTRIBUTES[one.attribute]} changed: {_change(one)}"
        for one in step.differences
    )


def in_json(comparisons: Iterable[QueueComparison]) -> list[dict[str, Any]]:
    """Return as JSON how each queue differs from the wanted queue. Values of attributes are written as in SQS."""
    return [
        {
            "queue": one.wanted.name,
            "arn": one.found.arn if one.found else None,
            "differences": [_object(each) for each in one.differences],
        }
        for one in comparisons
    ]


def value(attribute: str, text: str) -> str:
    """Return the value of an SQS attribute for people, such as "30 s". `text` is the value as SQS writes it."""
    if not text:
        return "none"
    match attribute:
        case queue_spec.VISIBILITY | queue_spec.WAIT:
            said = f"{text} s"
        case queue_spec.RETENTION:
            said = duration_in_words(int(text)).removeprefix("about ")
        case queue_spec.REDRIVE:
            policy = json.loads(text)
            said = f"to {policy['deadLetterTargetArn']} after {policy['maxReceiveCount']} receives"
        case queue_spec.ALLOW if text.startswith("{"):
            said = f"only {', '.join(json.loads(text)['sourceQueueArns'])}"
        case queue_spec.BY_CONTENT | queue_spec.SSE:
            said = "on" if text == "true" else "off"
        case _:
            said = {"allowAll": "all queues", "byQueue": "by name"}.get(text, text)
    return said


def _state(one: QueueComparison) -> str:
    if one.found is None:
        return "missing"
    if one.is_contradicted:
        return "refused"
    return "differs" if one.is_to_be_changed else "as wanted"


def _change(one: AttributeDiffers) -> str:
    return f"{value(one.attribute, one.found)} -> {value(one.attribute, one.wanted)}"


def _object(one: Difference) -> dict[str, Any]:
    match one:
        case QueueMissing():
            return {"is": "missing", "wanted": dict(one.attributes)}
        case AttributeDiffers():
            return {"is": "to be changed", "attribute": one.attribute, "found": one.found, "wanted": one.wanted}
        case AttributeKept():
            found = {"attribute": one.attribute, "found": one.found, "wanted": one.wanted}
            return {"is": "kept", **found, "why": one.why}
        case AttributeContradicts():
            return {"is": "refused", "attribute": one.attribute, "what": one.what, "cure": one.cure}
        case _:
            assert_never(one)
