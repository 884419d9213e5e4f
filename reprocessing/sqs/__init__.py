"""Floor 2, reaches: the only package that speaks to AWS. What it returns and raises is in the domain's words."""

from reprocessing.sqs.address import QueueAddress, is_of_sqs
from reprocessing.sqs.clients import forget
from reprocessing.sqs.facts import (
    Depth,
    Move,
    QueueFacts,
    RedriveAllowPolicy,
    RedrivePolicy,
    depth,
    describe,
    locate,
    moves,
    origins_of,
)
from reprocessing.sqs.functions import Invocations
from reprocessing.sqs.handles import Deleted, Extended, delete, extend, release
from reprocessing.sqs.loads import LARGEST, size_of
from reprocessing.sqs.objects import are_gone
from reprocessing.sqs.publishing import publish, put
from reprocessing.sqs.receiving import receive
from reprocessing.sqs.sending import send
from reprocessing.sqs.trips import Outcomes

__all__ = [
    "LARGEST",
    "Deleted",
    "Depth",
    "Extended",
    "Invocations",
    "Move",
    "Outcomes",
    "QueueAddress",
    "QueueFacts",
    "RedriveAllowPolicy",
    "RedrivePolicy",
    "are_gone",
    "delete",
    "depth",
    "describe",
    "extend",
    "forget",
    "is_of_sqs",
    "locate",
    "moves",
    "origins_of",
    "publish",
    "put",
    "receive",
    "release",
    "send",
    "size_of",
]
