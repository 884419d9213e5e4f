"""Propose the name of a DLQ from the name of its queue."""

from __future__ import annotations

import re
from collections.abc import Container
from itertools import chain, count

from reprocessing.domain.message.arn import Arn, resource_name


def propose_name(queue: Arn, taken: Container[str]) -> str:
    """Return a DLQ name that is not taken: the queue's name, if necessary with account, region and a number.

    Dots become hyphens: the name for the queue orders-dlq.fifo is orders-dlq-fifo.
    """
    name = re.sub(r"[^A-Za-z0-9_-]", "-", resource_name(queue.text))
    longer = f"{name[:60]}-{queue.account}-{queue.region}"
    candidates = chain((name, longer), (f"{longer}-{number}" for number in count(2)))
    return next(candidate for candidate in candidates if candidate not in taken)
