"""The Celery application, for the commands `celery -A redrive_service worker` and `... beat`."""

from __future__ import annotations

import ctypes
import gc
import logging
import os
from contextlib import suppress
from typing import Any

from botocore.exceptions import BotoCoreError
from celery import Celery
from celery.signals import (
    after_setup_logger,
    after_setup_task_logger,
    task_postrun,
    task_prerun,
    worker_before_create_process,
    worker_process_init,
)
from celery.utils.log import get_multiprocessing_logger
from django.conf import settings
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from redrive_service.startup import explained
from redrive_service.telemetry.alive import AliveStep
from redrive_service.telemetry.log_format import formatter

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "redrive_service.settings")
# Celery would run Django's checks when a worker starts, and ignore their result. They import all pages: 0.7 s, 25 MB.
os.environ.setdefault("CELERY_SKIP_CHECKS", "yes")

app = Celery("redrive_service")
with explained():
    app.config_from_object("django.conf:settings", namespace="CELERY", force=True)
app.autodiscover_tasks()
app.steps["consumer"].add(AliveStep)


@task_prerun.connect
@task_postrun.connect
def close_old_connection(sender: Any = None, **_: Any) -> None:  # noqa: ANN401  a task, and the signal's other arguments
    """Close the connection to PostgreSQL if it is broken or older than CONN_MAX_AGE. If not, the next task uses it."""
    from django.db import close_old_connections  # noqa: PLC0415  Django is not set up yet

    if not getattr(getattr(sender, "request", None), "is_eager", False):
        close_old_connections()


@after_setup_logger.connect
@after_setup_task_logger.connect
def format_logs(logger: logging.Logger, **options: Any) -> None:  # noqa: ANN401  the signals' other arguments
    """Replace Celery's log formatters, because with them a line break in a value could forge a log line."""
    pool = get_multiprocessing_logger()
    for handler in (*logger.handlers, *(pool.handlers if pool else ())):
        handler.setFormatter(formatter(settings.ENVIRONMENT.log_format, options["format"]))


#: New objects of a worker process after which Python collects garbage (cycles of objects). A batch of messages creates
#: about ten thousand objects and no cycles. With Python's default, 700, most collections would find nothing.
OBJECTS_BETWEEN_COLLECTIONS = 50_000


@worker_before_create_process.connect
def share_memory(**_: Any) -> None:  # noqa: ANN401  the signal's arguments
    """Exempt all existing objects from garbage collection before a worker process is forked, to use less memory.

    Otherwise, a collection in the worker process would copy the memory pages that the process shares with its parent.
    botocore's data files (5 MB) are loaded first, so that the processes share them, too.
    """
    from reprocessing.gateways.aws import sessions  # noqa: PLC0415  # loads boto3, which commands and checks need not

    with suppress(BotoCoreError):  # a wrong configuration is reported when a client is used
        sessions.new_session().create_client(
            "sqs",
            region_name="us-east-1",
            aws_access_key_id="unused",
            aws_secret_access_key="unused",  # noqa: S106
        )
    gc.collect()
    gc.freeze()


#: Memory pools (arenas) of a worker process. By default, glibc makes up to eight per core, and each keeps the memory
#: of the largest bodies that its threads have handled.
ARENAS = 2
#: The number of this option for mallopt(3).
_M_ARENA_MAX = -8


@worker_process_init.connect
def share_arenas(**_: Any) -> None:  # noqa: ANN401  the signal's arguments
    """Let all threads of a new worker process share two memory pools (arenas of glibc's malloc), to use less memory.

    With large bodies, a worker process then used 415 MB instead of 638 MB. Other C libraries have no such option, and
    are not changed.
    """
    with suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, ARENAS)


@worker_process_init.connect
def collect_seldom(**_: Any) -> None:  # noqa: ANN401  the signal's arguments
    """Let a new worker process collect garbage only after 50,000 new objects.

    A batch of messages creates fewer objects, so few batches are interrupted.
    """
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)


@worker_process_init.connect
def sort_whole_results(**_: Any) -> None:  # noqa: ANN401  the signal's arguments
    """Turn PostgreSQL's incremental sort off for the connections of a new worker process.

    PostgreSQL underestimates what it costs to sort the messages of a long key queue. With incremental sort, it read all
    10,000 messages of a key queue for each message that was sent (`lane_head.first_letters`). So 80 messages/s were
    sent, instead of 120.
    """
    connection_created.connect(_turn_incremental_sort_off, dispatch_uid="redrive_service: enable_incremental_sort")


def _turn_incremental_sort_off(connection: BaseDatabaseWrapper, **_: Any) -> None:  # noqa: ANN401  as above
    with connection.cursor() as cursor:  # a statement, because a connection pooler may refuse options
        cursor.execute("SELECT set_config('enable_incremental_sort', 'off', false)")
