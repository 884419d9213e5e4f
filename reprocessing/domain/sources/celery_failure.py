"""Guess why a Celery task's message is in the DLQ.

By default, Celery acknowledges failed, expired and undecodable messages, so they do not reach a DLQ. This module names
other reasons why a message is received until SQS moves it to the DLQ (docs.celeryq.dev: acks_late, visibility timeout).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.runs.forecast import duration_in_words
from reprocessing.domain.sources.celery_task import NotATask, TaskMessage, TaskReading, celery_time

#: Celery's default of Task.max_retries, how often a task is retried.
MAX_RETRIES = 3
_UNLOCK = "celery.chord_unlock"


def probable_causes(
    found: TaskReading, system: Mapping[str, str], *, visibility: timedelta | None = None, reported: bool = False
) -> list[str]:
    """Return sentences that say why a task's message is probably in the DLQ, the most probable reason first.

    Args:
        found: the task message.
        system: SQS's own attributes of the message.
        visibility: the source queue's visibility timeout; None if it is not known.
        reported: whether the consumer reported the cause. If so, the result may be empty.
    """
    match found:
        case NotATask(why):
            return [f"Not a Celery task: {why}. No worker can run it, so it came to the DLQ."]
        case Unreadable(why):
            return [f"It is not known whether it is a Celery task: {why}."]
        case TaskMessage():
            named = [*_timing(found, _sent(system), visibility), *_retried(found)]
            return named + ([] if reported else [_received(found, system, alone=not named)])


def _timing(message: TaskMessage, sent: datetime | None, visibility: timedelta | None) -> Iterator[str]:
    """Yield a sentence if the task waits, or runs, for longer than the visibility timeout."""
    if visibility is None:
        return
    hides = f"its queue's visibility timeout is {duration_in_words(visibility.total_seconds())}"
    eta = celery_time(message.eta) if message.eta else None
    if eta and sent and eta - sent > visibility:
        yield (
            f"Its eta was {duration_in_words((eta - sent).total_seconds())} after it was sent, but {hides}: it was "
            "received again while workers waited for the eta, and probably came to the DLQ without having run."
        )
    if message.time_limit is not None and message.time_limit > visibility.total_seconds():
        yield (
            f"It may run for {duration_in_words(message.time_limit)}, but {hides}: it was probably still running when "
            "it came to the DLQ, perhaps several times at once."
        )


def _retried(message: TaskMessage) -> Iterator[str]:
    if message.task == _UNLOCK:
        yield "It waits for the tasks of a chord, and probably one of these tasks has never ended."
    elif message.retries >= MAX_RETRIES:
        yield (
            f"It had been retried {message.retries} times: probably its retries were used up (Celery allows "
            f"{MAX_RETRIES} unless a task says otherwise), and it failed once more."
        )
    elif message.retries > 0:
        yield f"It had failed and been retried {_times(message.retries)} before it came to the DLQ."


def _received(message: TaskMessage, system: Mapping[str, str], *, alone: bool) -> str:
    times = system.get("ApproximateReceiveCount", "")
    often = (
        f"It was received {_times(int(times))}" if times.isdecimal() else "It was received as often as its queue allows"
    )
    named = f'the task "{message.task}"' if message.task.isprintable() and message.task else "its task"
    return (
        f"{often} and never acknowledged: {'probably' if alone else 'perhaps'} its task failed (acks_late without "
        f"acks_on_failure), its worker was killed while it ran (memory, a deployment), it ran for longer than the "
        f"visibility timeout, or no worker knows {named}."
    )


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _sent(system: Mapping[str, str]) -> datetime | None:
    """Return SQS's SentTimestamp: when the message was first sent; in a FIFO DLQ, when it came to the DLQ.

    None: SQS gave no valid time.
    """
    text = system.get("SentTimestamp", "")
    try:
        return datetime.fromtimestamp(int(text) / 1000, tz=UTC)
    except (ValueError, OverflowError, OSError):
        return None
