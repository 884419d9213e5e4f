"""Report why the tasks of a Celery app on SQS failed and, with `acknowledges`, which tasks succeeded."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, Final

from celery import Celery, current_task, signals
from celery.exceptions import Reject, TimeLimitExceeded

from reprocessing.reasons.client import Reporter, Verdict
from reprocessing.reasons.names import Names, names_of

#: The header in which a retried task keeps the ids of its first message. For SQS, a Celery retry is a new message with
#: a new id.
HEADER: Final = "redrive_names"
#: How many tasks the worker's main process remembers, to report the tasks that it kills, such as after a time limit.
_REMEMBERED: Final = 1_000


def install(app: Celery, *, url: str, token: str, acknowledges: bool = False, **options: Any) -> Reporter:  # noqa: ANN401  # arguments of Reporter
    """Report failures of an app's tasks from now on, and return the `Reporter`. Call it once, where the app is created.

    A failure is reported as `failed` if Celery acknowledges the message. It is reported as `retrying` if Celery
    retries the task, or leaves the message in the queue (`acks_late` without `acks_on_failure`). To get the redrive
    id, set the broker transport option `fetch_message_attributes={"MessageAttributeNames": ["RedriveId"]}`.

    Args:
        app: the Celery app.
        url: the service's endpoint for reports; if it is empty, nothing is reported.
        token: the reporter's token.
        acknowledges: whether success is also reported.
        options: further arguments of `Reporter`, such as `message=False`, which leaves out the texts of exceptions.

    Raises:
        InvalidEndpoint: the URL or the token is not valid.
    """
    reporter = Reporter(url, token, **options)
    hook = _Hook(app, reporter)
    signals.task_failure.connect(hook.failed, weak=False)
    signals.task_retry.connect(hook.retried, weak=False)
    signals.before_task_publish.connect(hook.published, weak=False)
    signals.task_received.connect(hook.received, weak=False)
    signals.worker_process_shutdown.connect(hook.ends, weak=False)  # pool processes end without atexit
    if acknowledges:
        signals.task_success.connect(hook.succeeded, weak=False)
    return reporter


def _harmless(handle: Callable[..., None]) -> Callable[..., None]:
    """Return a receiver of Celery signals that calls `handle` and never raises.

    If a receiver raises, Celery logs the task's arguments, which may have message data.
    """

    @wraps(handle)
    def receive(*args: Any, **kwargs: Any) -> None:  # noqa: ANN401  # Celery's signals
        with suppress(Exception):
            handle(*args, **kwargs)

    return receive


class _Hook:
    """Receives the Celery signals of one app, and reports the results of tasks."""

    def __init__(self, app: Celery, reporter: Reporter) -> None:
        self._app, self._reporter = app, reporter
        self._received: OrderedDict[str, Names] = OrderedDict()

    @_harmless
    def failed(self, *, sender: Any, task_id: str, exception: BaseException, **_: Any) -> None:  # noqa: ANN401  # Celery's signals, here and below
        if sender.app is self._app:
            self._reporter.report(verdict(sender, exception), self._names(sender, task_id), exception)

    @_harmless
    def retried(self, *, sender: Any, request: Any, reason: Any, **_: Any) -> None:  # noqa: ANN401
        if sender.app is self._app:
            why = reason.exc if isinstance(reason.exc, BaseException) else reason
            self._reporter.report("retrying", names_of_request(request), why)

    @_harmless
    def succeeded(self, *, sender: Any, **_: Any) -> None:  # noqa: ANN401
        if sender.app is self._app:
            self._reporter.report("delivered", names_of_request(sender.request))

    @_harmless
    def published(self, *, headers: dict[str, Any], **_: Any) -> None:  # noqa: ANN401
        """If a task retries itself, add the ids of its first message to the headers of the new message.

        A retry has the same task id, but is another SQS message.
        """
        request = current_task.request  # outside of a task this raises, which `_harmless` suppresses
        if headers.get("id") == request.id and current_task.app is self._app and (names := names_of_request(request)):
            headers[HEADER] = [names.message_id, names.redrive_id]

    @_harmless
    def received(self, *, request: Any, **_: Any) -> None:  # noqa: ANN401
        """Store a received task's message ids. If Celery's main process kills the task, only its task id is known."""
        self._received[request.id] = _names((request.message.headers or {}).get(HEADER), request.message.properties)
        while len(self._received) > _REMEMBERED:
            self._received.popitem(last=False)

    @_harmless
    def ends(self, **_: Any) -> None:  # noqa: ANN401
        self._reporter.close()

    def _names(self, task: Any, task_id: str) -> Names:  # noqa: ANN401
        known = names_of_request(task.request) if task.request.id == task_id else None
        return known or self._received.get(task_id) or Names()


def verdict(task: Any, error: BaseException) -> Verdict:  # noqa: ANN401  # a Celery task
    """Return "retrying" if SQS delivers the message of a failed task again; else "failed".

    SQS delivers a message again unless Celery acknowledges it. A task that raises Reject leaves its message in
    the queue, if the queue has a redrive policy (kombu 5.7).
    """
    if not task.acks_late:
        return "failed"
    if isinstance(error, Reject):
        return "retrying"
    acked = task.acks_on_timeout if isinstance(error, TimeLimitExceeded) else task.acks_on_failure
    return "failed" if acked else "retrying"


def names_of_request(request: Any) -> Names:  # noqa: ANN401  # Celery's Context has no such types
    """Return the ids of a task's SQS message; for a retry, the ids of the first message."""
    return _names(getattr(request, HEADER, None), getattr(request, "properties", None))


def _names(carried: object, properties: object) -> Names:
    match carried:
        case [str() | None as message_id, str() | None as redrive_id]:
            return Names(message_id, redrive_id)
    delivery = properties.get("delivery_info") if isinstance(properties, dict) else None
    return names_of((delivery or {}).get("sqs_message") or {})
