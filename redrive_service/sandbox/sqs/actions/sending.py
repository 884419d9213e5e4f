"""The actions SendMessage and SendMessageBatch."""

from hashlib import sha256
from typing import Final

from redrive_service.sandbox.sqs.api.batch_entries import read_entries, run_batch
from redrive_service.sandbox.sqs.api.call_record import Sent
from redrive_service.sandbox.sqs.api.errors import SqsError, invalid_parameter, invalid_value, missing_parameter
from redrive_service.sandbox.sqs.api.message_content import Content, no_body, read_content, texts_in, too_large
from redrive_service.sandbox.sqs.api.parameters import Answer, Request, identifier, required_text, text, whole_between
from redrive_service.sandbox.sqs.queues.account import Account
from redrive_service.sandbox.sqs.queues.fifo import FifoQueue
from redrive_service.sandbox.sqs.queues.message import Message
from redrive_service.sandbox.sqs.queues.queue import Queue

_LONGEST_DELAY: Final = 900  # seconds (AWS, SendMessage, DelaySeconds)
# Max bytes of the bodies and attributes of all entries together (AWS, SendMessageBatch).
LARGEST_BATCH: Final = 1_048_576
_OPTIONAL: Final = frozenset({"DelaySeconds", "MessageGroupId", "MessageDeduplicationId"})
_WRONG_QUEUE_TYPE: Final = "The request include parameter that is not valid for this queue type."


def send_message(account: Account, request: Request) -> Answer:
    """Put one message into a queue, and return its id and digests.

    Raises:
        SqsError: the message is invalid or too large.
    """
    queue = account.queue_at(required_text(request, "QueueUrl"))
    content = _read_or_refuse(queue, request, _check_parameters(queue, request))
    if isinstance(content, SqsError):
        raise content
    largest = queue.settings.largest_message
    if content.size > largest:
        raise too_large(largest, in_batch=False)
    return _accept(account, queue, request, content)


def send_message_batch(account: Account, request: Request) -> Answer:
    """Put up to ten messages into a queue. Each message is accepted or refused by itself.

    If one message lacks a required parameter, or the messages have more than 1 MiB together, all are refused.
    """
    queue = account.queue_at(required_text(request, "QueueUrl"))
    entries = read_entries(request, "Send")
    bodies = [_check_parameters(queue, entry) for entry in entries]
    contents = [_read_or_refuse(queue, entry, body) for entry, body in zip(entries, bodies, strict=True)]
    total = sum(content.size for content in contents if isinstance(content, Content))
    if total > LARGEST_BATCH:
        sentence = f"Batch requests cannot be longer than {LARGEST_BATCH} bytes. You have sent {total} bytes."
        raise SqsError("BatchRequestTooLong", sentence)
    reading = iter(contents)
    largest = queue.settings.largest_message

    def send_one(entry: Request) -> Answer:
        content = next(reading)
        if isinstance(content, SqsError):
            raise content
        if content.size > largest:
            raise too_large(largest, in_batch=True)
        return _accept(account, queue, entry, content)

    return run_batch(entries, send_one)


def _read_or_refuse(queue: Queue, entry: Request, body: str) -> Content | SqsError:
    try:
        if not _OPTIONAL.isdisjoint(entry):
            _check_optional(queue, entry)
        return read_content(entry, body)
    except SqsError as refusal:
        return refusal


def _check_optional(queue: Queue, entry: Request) -> None:
    delay = whole_between(entry, "DelaySeconds", 0, _LONGEST_DELAY)
    if queue.fifo and delay:
        raise invalid_value(delay, "DelaySeconds", _WRONG_QUEUE_TYPE)
    identifier(entry, "MessageGroupId")
    deduplication_id = identifier(entry, "MessageDeduplicationId")
    if deduplication_id is not None and not queue.fifo:
        raise invalid_value(deduplication_id, "MessageDeduplicationId", _WRONG_QUEUE_TYPE)


def _check_parameters(queue: Queue, entry: Request) -> str:
    """Return the body of an entry. Refuse an entry without a required parameter."""
    body = entry.get("MessageBody")
    if not body or not isinstance(body, str):
        raise no_body(body)
    if queue.fifo:
        if entry.get("MessageGroupId") is None:
            raise missing_parameter("MessageGroupId")
        if text(entry, "MessageDeduplicationId") is None and not queue.settings.content_based:
            raise invalid_parameter(
                "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided "
                "explicitly",
            )
    return body


def _accept(account: Account, queue: Queue, entry: Request, content: Content) -> Answer:
    if isinstance(queue, FifoQueue):
        message_id, sequence_number = _accept_in_order(account, queue, entry, content)
    else:
        message_id, sequence_number = _accept_loosely(account, queue, entry, content), None
    answer: Answer = {"MessageId": message_id, "MD5OfMessageBody": content.md5}
    if content.attributes_md5 is not None:
        answer["MD5OfMessageAttributes"] = content.attributes_md5
    if content.trace_md5 is not None:
        answer["MD5OfMessageSystemAttributes"] = content.trace_md5
    if sequence_number is not None:
        answer["SequenceNumber"] = sequence_number
    return answer


def _accept_loosely(account: Account, queue: Queue, entry: Request, content: Content) -> str:
    now = account.now
    delay = entry.get("DelaySeconds") if "DelaySeconds" in entry else None
    seconds = delay if isinstance(delay, int) else queue.settings.delay
    message_id = account.new_id()
    group = text(entry, "MessageGroupId") if "MessageGroupId" in entry else None
    message = Message(queue, queue.next_key(), message_id, content, now, group)
    queue.put(message, now + seconds if seconds else now, now)
    record = account.record
    record.changed = True
    record.sent.append((message_id, group, None, None, content.md5, texts_in(content.attributes)))
    return message_id


def _accept_in_order(account: Account, queue: FifoQueue, entry: Request, content: Content) -> tuple[str, str]:
    now = account.now
    group = required_text(entry, "MessageGroupId")
    deduplication_id = text(entry, "MessageDeduplicationId") or sha256(content.body.encode()).hexdigest()
    key = queue.deduplication_key(deduplication_id, group)
    first = queue.deduplication.find(key, now)
    if first is None:
        message = Message(
            queue=queue,
            key=queue.next_key(),
            message_id=account.new_id(),
            content=content,
            sent_at=now,
            group=group,
            deduplication_id=deduplication_id,
            sequence_number=account.next_sequence_number(),
        )
        known = message.message_id, message.sequence_number or ""
        queue.put(message, now + queue.settings.delay, now)
        queue.deduplication.remember(key, *known, now)
        account.record.changed = True
    else:
        known = first
    account.record.sent.append(
        Sent(
            known[0],
            group,
            deduplication_id,
            known[1],
            content.md5,
            texts_in(content.attributes),
            duplicate=first is not None,
        ),
    )
    return known
