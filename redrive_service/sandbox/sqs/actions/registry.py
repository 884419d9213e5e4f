"""A table of the functions that execute the 23 actions of the SQS API, by the action's name."""

from collections.abc import Callable, Mapping
from typing import Final

from redrive_service.sandbox.sqs.actions import administration, move_tasks, receiving, sending, settling, tags
from redrive_service.sandbox.sqs.api.errors import SqsError
from redrive_service.sandbox.sqs.api.parameters import Answer, Request, required_text
from redrive_service.sandbox.sqs.queues.account import Account


def _no_permissions(account: Account, request: Request) -> Answer:
    account.queue_at(required_text(request, "QueueUrl"))
    raise SqsError("UnsupportedOperation", "This local SQS has one account and no permissions to give or take.")


Action = Callable[[Account, Request], Answer]

ACTIONS: Final[Mapping[str, Action]] = {
    "AddPermission": _no_permissions,
    "CancelMessageMoveTask": move_tasks.cancel_move_task,
    "ChangeMessageVisibility": settling.change_message_visibility,
    "ChangeMessageVisibilityBatch": settling.change_message_visibility_batch,
    "CreateQueue": administration.create_queue,
    "DeleteMessage": settling.delete_message,
    "DeleteMessageBatch": settling.delete_message_batch,
    "DeleteQueue": administration.delete_queue,
    "GetQueueAttributes": administration.get_queue_attributes,
    "GetQueueUrl": administration.get_queue_url,
    "ListDeadLetterSourceQueues": administration.list_dead_letter_source_queues,
    "ListMessageMoveTasks": move_tasks.list_move_tasks,
    "ListQueueTags": tags.list_queue_tags,
    "ListQueues": administration.list_queues,
    "PurgeQueue": administration.purge_queue,
    "ReceiveMessage": receiving.receive_message,
    "RemovePermission": _no_permissions,
    "SendMessage": sending.send_message,
    "SendMessageBatch": sending.send_message_batch,
    "SetQueueAttributes": administration.set_queue_attributes,
    "StartMessageMoveTask": move_tasks.start_move_task,
    "TagQueue": tags.tag_queue,
    "UntagQueue": tags.untag_queue,
}
