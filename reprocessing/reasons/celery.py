"""The hook of a Celery app on SQS: why its tasks failed, and, where it acknowledges, that they worked."""

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

#: The header under which a retry, a message of its own, carries the names of the one that it stands for.
HEADER: Final = "redrive_names"
#: Tasks whose names the worker's main process remembers, to report those that it ends itself.
_REMEMBERED: Final = 1_000


def install(app: Celery, *, url: str, token: str, acknowledges: bool = False, **options: Any) -> Reporter:  # noqa: ANN401  # those of Reporter
    """Report the failures of an app's tasks from now on; call it once, where the app is made.

    The app's own settings say whether a failure is final: a task that is acknowledged when it fails is `failed`, one
    that is given back (`acks_late`, and not `acks_on_failure`) or retried is `retrying`. The redrive id is known when
    it is asked for, with the broker transport option
    `fetch_message_attributes={"MessageAttributeNames": ["RedriveId"]}`; else the message's id has to do.

    Args:
        app: the Celery app itself.
        url: the service's endpoint; empty: nothing is reported.
        token: the reporter's own.
        acknowledges: report also that a task worked.
        options: those of `Reporter`; `message=False` leaves out the exceptions' texts.

    Raises:
        EndpointIsUnclear: the URL or the token cannot be used.
    """
    reporter = Reporter(url, token, **options)
    hook = _Hook(app, reporter)
    signals.task_failure.connect(hook.failed, weak=False)
    signals.task_retry.connect(hook.retried, weak=False)
    signals.before_task_publish.connect(hook.published, weak=False)
    signals.task_received.connect(hook.received, weak=False)
    signals.worker_process_shutdown.connect(hook.ends, weak=False)  # a pool's processes end without atexit
    if acknowledges:
        signals.task_success.connect(hook.succeeded, weak=False)
    return reporter


def _harmless(handle: Callable[..., None]) -> Callable[..., None]:
    """A signal's receiver that never raises: Celery would log the traceback, and what the task was given with it."""

    @wraps(handle)
    def receive(*args: Any, **kwargs: Any) -> None:  # noqa: ANN401  # Celery's signals
        with suppress(Exception):  # what cannot be reported is not, and the task goes on
            handle(*args, **kwargs)

    return receive


class _Hook:
    """What an app's signals call."""

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
        """A retry has its task's id, and SQS knows it as another message: it carries the first one's names."""
        request = current_task.request  # outside of a task there is none, which raises, and does no harm
        if headers.get("id") == request.id and current_task.app is self._app and (names := names_of_request(request)):
            headers[HEADER] = [names.message_id, names.redrive_id]

    @_harmless
    def received(self, *, request: Any, **_: Any) -> None:  # noqa: ANN401
        """The main process ends a task that takes too long, or is rejected, and then knows nothing but its id."""
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
    """Whether SQS hands a failed task's message out again.

    Celery acknowledges it when it begins, unless the task acknowledges late, and then according to these settings. What
    is rejected stays in its queue, if that has a redrive policy (kombu 5.7 deletes it from one that has none).
    """
    if not task.acks_late:
        return "failed"
    if isinstance(error, Reject):
        return "retrying"
    acked = task.acks_on_timeout if isinstance(error, TimeLimitExceeded) else task.acks_on_failure
    return "failed" if acked else "retrying"


def names_of_request(request: Any) -> Names:  # noqa: ANN401  # Celery's Context has no such types
    """The names of the SQS message that a running task came in, or that it is a retry of."""
    return _names(getattr(request, HEADER, None), getattr(request, "properties", None))


def _names(carried: object, properties: object) -> Names:
    match carried:
        case [str() | None as message_id, str() | None as redrive_id]:
            return Names(message_id, redrive_id)
    delivery = properties.get("delivery_info") if isinstance(properties, dict) else None
    return names_of((delivery or {}).get("sqs_message") or {})
