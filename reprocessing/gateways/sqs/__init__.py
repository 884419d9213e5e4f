"""Use SQS: read queues, receive, send and delete messages, and run message move tasks.

Results and errors are types of the domain, not of boto3.
"""

from reprocessing.gateways.aws.queue_address import QueueAddress, is_of_sqs
from reprocessing.gateways.sqs.batch_requests import Outcomes
from reprocessing.gateways.sqs.batches import LARGEST, size_of
from reprocessing.gateways.sqs.move_tasks import FASTEST, Begun, Move, active_moves, begin_move, cancel_move, move_tasks
from reprocessing.gateways.sqs.queue_attributes import (
    Depth,
    QueueFacts,
    RedriveAllowPolicy,
    RedrivePolicy,
    depth,
    describe,
    locate,
    sources_of,
)
from reprocessing.gateways.sqs.received_handles import Deleted, Extended, delete, extend, release
from reprocessing.gateways.sqs.receiving import receive
from reprocessing.gateways.sqs.sending import send

__all__ = [
    "FASTEST",
    "LARGEST",
    "Begun",
    "Deleted",
    "Depth",
    "Extended",
    "Move",
    "Outcomes",
    "QueueAddress",
    "QueueFacts",
    "RedriveAllowPolicy",
    "RedrivePolicy",
    "active_moves",
    "begin_move",
    "cancel_move",
    "delete",
    "depth",
    "describe",
    "extend",
    "is_of_sqs",
    "locate",
    "move_tasks",
    "receive",
    "release",
    "send",
    "size_of",
    "sources_of",
]  # fmt: skip
