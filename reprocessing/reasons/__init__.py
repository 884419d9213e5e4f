"""Report to the redrive service why a consumer failed to process messages. For consumers (docs/consumers.md).

`reprocessing.reasons.celery` is for Celery apps. For other consumers, `reporting` is a context manager; it needs only
Python's standard library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from reprocessing.reasons.client import Counts, Reporter, Verdict
from reprocessing.reasons.endpoint import InvalidEndpoint
from reprocessing.reasons.names import Names, names_of

__all__ = ["Counts", "InvalidEndpoint", "Names", "Reporter", "Verdict", "names_of", "reporting"]


@contextmanager
def reporting(  # noqa: PLR0913  # keyword arguments
    reporter: Reporter,
    *,
    message: Mapping[str, Any] | None = None,
    message_id: str | None = None,
    redrive_id: str | None = None,
    final: bool = False,
    acknowledges: bool = False,
) -> Iterator[None]:
    """If the block raises an exception, report it as the reason why a message failed, and raise it again.

    Args:
        reporter: sends the report.
        message: the message as boto3 returns it. You can pass `message_id` or `redrive_id` instead.
        message_id: SQS's id of the message.
        redrive_id: the value of the attribute RedriveId of the message.
        final: whether the message is deleted although it failed. If not, SQS delivers the message again.
        acknowledges: whether success is reported, too.
    """
    names = Names(message_id, redrive_id) if message is None else names_of(message)
    try:
        yield
    except Exception as error:
        reporter.report("failed" if final else "retrying", names, error)
        raise
    if acknowledges:
        reporter.report("delivered", names)
