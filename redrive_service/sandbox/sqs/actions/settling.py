"""The actions DeleteMessage and ChangeMessageVisibility, and their batch actions."""

from redrive_service.sandbox.sqs.api.batch_entries import read_entries, run_batch
from redrive_service.sandbox.sqs.api.errors import (
    SqsError,
    handle_has_expired,
    invalid_value,
    missing_parameter,
)
from redrive_service.sandbox.sqs.api.parameters import Answer, Request, required_text, whole_between
from redrive_service.sandbox.sqs.api.receipt_handles import message_id_in
from redrive_service.sandbox.sqs.queues.account import Account
from redrive_service.sandbox.sqs.queues.message import IN_FLIGHT
from redrive_service.sandbox.sqs.queues.queue import LONGEST_VISIBILITY, Queue


def delete_message(account: Account, request: Request) -> Answer:
    """Delete the message of a receipt handle. If the message was deleted before, this is no error."""
    return _delete(account, account.queue_at(required_text(request, "QueueUrl")), request)


def delete_message_batch(account: Account, request: Request) -> Answer:
    """Delete the messages of up to ten receipt handles. Each delete succeeds or fails by itself."""
    queue = account.queue_at(required_text(request, "QueueUrl"))
    return run_batch(read_entries(request, "Delete"), lambda entry: _delete(account, queue, entry))


def change_message_visibility(account: Account, request: Request) -> Answer:
    """Restart the visibility timeout of a message in flight.

    On a standard queue, the receipt handle of an earlier receive also restarts the timeout, even while another consumer
    has the message. Recorded answers of AWS show this. AWS's documentation does not mention it.
    """
    return _change_visibility(account, account.queue_at(required_text(request, "QueueUrl")), request)


def change_message_visibility_batch(account: Account, request: Request) -> Answer:
    """Restart the visibility timeouts of up to ten messages. Each change succeeds or fails by itself."""
    queue = account.queue_at(required_text(request, "QueueUrl"))
    entries = read_entries(request, "ChangeVisibility")
    return run_batch(entries, lambda entry: _change_visibility(account, queue, entry))


def _delete(account: Account, queue: Queue, request: Request) -> Answer:
    """Delete a message, if the receipt handle is the latest handle of the message.

    A standard queue accepts the latest handle even after the visibility timeout. It also accepts an older handle, but
    then does not delete the message. A FIFO queue refuses both as expired.
    """
    handle = required_text(request, "ReceiptHandle")
    message = queue.find(handle)
    if message is None:
        account.record.deleted.append((message_id_in(handle), False))
        return {}
    current = message.handle == handle
    if queue.fifo and not (current and message.state == IN_FLIGHT):
        raise handle_has_expired(handle)
    if current:
        queue.remove(message)
        account.record.changed = True
    account.record.deleted.append((message.message_id, current))
    return {}


def _change_visibility(account: Account, queue: Queue, request: Request) -> Answer:
    handle = required_text(request, "ReceiptHandle")
    visibility = whole_between(request, "VisibilityTimeout", 0, LONGEST_VISIBILITY)
    if visibility is None:
        raise missing_parameter("VisibilityTimeout")
    message = queue.find(handle)
    if message is not None and queue.fifo and not (message.handle == handle and message.state == IN_FLIGHT):
        raise handle_has_expired(handle)
    if message is None:
        reason = "Message does not exist or is not available for visibility timeout change."
        raise invalid_value(handle, "ReceiptHandle", reason)
    if message.state != IN_FLIGHT:
        raise SqsError("MessageNotInflight", "The specified message isn't in flight.")
    queue.check_time_left(message, visibility, account.now)
    queue.hide_again(message, visibility, account.now)
    account.record.changed = True
    return {}
