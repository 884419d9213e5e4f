"""Templates use names that CloudFormation and Terraform accept, whatever a queue is called."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from reprocessing.domain.aws.queue_spec import WantedQueue, queue_family
from reprocessing.domain.aws.queue_templates import cloudformation, terraform

#: AWS: CloudFormation, AWS::SQS::Queue, Properties.
PROPERTIES = {
    "ContentBasedDeduplication", "DeduplicationScope", "DelaySeconds", "FifoQueue", "FifoThroughputLimit",
    "KmsDataKeyReusePeriodSeconds", "KmsMasterKeyId", "MaximumMessageSize", "MessageRetentionPeriod", "QueueName",
    "ReceiveMessageWaitTimeSeconds", "RedriveAllowPolicy", "RedrivePolicy", "SqsManagedSseEnabled", "Tags",
    "VisibilityTimeout",
}  # fmt: skip
#: HashiCorp: aws_sqs_queue, Argument Reference; and `lifecycle`, which every resource takes.
ARGUMENTS = {
    "content_based_deduplication", "deduplication_scope", "delay_seconds", "fifo_queue", "fifo_throughput_limit",
    "kms_data_key_reuse_period_seconds", "kms_master_key_id", "max_message_size", "message_retention_seconds", "name",
    "name_prefix", "policy", "receive_wait_time_seconds", "redrive_allow_policy", "redrive_policy",
    "sqs_managed_sse_enabled", "tags", "visibility_timeout_seconds", "lifecycle",
}  # fmt: skip

FAMILIES = [
    queue_family(WantedQueue(name="orders", dlq="orders-dlq"), parking="orders-parking"),
    queue_family(WantedQueue(name="orders.fifo", dlq="orders-dlq.fifo", key="alias/redrive")),
    (*queue_family(WantedQueue(name="a-b", dlq="a_b")), *queue_family(WantedQueue(name="1_queue", dlq="-"))),
]


def resources(found: dict[str, Any]) -> dict[str, Any]:
    return {name: one["Properties"] for name, one in found["Resources"].items()}


@pytest.mark.parametrize("wanted", FAMILIES)
def test_every_property_is_one_of_cloudformations(wanted: tuple[WantedQueue, ...]) -> None:
    found = resources(cloudformation(wanted))
    assert sorted(one["QueueName"] for one in found.values()) == sorted(one.name for one in wanted)
    assert {name for one in found.values() for name in one} <= PROPERTIES
    assert all(re.fullmatch(r"[A-Za-z0-9]+", name) for name in found)


@pytest.mark.parametrize("wanted", FAMILIES)
def test_every_argument_is_one_of_terraforms(wanted: tuple[WantedQueue, ...]) -> None:
    found = terraform(wanted)["resource"]
    queues = found["aws_sqs_queue"]
    assert sorted(one["name"] for one in queues.values()) == sorted(one.name for one in wanted)
    assert {name for one in queues.values() for name in one} <= ARGUMENTS
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", name) for name in queues)
    assert {name for one in found["aws_sqs_queue_redrive_allow_policy"].values() for name in one} == {
        "queue_url", "redrive_allow_policy"
    }  # fmt: skip


@pytest.mark.parametrize("wanted", FAMILIES)
def test_no_resources_of_a_template_wait_for_each_other(wanted: tuple[WantedQueue, ...]) -> None:
    of_aws = {
        name: set(re.findall(r"'Fn::GetAtt': \['([^']+)'", repr(one)))
        for name, one in resources(cloudformation(wanted)).items()
    }
    of_terraform = {
        name: set(re.findall(r"aws_sqs_queue\.([^.]+)\.", repr(one)))
        for name, one in terraform(wanted)["resource"]["aws_sqs_queue"].items()
    }
    for waits in (of_aws, of_terraform):
        assert sum(map(len, waits.values())) == sum(1 for one in wanted if one.dlq)
        assert all(not waits[other] for others in waits.values() for other in others)


@pytest.mark.parametrize("write", [cloudformation, terraform])
def test_the_template_of_a_queue_with_a_dlq(write: Callable[[Sequence[WantedQueue]], Any]) -> None:
    found = write(queue_family(WantedQueue(name="orders", dlq="orders-dlq")))
    assert found == json.loads((Path(__file__).parent / f"{write.__name__}.json").read_text())


def test_fifo_and_a_key_are_in_the_templates_and_names_are_told_apart() -> None:
    properties = resources(cloudformation(FAMILIES[1]))["OrdersFifo"]
    assert (properties["FifoQueue"], properties["ContentBasedDeduplication"]) == (True, False)
    assert (properties["KmsMasterKeyId"], "SqsManagedSseEnabled" in properties) == ("alias/redrive", False)
    arguments = terraform(FAMILIES[1])["resource"]["aws_sqs_queue"]["orders_fifo"]
    assert (arguments["fifo_queue"], arguments["content_based_deduplication"]) == (True, False)
    assert (arguments["kms_master_key_id"], "sqs_managed_sse_enabled" in arguments) == ("alias/redrive", False)
    assert list(resources(cloudformation(FAMILIES[2]))) == ["AB", "AB2", "Queue", "1Queue"]
    assert list(resources(cloudformation([WantedQueue(name="OrderS-9")]))) == ["Orders9"]
    assert list(terraform(FAMILIES[2])["resource"]["aws_sqs_queue"]) == ["a_b", "a-b", "queue_-", "queue_1_queue"]
