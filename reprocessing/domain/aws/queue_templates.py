"""Write templates of CloudFormation (AWS::SQS::Queue) and Terraform (aws_sqs_queue, JSON syntax) for queues.

Both templates protect the queues from deletion, because a queue may hold messages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from reprocessing.domain.aws.queue_spec import WantedQueue

#: The ARN of a queue in the template's account and region, without the queue's name.
_SIBLING: Final = "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:"


def cloudformation(wanted: Sequence[WantedQueue]) -> dict[str, Any]:
    """Return a CloudFormation template for these queues.

    A DLQ names its source queue by an ARN text, because references in both directions would form a cycle.
    """
    ids = _names(wanted, lambda name: "".join(map(str.capitalize, re.findall(r"[A-Za-z0-9]+", name))) or "Queue")
    resources = {
        ids[queue.name]: {
            "Type": "AWS::SQS::Queue",
            "DeletionPolicy": "Retain",
            "UpdateReplacePolicy": "Retain",
            "Properties": _properties(queue, ids),
        }
        for queue in wanted
    }
    return {"AWSTemplateFormatVersion": "2010-09-09", "Resources": resources}


def terraform(wanted: Sequence[WantedQueue]) -> dict[str, Any]:
    """Return a Terraform configuration for these queues, for a file with the suffix .tf.json."""
    ids = _names(wanted, lambda name: re.sub(r"^(?=[0-9-])", "queue_", re.sub(r"[^A-Za-z0-9_-]", "_", name)))
    allowing = {
        ids[queue.name]: {
            "queue_url": f"${{aws_sqs_queue.{ids[queue.name]}.id}}",
            "redrive_allow_policy": json.dumps({
                "redrivePermission": "byQueue",
                "sourceQueueArns": [f"${{aws_sqs_queue.{ids[name]}.arn}}" for name in queue.sources],
            }),
        }
        for queue in wanted
        if queue.sources
    }  # fmt: skip
    queues = {ids[queue.name]: _arguments(queue, ids) for queue in wanted}
    return {"resource": {"aws_sqs_queue": queues, "aws_sqs_queue_redrive_allow_policy": allowing}}


def _properties(queue: WantedQueue, ids: dict[str, str]) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "QueueName": queue.name,
        "VisibilityTimeout": queue.visibility.value,
        "MessageRetentionPeriod": queue.retention.value,
        "ReceiveMessageWaitTimeSeconds": queue.wait.value,
        **({"KmsMasterKeyId": queue.key} if queue.key else {"SqsManagedSseEnabled": True}),
        **({"FifoQueue": True, "ContentBasedDeduplication": queue.by_content} if queue.fifo else {}),
    }
    if queue.dlq:
        arn = {"Fn::GetAtt": [ids[queue.dlq], "Arn"]}
        properties["RedrivePolicy"] = {"deadLetterTargetArn": arn, "maxReceiveCount": queue.receives.value}
    if queue.sources:
        arns = [{"Fn::Sub": f"{_SIBLING}{name}"} for name in queue.sources]
        properties["RedriveAllowPolicy"] = {"redrivePermission": "byQueue", "sourceQueueArns": arns}
    return properties


def _arguments(queue: WantedQueue, ids: dict[str, str]) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "name": queue.name,
        "visibility_timeout_seconds": queue.visibility.value,
        "message_retention_seconds": queue.retention.value,
        "receive_wait_time_seconds": queue.wait.value,
        **({"kms_master_key_id": queue.key} if queue.key else {"sqs_managed_sse_enabled": True}),
        **({"fifo_queue": True, "content_based_deduplication": queue.by_content} if queue.fifo else {}),
        "lifecycle": {"prevent_destroy": True},
    }
    if queue.dlq:
        arn = f"${{aws_sqs_queue.{ids[queue.dlq]}.arn}}"
        arguments["redrive_policy"] = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": queue.receives.value})
    return arguments


def _names(wanted: Iterable[WantedQueue], read: Any) -> dict[str, str]:  # noqa: ANN401  text to text
    """Return a unique template identifier for each queue, by the queue's name. `read` converts a queue's name."""
    found: dict[str, str] = {}
    for queue in wanted:
        plain, taken = read(queue.name), set(found.values())
        numbered = (f"{plain}{number}" for number in range(2, len(taken) + 3))
        found[queue.name] = next(name for name in (plain, *numbered) if name not in taken)
    return found
