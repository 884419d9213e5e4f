"""Report to the redrive service why messages fail. This package is for consumers (docs/consumers.md).

`reprocessing.reasons.celery` is for Celery apps. `reporting` is a context manager for other consumers, and needs only
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
    """Report an exception in the block as the failure of a message, and raise the exception again.

    Args:
        reporter: sends the report.
        message: the message as boto3 returns it. You can pass `message_id` or `redrive_id` instead.
        message_id: SQS's message id.
        redrive_id: the value of the message's attribute RedriveId.
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
