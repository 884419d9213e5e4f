"""Celery's settings for SQS. This module does not use Django: settings.py passes plain values to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kombu import Queue

from redrive_service.broker.timeouts import FASTEST_POLL

DEFAULT_QUEUE = "redrive-control"
LONGEST_POLL = 20  # max seconds of a long poll (AWS: ReceiveMessage, WaitTimeSeconds)
SOFT_TIME_LIMIT = 240  # seconds: a task does a limited amount of work and ends long before
TIME_LIMIT = 300  # seconds after which a worker kills a task
SHUTDOWN_GRACE = 60.0  # seconds that running tasks get after SIGQUIT


class BrokerIsMisconfigured(ValueError):
    """Celery's settings have a queue, or a duration of a long poll, with which SQS cannot work."""


def celery_settings(
    *,
    queue_urls: Mapping[str, str],
    region: str,
    long_poll_seconds: int = LONGEST_POLL,
    timeouts: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Return the `CELERY_*` settings for SQS.

    The queues need a visibility timeout of 900 s, a dead-letter queue after five receives, and a retention of several
    days. The visibility timeout is three times a task's hard time limit, because kombu never extends it.

    Args:
        queue_urls: URLs of the service's own standard queues, by name. The default queue `redrive-control` is required.
        region: the AWS region of the queues.
        long_poll_seconds: how long a receive waits for a message. The maximum, 20, costs least.
        timeouts: values that replace defaults of `Timeouts`, by the names of its fields.

    Raises:
        BrokerIsMisconfigured: a queue cannot be used, or the long poll is not 1 to 20 s.
    """
    _check(queue_urls, long_poll_seconds)
    return {
        **_broker(queue_urls, region, long_poll_seconds, timeouts or {}),
        **_tasks(queue_urls),
        **_worker(),
        "CELERY_TIMEZONE": "UTC",  # in a local time zone, the schedule would skip or repeat an hour
        "CELERY_ENABLE_UTC": True,
        "CELERY_BEAT_MAX_LOOP_INTERVAL": 2,  # seconds; the longest pause between two checks of the schedule
        "CELERY_RESULT_EXPIRES": None,  # else beat adds a nightly clean-up of results, which do not exist here
    }


def _check(queue_urls: Mapping[str, str], long_poll_seconds: int) -> None:
    if DEFAULT_QUEUE not in queue_urls:
        raise BrokerIsMisconfigured(f"The queue {DEFAULT_QUEUE} has no URL. Tasks go there unless they are routed.")
    for name, url in queue_urls.items():
        if url.endswith(".fifo"):
            raise BrokerIsMisconfigured(
                f"The queue {name} is FIFO ({url}). Make it a standard queue: Celery does not keep the order of a FIFO "
                "queue, and one task that waits would hold up its whole message group."
            )
    if not 1 <= long_poll_seconds <= LONGEST_POLL:
        raise BrokerIsMisconfigured(
            f"A long poll of {long_poll_seconds} s is not possible. SQS takes 1 to {LONGEST_POLL}."
        )


def _broker(
    queue_urls: Mapping[str, str], region: str, long_poll_seconds: int, timeouts: Mapping[str, float]
) -> dict[str, Any]:
    return {
        "CELERY_BROKER_URL": "sqs://",  # credentials and endpoint: AWS's default chain
        "CELERY_BROKER_TRANSPORT": "redrive_service.broker.transport:Transport",  # kombu refuses a path in the URL
        "CELERY_BROKER_TRANSPORT_OPTIONS": {
            "region": region,
            "is_secure": True,  # without it, kombu uses plain HTTP for a custom endpoint
            # With this option, kombu neither lists nor creates queues, and needs no permission to do so.
            "predefined_queues": {name: {"url": url} for name, url in queue_urls.items()},
            "wait_time_seconds": long_poll_seconds,
            "polling_interval": FASTEST_POLL,  # pause between long polls; also the delay until a free slot is used
            "timeouts": dict(timeouts),
        },
        "CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP": True,
        "CELERY_BROKER_CONNECTION_MAX_RETRIES": None,  # retry for ever: a worker has no other work
        "CELERY_BROKER_POOL_ACQUIRE_TIMEOUT": 10.0,  # else a sender may wait for ever for one of ten connections
    }


def _tasks(queue_urls: Mapping[str, str]) -> dict[str, Any]:
    return {
        "CELERY_TASK_QUEUES": [Queue(name, routing_key=name) for name in queue_urls],
        "CELERY_TASK_DEFAULT_QUEUE": DEFAULT_QUEUE,
        "CELERY_TASK_CREATE_MISSING_QUEUES": False,  # a misspelt queue name is an error
        "CELERY_TASK_SERIALIZER": "json",
        "CELERY_RESULT_SERIALIZER": "json",
        "CELERY_ACCEPT_CONTENT": ["json"],  # never pickle: anybody who can send to the queue could run code
        "CELERY_TASK_IGNORE_RESULT": True,  # PostgreSQL has the result
        # botocore tries twice (see `Timeouts`). With Celery's own retries a web request could block for a minute.
        # A lost message is sent again at the next tick.
        "CELERY_TASK_PUBLISH_RETRY": False,
        "CELERY_TASK_ACKS_LATE": True,  # after the task, so that a killed worker loses no task
        "CELERY_TASK_ACKS_ON_FAILURE": True,  # PostgreSQL has the failure; beat enqueues due work again
        "CELERY_TASK_ACKS_ON_TIMEOUT": True,
        "CELERY_TASK_REJECT_ON_WORKER_LOST": True,  # runs again, up to the queue's maxReceiveCount
        "CELERY_TASK_SOFT_TIME_LIMIT": SOFT_TIME_LIMIT,
        "CELERY_TASK_TIME_LIMIT": TIME_LIMIT,  # seconds after which a task is killed; prefork only
    }


def _worker() -> dict[str, Any]:
    return {
        "CELERY_WORKER_CONSUMER": "redrive_service.broker.consumer:Consumer",
        "CELERY_WORKER_PREFETCH_MULTIPLIER": 1,  # a task that waits in memory uses up its visibility timeout
        "CELERY_WORKER_ETA_TASK_LIMIT": 20,  # tasks have no ETA: SQS would deliver a waiting task again
        # Processes are not replaced after a number of tasks, or for their memory: requests to slow targets may be open
        # for 15 min after their tasks. A process that ends abandons them. One that waits blocks its slot and a task.
        "CELERY_WORKER_MAX_TASKS_PER_CHILD": None,
        "CELERY_WORKER_MAX_MEMORY_PER_CHILD": None,
        # SIGTERM lets running tasks end and returns the others; SIGQUIT does the same, within these seconds.
        "CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT": SHUTDOWN_GRACE,
        "CELERY_WORKER_ENABLE_SOFT_SHUTDOWN_ON_IDLE": False,  # else even an idle worker would wait for the whole time
        "CELERY_WORKER_ENABLE_REMOTE_CONTROL": False,  # impossible on SQS, and `inspect` would create queues
        "CELERY_WORKER_SEND_TASK_EVENTS": False,
        "CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS": False,
    }
