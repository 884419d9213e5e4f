"""List the queues of an account in a region, and read the tags of a queue."""

from __future__ import annotations

from typing import Final

from reprocessing.gateways.aws.clients import client
from reprocessing.gateways.aws.errors import reaching
from reprocessing.gateways.aws.queue_address import QueueAddress

_PAGE: Final = 1_000  #: queues on the largest page that ListQueues allows


def list_queues(region: str, role: str = "", *, prefix: str = "") -> list[QueueAddress]:
    """Return the addresses of the queues in a region whose names begin with `prefix`; empty: of all queues.

    `role`: the ARN of the role to assume, in the account of the queues. If empty, the process's own role is used.

    Raises:
        QueueUnreachable: SQS refused or did not answer.
    """
    with reaching(f"the queues in {region}", "ListQueues"):
        pages = client(region, role=role).get_paginator("list_queues")
        # Without a page size, SQS returns only the first page, and no token for the next.
        found = pages.paginate(QueueNamePrefix=prefix, PaginationConfig={"PageSize": _PAGE})
        return [QueueAddress(url, region, role) for page in found for url in page.get("QueueUrls", [])]


def tags_of(address: QueueAddress) -> dict[str, str]:
    """Return the tags of a queue.

    Raises:
        QueueUnreachable: SQS refused or did not answer.
    """
    with reaching(address, "ListQueueTags"):
        return dict(client(address.region, role=address.role).list_queue_tags(QueueUrl=address.url).get("Tags", {}))
