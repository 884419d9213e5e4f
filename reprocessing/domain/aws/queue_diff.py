"""Compare an existing queue with the wanted queue. A value is lowered only if a person set the lower value."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from reprocessing.domain.aws.queue_spec import (
    ALLOW,
    BY_CONTENT,
    KEY,
    MOST_ALLOWED,
    REDRIVE,
    RETENTION,
    SSE,
    VISIBILITY,
    WAIT,
    AttributeContradicts,
    AttributeDiffers,
    AttributeKept,
    Difference,
    ExistingQueue,
    Precedence,
    QueueMissing,
    WantedNumber,
    WantedQueue,
)


def differences(wanted: WantedQueue, found: ExistingQueue | None) -> tuple[Difference, ...]:
    """Return how the existing queue `found` differs from the wanted queue; empty: the queue is as wanted.

    `found` is None if the queue does not exist.
    """
    if found is None:
        return (QueueMissing(_bare(wanted)),)
    return (
        *_number(VISIBILITY, wanted.visibility, found.visibility),
        *_number(RETENTION, wanted.retention, found.retention), *_number(WAIT, wanted.wait, found.wait),
        *_number(BY_CONTENT, WantedNumber(int(wanted.by_content), Precedence.AT_LEAST), int(found.by_content)),
        *_encryption(wanted, found), *_circle(wanted, found), *_chain(wanted, found), *_redrive(wanted, found),
        *_allow(wanted, found),
    )  # fmt: skip


def _bare(wanted: WantedQueue) -> dict[str, str]:
    """Return the attributes of a new queue, without policies: policies name other queues, which may not exist yet."""
    encryption = {KEY: wanted.key} if wanted.key else {SSE: "true"}
    numbers = {VISIBILITY: wanted.visibility, RETENTION: wanted.retention, WAIT: wanted.wait}
    of_fifo = {"FifoQueue": "true", BY_CONTENT: _text(BY_CONTENT, int(wanted.by_content))} if wanted.fifo else {}
    return {**{name: str(number.value) for name, number in numbers.items()}, **encryption, **of_fifo}


def _text(attribute: str, value: int) -> str:
    return ("true" if value else "false") if attribute == BY_CONTENT else str(value)


def _number(attribute: str, want: WantedNumber, found: int) -> Iterator[AttributeDiffers | AttributeKept]:
    if found == want.value:
        return
    texts = _text(attribute, found), _text(attribute, want.value)
    if want.precedence is Precedence.AT_FIRST or (want.precedence is Precedence.AT_LEAST and found > want.value):
        yield AttributeKept(attribute, *texts, want.precedence.value)
    else:
        yield AttributeDiffers(attribute, *texts)


def _encryption(wanted: WantedQueue, found: ExistingQueue) -> Iterator[Difference]:
    if wanted.key and not found.key:
        yield AttributeDiffers(KEY, "", wanted.key)
    elif wanted.key and not _same_key(wanted.key, found.key):
        why = "its consumers may have no permission for another key; change the key by hand"
        yield AttributeKept(KEY, found.key, wanted.key, why)
    elif found.key and not wanted.key:
        yield AttributeKept(KEY, found.key, "", "a KMS key protects the queue better than SQS's own key")
    elif not found.key and not found.sse:
        yield AttributeDiffers(SSE, "false", "true")


def _same_key(key: str, other: str) -> bool:
    """Return whether both texts (ARN, id or alias) name the same KMS key."""
    return key == other or key.endswith((f"/{other}", f":{other}")) or other.endswith((f"/{key}", f":{key}"))


def _circle(wanted: WantedQueue, found: ExistingQueue) -> Iterator[Difference]:
    """Yield a contradiction if the queue's own DLQ is one of its source queues: messages would move in circles."""
    if found.redrive_policy and found.redrive_policy[0] in {found.arn_beside(name) for name in wanted.sources}:
        other = found.redrive_policy[0].rpartition(":")[2]
        yield AttributeContradicts(
            REDRIVE,
            f"its DLQ is {other}, and it would be the DLQ of {other}: failed messages would circulate between both",
            f"Name another queue than {wanted.name} with --dlq.",
        )


def _chain(wanted: WantedQueue, found: ExistingQueue) -> Iterator[Difference]:
    """Yield a contradiction if an existing DLQ would get a DLQ of its own, which no person asked for."""
    named = found.allowed if found.permission == "byQueue" else ()
    if wanted.dlq and not wanted.chains and found.redrive_policy is None and (sources := found.sources or named):
        names = ", ".join(arn.rpartition(":")[2] for arn in sources)
        yield AttributeContradicts(
            ALLOW,
            f"it is itself the DLQ of {names}",
            f"Name its source queue instead; or, if the DLQ needs a DLQ of its own, add --dlq {wanted.dlq}.",
        )


def _redrive(wanted: WantedQueue, found: ExistingQueue) -> Iterator[Difference]:
    if not wanted.dlq:
        return
    arn = found.arn_beside(wanted.dlq)
    if found.redrive_policy is None:
        yield AttributeDiffers(REDRIVE, "", _policy(arn, wanted.receives.value))
        return
    into, receives = found.redrive_policy
    if into != arn:
        yield AttributeContradicts(
            REDRIVE,
            f"its DLQ is already {into}",
            f"Use that DLQ (--dlq {into.rpartition(':')[2]}), or change the redrive policy by hand.",
        )
        return
    for difference in _number(REDRIVE, wanted.receives, receives):
        yield replace(difference, found=_policy(arn, receives), wanted=_policy(arn, wanted.receives.value))


def _allow(wanted: WantedQueue, found: ExistingQueue) -> Iterator[Difference]:
    """Yield how the queue's RedriveAllowPolicy has to change. Its present source queues stay allowed."""
    if not wanted.sources:
        return
    needed = {found.arn_beside(name) for name in wanted.sources} | set(found.sources)
    if found.permission == "denyAll":
        cure = "Name another queue with --dlq, or change the redrive allow policy by hand."
        yield AttributeContradicts(ALLOW, "its redrive allow policy forbids its use as a DLQ (denyAll)", cure)
    elif found.permission == "byQueue":
        both = (*found.allowed, *sorted(needed.difference(found.allowed)))
        if len(both) > max(MOST_ALLOWED, len(found.allowed)):
            cure = "Name another queue with --dlq, or remove unused queues from the policy by hand."
            yield AttributeContradicts(
                ALLOW, f"it names {len(found.allowed)} source queues, and SQS accepts at most {MOST_ALLOWED}", cure
            )
        elif both != found.allowed:
            yield AttributeDiffers(ALLOW, _allowing(found.allowed), _allowing(both))
    elif len(needed) > MOST_ALLOWED:
        why = f"it is the DLQ of {len(needed)} queues, and SQS accepts at most {MOST_ALLOWED} by name"
        yield AttributeKept(ALLOW, "allowAll", "byQueue", why)
    else:
        yield AttributeDiffers(ALLOW, "allowAll", _allowing(tuple(sorted(needed))))


def _policy(arn: str, receives: int) -> str:
    return json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": receives})


def _allowing(arns: tuple[str, ...]) -> str:
    return json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": list(arns)})
