"""The actions of AWS's own redrive: StartMessageMoveTask, ListMessageMoveTasks and CancelMessageMoveTask."""

from base64 import b64decode
from typing import Final

import orjson

from redrive_service.sandbox.sqs.api.errors import SqsError, invalid_parameter, invalid_value
from redrive_service.sandbox.sqs.api.parameters import Answer, Request, required_text, text, whole, whole_between
from redrive_service.sandbox.sqs.queues.account import Account
from redrive_service.sandbox.sqs.queues.move_task import FASTEST, MoveTask
from redrive_service.sandbox.sqs.queues.queue import Queue

MOST_LISTED: Final = 10  # max tasks in an answer (AWS, ListMessageMoveTasks)


def start_move_task(account: Account, request: Request) -> Answer:
    """Start to move messages out of a dead-letter queue, and return the task's handle.

    Raises:
        SqsError: the queue is not the dead-letter queue of any queue, a task runs already, or a parameter is invalid.
    """
    source = _source(account, required_text(request, "SourceArn"))
    destination_arn = text(request, "DestinationArn")
    rate = whole(request, "MaxNumberOfMessagesPerSecond")
    if rate is not None and not 1 <= rate <= FASTEST:
        reason = f"You must enter a number that's between 1 and {FASTEST}."
        raise invalid_value(rate, "MaxNumberOfMessagesPerSecond", reason)
    if destination_arn:
        _check_destination(account, source, destination_arn)
    if not any(_names(queue, source) for queue in account.queues.values()):
        raise invalid_parameter("Source queue must be configured as a Dead Letter Queue.")
    tasks = account.moves.setdefault(source.arn, [])
    if any(task.active for task in tasks):
        raise invalid_parameter(
            "There is already a task running. Only one active task is allowed for a source queue arn at a given time.",
        )
    task = MoveTask(account, source, destination_arn or None, rate)
    tasks.insert(0, task)
    del tasks[MOST_LISTED:]
    account.record.changed = True
    return {"TaskHandle": task.handle}


def list_move_tasks(account: Account, request: Request) -> Answer:
    """Return the newest move tasks of a queue, newest first, at most `MaxResults` (default 1, max 10)."""
    source = _source(account, required_text(request, "SourceArn"))
    most = whole_between(request, "MaxResults", 1, MOST_LISTED) or 1
    return {"Results": [task.shown() for task in account.moves.get(source.arn, [])[:most]]}


def cancel_move_task(account: Account, request: Request) -> Answer:
    """Cancel a running move task, and return how many messages it has moved. Raises SqsError if it is not running."""
    task_id, source_arn = _read_handle(required_text(request, "TaskHandle"))
    source = _source(account, source_arn)
    for task in account.moves.get(source.arn, []):
        if task.task_id == task_id:
            if task.status != "RUNNING":
                raise invalid_parameter("Only active tasks can be cancelled.")
            task.cancel()
            account.record.changed = True
            return {"ApproximateNumberOfMessagesMoved": task.moved}
    raise SqsError("ResourceNotFoundException", "Task does not exist.")


def _names(queue: Queue, source: Queue) -> bool:
    policy = queue.settings.redrive
    return policy is not None and policy.target_arn == source.arn


def _source(account: Account, arn: str) -> Queue:
    account.record.queue = arn.rpartition(":")[2]
    return _existing(account, arn, "SourceArn")


def _check_destination(account: Account, source: Queue, arn: str) -> None:
    destination = _existing(account, arn, "DestinationArn")
    if destination is source:
        raise invalid_parameter("Source queue arn and destination queue arn cannot be the same.")
    if destination.fifo != source.fifo:
        raise invalid_parameter("Source queue and destination queue must be of the same type.")


def _existing(account: Account, arn: str, parameter: str) -> Queue:
    queue = account.queue_by_arn(arn)
    if queue is None:
        sentence = f"The resource that you specified for the {parameter} parameter doesn't exist."
        raise SqsError("ResourceNotFoundException", sentence)
    return queue


def _read_handle(handle: str) -> tuple[str, str]:
    try:
        content = orjson.loads(b64decode(handle, altchars=b"-_", validate=True))
    except ValueError:
        content = None
    if isinstance(content, dict):
        task_id, source_arn = content.get("taskId"), content.get("sourceArn")
        if isinstance(task_id, str) and isinstance(source_arn, str):
            return task_id, source_arn
    raise invalid_parameter("Value for parameter TaskHandle is invalid.")
