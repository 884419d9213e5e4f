"""Floor 2, reaches: the only package that speaks to AWS. What it returns and raises is in the domain's words."""

from reprocessing.sqs.address import QueueAddress, is_of_sqs
from reprocessing.sqs.clients import forget
from reprocessing.sqs.facts import (
    Depth,
    QueueFacts,
    RedriveAllowPolicy,
    RedrivePolicy,
    depth,
    describe,
    locate,
    origins_of,
)
from reprocessing.sqs.functions import Invocations
from reprocessing.sqs.handles import Deleted, Extended, delete, extend, release
from reprocessing.sqs.loads import LARGEST, size_of
from reprocessing.sqs.move_tasks import FASTEST, Begun, Move, begin_move, cancel_move, move_tasks, moves
from reprocessing.sqs.objects import are_gone
from reprocessing.sqs.publishing import publish, put
from reprocessing.sqs.receiving import receive
from reprocessing.sqs.sending import send
from reprocessing.sqs.throttling import throttled
from reprocessing.sqs.trips import Outcomes

__all__ = [
    "FASTEST",
    "LARGEST",
    "Begun",
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
    "begin_move",
    "cancel_move",
    "delete",
    "depth",
    "describe",
    "extend",
    "forget",
    "is_of_sqs",
    "locate",
    "move_tasks",
    "moves",
    "origins_of",
    "publish",
    "put",
    "receive",
    "release",
    "send",
    "size_of",
    "throttled",
]
