"""The action ReceiveMessage."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from redrive_service.sandbox.sqs.api.errors import SqsError, invalid_value
from redrive_service.sandbox.sqs.api.message_content import TRACE_HEADER, Content, digest_of
from redrive_service.sandbox.sqs.api.parameters import (
    Answer,
    Request,
    identifier,
    required_text,
    texts,
    whole,
    whole_between,
)
from redrive_service.sandbox.sqs.queues.account import Account
from redrive_service.sandbox.sqs.queues.attributes import KNOWN, unknown_attribute
from redrive_service.sandbox.sqs.queues.fifo import FifoQueue
from redrive_service.sandbox.sqs.queues.message import IN_FLIGHT, Message
from redrive_service.sandbox.sqs.queues.queue import LONGEST_VISIBILITY, Queue

# The server adds this parameter for a fault: seconds after which messages are visible again, too early.
HIDDEN_FOR: Final = "SandboxHiddenFor"
_MOST_MESSAGES: Final = 10
_LONGEST_WAIT: Final = 20  # seconds (AWS, ReceiveMessage, WaitTimeSeconds)
_SENDER_ID: Final = "AIDASANDBOXSANDBOX000"
_ALL: Final = "All"
_EVERYTHING: Final = (_ALL,)
SYSTEM_ATTRIBUTES: Final = (
    "SenderId", "SentTimestamp", "ApproximateReceiveCount", "ApproximateFirstReceiveTimestamp", "SequenceNumber",
    "MessageDeduplicationId", "MessageGroupId", TRACE_HEADER, "DeadLetterQueueSourceArn",
)  # fmt: skip


def receive_message(account: Account, request: Request) -> Answer:
    """Return up to ten messages, and hide them for the visibility timeout. Without messages, the answer is empty.

    For long polling, `account.record.wait` then says for how many seconds the server repeats the call.
    """
    queue = account.queue_at(required_text(request, "QueueUrl"))
    most = whole_between(request, "MaxNumberOfMessages", 1, _MOST_MESSAGES) or 1
    visibility = whole_between(request, "VisibilityTimeout", 0, LONGEST_VISIBILITY)
    wait = _read_wait(request)
    attempt_id = _read_attempt(queue, request)
    system_names = _read_system_names(request)
    attribute_names = _read_attribute_names(request)
    if visibility is None:
        visibility = queue.settings.visibility
    hidden = whole(request, HIDDEN_FOR)
    seconds = visibility if hidden is None else hidden
    messages = _hand_out(account, queue, min(most, _room(queue)), seconds, attempt_id)
    if not messages:
        account.record.wait = queue.settings.wait if wait is None else wait
        return {}
    account.record.changed = True
    now = account.now
    promised_until = now + visibility if seconds < visibility else 0.0
    received = account.record.received
    for message in messages:
        received.append((message.message_id, message.receive_count, now < message.promised_until))
        message.promised_until = promised_until
    return {"Messages": [_show(message, system_names, attribute_names) for message in messages]}


def _hand_out(account: Account, queue: Queue, most: int, visibility: int, attempt_id: str | None) -> list[Message]:
    now = account.now
    if isinstance(queue, FifoQueue) and attempt_id is not None:
        repeated = queue.attempts.repeat(attempt_id, now)
        for message in repeated:
            queue.hide_again(message, visibility, now)
        if repeated:
            queue.attempts.remember(attempt_id, repeated, now)
            return repeated
    if most <= 0:
        return []
    taken, spent = queue.take(most, account.max_receive_count(queue))
    queue.hand_out(taken, visibility, now)
    for message in spent:
        account.dead_letter(queue, message)
        account.record.changed = True
    if taken and isinstance(queue, FifoQueue) and attempt_id is not None:
        queue.attempts.remember(attempt_id, taken, now)
    return taken


def _room(queue: Queue) -> int:
    """Return how many more messages may be in flight. Raises SqsError if a standard queue has reached its limit."""
    room = queue.in_flight_limit - queue.counts[IN_FLIGHT]
    if room <= 0 and not queue.fifo:
        raise SqsError("OverLimit", f"The maximum number of in flight messages is reached: {queue.in_flight_limit}.")
    return room


# -- parameters


def _read_wait(request: Request) -> int | None:
    wait = whole(request, "WaitTimeSeconds")
    if wait is not None and not 0 <= wait <= _LONGEST_WAIT:
        raise invalid_value(wait, "WaitTimeSeconds", f"Must be >= 0 and <= {_LONGEST_WAIT}, if provided.")
    return wait


def _read_attempt(queue: Queue, request: Request) -> str | None:
    attempt_id = identifier(request, "ReceiveRequestAttemptId")
    if attempt_id is not None and not queue.fifo:
        reason = "The request include parameter that is not valid for this queue type."
        raise invalid_value(attempt_id, "ReceiveRequestAttemptId", reason)
    return attempt_id


def _read_system_names(request: Request) -> tuple[str, ...]:
    """Return the names of the requested system attributes, from both the new and the old parameter.

    Raises:
        SqsError: a name is unknown.
    """
    names = {*texts(request, "MessageSystemAttributeNames"), *texts(request, "AttributeNames")}
    if not names:
        return ()
    if _ALL in names:
        return SYSTEM_ATTRIBUTES
    for name in sorted(names):
        if name not in SYSTEM_ATTRIBUTES and name not in KNOWN:
            raise unknown_attribute(name)
    return tuple(name for name in SYSTEM_ATTRIBUTES if name in names)


def _read_attribute_names(request: Request) -> Sequence[str]:
    names = texts(request, "MessageAttributeNames")
    return _EVERYTHING if _ALL in names or ".*" in names else names


# -- what the consumer receives


def _show(message: Message, system_names: tuple[str, ...], attribute_names: Sequence[str]) -> Answer:
    content = message.content
    shown: Answer = {
        "MessageId": message.message_id,
        "ReceiptHandle": message.handle,
        "MD5OfBody": content.md5,
        "Body": content.body,
    }
    if system_names:
        attributes = _system_attributes(message)
        if system_names is not SYSTEM_ATTRIBUTES:
            attributes = {name: value for name, value in attributes.items() if name in system_names}
        shown["Attributes"] = attributes
    if attribute_names and content.attributes:
        if attribute_names is _EVERYTHING:
            shown["MD5OfMessageAttributes"] = content.attributes_md5
            shown["MessageAttributes"] = content.attributes
        else:
            shown.update(_choose(content, attribute_names))
    return shown


def _system_attributes(message: Message) -> dict[str, str]:
    """Return the system attributes that this message has."""
    attributes = {
        "SenderId": _SENDER_ID,
        "SentTimestamp": _milliseconds(message.sent_at),
        "ApproximateReceiveCount": str(message.receive_count),
    }
    if message.first_received_at is not None:
        attributes["ApproximateFirstReceiveTimestamp"] = _milliseconds(message.first_received_at)
    if message.sequence_number is not None:
        attributes["SequenceNumber"] = message.sequence_number
    if message.deduplication_id is not None:
        attributes["MessageDeduplicationId"] = message.deduplication_id
    if message.group is not None:
        attributes["MessageGroupId"] = message.group
    if message.content.trace is not None:
        attributes[TRACE_HEADER] = message.content.trace
    if message.source_arn is not None:
        attributes["DeadLetterQueueSourceArn"] = message.source_arn
    return attributes


@lru_cache(maxsize=256)
def _milliseconds(seconds: float) -> str:
    """Return a time as text in milliseconds. Results are cached, because messages often have equal times."""
    return str(int(seconds * 1000))


def _choose(content: Content, names: Sequence[str]) -> Answer:
    """Return the message attributes that are requested by name or by prefix (`prefix.*`), and their MD5 digest."""
    prefixes = tuple(name.removesuffix(".*") for name in names if name.endswith(".*"))
    chosen = {
        name: value
        for name, value in content.attributes.items()
        if name in names or (prefixes and name.startswith(prefixes))
    }
    if not chosen:
        return {}
    every = len(chosen) == len(content.attributes)
    return {
        "MD5OfMessageAttributes": content.attributes_md5 if every else digest_of(chosen),
        "MessageAttributes": chosen,
    }
