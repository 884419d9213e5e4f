"""Turn AWS's errors into the domain's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError

from reprocessing.domain.errors import CloudWatchIsOutOfReach
from reprocessing.gateways.aws.errors import out_of_reach
from reprocessing.gateways.aws.queue_address import QueueAddress


@contextmanager
def reaching(target: QueueAddress | str, action: str, service: str = "sqs") -> Iterator[None]:
    """Raise an error of AWS in this block as QueueIsOutOfReach, with its cure."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise out_of_reach(target, action, error, service) from error


@contextmanager
def reaching_cloudwatch(target: str, action: str) -> Iterator[None]:
    """Raise an error of AWS in this block as CloudWatchIsOutOfReach, with its cure."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise CloudWatchIsOutOfReach(str(out_of_reach(target, action, error, "cloudwatch"))) from error
