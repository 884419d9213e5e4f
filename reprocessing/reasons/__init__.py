"""Why messages fail, told by those who know: their consumers (docs/consumers.md).

`reprocessing.reasons.celery` is the hook of a Celery app, `reporting` the context manager of everybody else. Nothing
but Python's standard library is needed, and Celery where it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from reprocessing.reasons.client import Counts, Reporter, Verdict
from reprocessing.reasons.endpoint import EndpointIsUnclear
from reprocessing.reasons.names import Names, names_of

__all__ = ["Counts", "EndpointIsUnclear", "Names", "Reporter", "Verdict", "names_of", "reporting"]


@contextmanager
def reporting(  # noqa: PLR0913  # one named argument for each thing that may be different
    reporter: Reporter,
    *,
    message: Mapping[str, Any] | None = None,
    message_id: str | None = None,
    redrive_id: str | None = None,
    final: bool = False,
    acknowledges: bool = False,
) -> Iterator[None]:
    """Report an exception of the block as the reason of a message's failure, and raise it on.

    Args:
        reporter: what reports.
        message: the message, as boto3 gives it; else name it by one of the next two.
        message_id: the id that SQS gave it.
        redrive_id: the attribute RedriveId, where it has one.
        final: the message is deleted although it failed; else SQS hands it out again.
        acknowledges: report also that it worked.
    """
    names = Names(message_id, redrive_id) if message is None else names_of(message)
    try:
        yield
    except Exception as error:
        reporter.report("failed" if final else "retrying", names, error)
        raise
    if acknowledges:
        reporter.report("delivered", names)
