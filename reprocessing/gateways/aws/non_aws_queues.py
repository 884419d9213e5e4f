"""Refuse CloudWatch requests about queues outside AWS, such as a local SQS, because CloudWatch does not know them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from reprocessing.domain.errors import CloudWatchUnreachable
from reprocessing.gateways.aws.clients import AwsClient
from reprocessing.gateways.aws.clients import client as sqs_client
from reprocessing.gateways.aws.queue_address import QueueAddress, is_of_sqs

_AWS: Final = ("amazonaws.com", "amazonaws.com.cn", "api.aws")


def is_only_sqs_outside_aws(other: AwsClient, region: str, role: str) -> bool:
    """Return whether this process uses an SQS outside AWS, but AWS itself for the service of the client `other`."""
    return _is_of_aws(other) and not is_of_sqs(sqs_client(region, role=role).meta.endpoint_url)


def refuse_queues_outside_aws(cloudwatch: AwsClient, queues: Sequence[QueueAddress]) -> None:
    """Check that a CloudWatch client can have metrics of all these queues.

    Raises:
        CloudWatchUnreachable: the client uses AWS's CloudWatch, but a queue is at another endpoint.
    """
    if _is_of_aws(cloudwatch) and not all(is_of_sqs(queue.url) for queue in queues):
        raise CloudWatchUnreachable("the queues are not in AWS, so CloudWatch has no metrics of them.")


def _is_of_aws(client: AwsClient) -> bool:
    host = urlsplit(str(getattr(client, "meta").endpoint_url)).hostname or ""  # noqa: B009  # no part of the protocol
    return host.endswith(_AWS)
