"""List the AWS API calls of the service, and build the IAM policies that allow exactly these calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from reprocessing.domain.message.arn import read

#: The session name of assumed roles. CloudTrail shows it, and a trust policy may require it.
ASSUMED_SESSION: Final = "redrive"
ANY_RESOURCE: Final = "*"


class Purpose(Enum):
    """What the service needs a permission for. The value is the id (Sid) of the policy's statement."""

    WATCH = "ReadDlqs"
    TAKE = "ReceiveAndDeleteFromDlqs"
    LOOK = "ReadTargetQueues"
    SEND = "SendToTargetQueues"
    LOOK_AT_PARKING = "ReadParkingQueues"
    PARK = "SendToParkingQueues"
    INVOKE = "InvokeFunctions"
    SUBSCRIBER = "ReadSubscriptions"
    LISTENERS = "ListTopicSubscriptions"
    PUBLISH = "PublishToTopics"
    RULES = "ListEventBusTargets"
    PUT = "PutEventsOnBuses"
    OBJECTS = "ReadS3Objects"
    BUCKETS = "ListS3Buckets"
    ALARMS = "ReadHealthAlarms"
    AGES = "ReadTargetMessageAge"
    OWN = "UseOwnQueues"
    ASSUME = "AssumeRoles"
    DECRYPT = "DecryptWithKeys"
    ENCRYPT = "EncryptWithKeys"
    WRAP = "WrapPayloadKeys"
    UNWRAP = "UnwrapPayloadKeys"
    PROVISION = "ProvisionQueues"
    NATIVE = "StartAwsRedriveOfDlqs"
    NATIVE_TO = "SendAwsRedriveToQueues"
    METRICS = "PublishMetrics"
    PUT_ALARMS = "PutAlarms"
    SEE_ALARMS = "ListAlarms"
    CONSUMERS = "ReadConsumerMetrics"
    DEAD_TASKS = "ReadOwnDlqs"
    DISCOVER_QUEUES = "DiscoverQueues"
    DISCOVER_TAGS = "DiscoverQueueTags"
    DISCOVER_FUNCTIONS = "DiscoverFunctions"
    DISCOVER_SUBSCRIPTIONS = "DiscoverSubscriptions"
    DISCOVER_RULES = "DiscoverRules"
    DISCOVER_AGES = "DiscoverMessageAges"


#: The API calls for each purpose. SQS itself makes the calls of DECRYPT and ENCRYPT, and some NATIVE calls, with the
#: service's permissions.
CALLS: Final[Mapping[Purpose, tuple[str, ...]]] = {
    Purpose.WATCH: ("sqs:GetQueueAttributes", "sqs:ListDeadLetterSourceQueues", "sqs:ListMessageMoveTasks"),
    Purpose.TAKE: ("sqs:ReceiveMessage", "sqs:DeleteMessageBatch", "sqs:ChangeMessageVisibilityBatch"),
    Purpose.LOOK: ("sqs:GetQueueAttributes", "sqs:GetQueueUrl"),
    Purpose.SEND: ("sqs:SendMessageBatch",),
    Purpose.LOOK_AT_PARKING: ("sqs:GetQueueAttributes",),
    Purpose.PARK: ("sqs:SendMessageBatch",),
    Purpose.INVOKE: ("lambda:Invoke",),
    Purpose.SUBSCRIBER: ("sns:GetSubscriptionAttributes",),
    Purpose.LISTENERS: ("sns:ListSubscriptionsByTopic",),
    Purpose.PUBLISH: ("sns:PublishBatch",),
    Purpose.RULES: ("events:ListRules", "events:ListTargetsByRule"),
    Purpose.PUT: ("events:PutEvents",),
    Purpose.OBJECTS: ("s3:HeadObject", "s3:GetObject"),
    Purpose.BUCKETS: ("s3:ListBucket",),
    Purpose.ALARMS: ("cloudwatch:DescribeAlarms",),
    Purpose.AGES: ("cloudwatch:GetMetricData",),
    Purpose.OWN: (
        "sqs:SendMessage", "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility",
        "sqs:GetQueueAttributes",
    ),
    Purpose.ASSUME: ("sts:AssumeRole",),
    Purpose.DECRYPT: ("kms:Decrypt",),
    Purpose.ENCRYPT: ("kms:GenerateDataKey", "kms:Decrypt"),
    Purpose.WRAP: ("kms:Encrypt", "kms:Decrypt"),
    Purpose.UNWRAP: ("kms:Decrypt",),
    Purpose.PROVISION: (
        "sqs:CreateQueue", "sqs:SetQueueAttributes", "sqs:GetQueueUrl", "sqs:GetQueueAttributes",
        "sqs:ListDeadLetterSourceQueues",
    ),
    Purpose.NATIVE: (
        "sqs:StartMessageMoveTask", "sqs:CancelMessageMoveTask", "sqs:ListMessageMoveTasks", "sqs:ReceiveMessage",
        "sqs:DeleteMessage", "sqs:GetQueueAttributes",
    ),
    Purpose.NATIVE_TO: ("sqs:SendMessage",),
    Purpose.METRICS: ("cloudwatch:PutMetricData",),
    Purpose.PUT_ALARMS: ("cloudwatch:PutMetricAlarm",),
    Purpose.SEE_ALARMS: ("cloudwatch:DescribeAlarms",),
    Purpose.CONSUMERS: ("cloudwatch:GetMetricData",),
    Purpose.DEAD_TASKS: ("sqs:GetQueueAttributes",),
    Purpose.DISCOVER_QUEUES: (
        "sqs:ListQueues", "sqs:GetQueueAttributes", "sqs:ListDeadLetterSourceQueues", "sqs:GetQueueUrl",
    ),
    Purpose.DISCOVER_TAGS: ("sqs:ListQueueTags",),
    Purpose.DISCOVER_FUNCTIONS: ("lambda:ListFunctions", "lambda:ListFunctionEventInvokeConfigs"),
    Purpose.DISCOVER_SUBSCRIPTIONS: ("sns:ListSubscriptions", "sns:GetSubscriptionAttributes"),
    Purpose.DISCOVER_RULES: ("events:ListEventBuses", "events:ListRules", "events:ListTargetsByRule"),
    Purpose.DISCOVER_AGES: ("cloudwatch:GetMetricData",),
}  # fmt: skip

#: API calls whose IAM action has another name than the call.
_ACTIONS: Final = {
    "sqs:SendMessageBatch": "sqs:SendMessage", "sqs:DeleteMessageBatch": "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility", "lambda:Invoke": "lambda:InvokeFunction",
    "sns:PublishBatch": "sns:Publish", "s3:HeadObject": "s3:GetObject",
}  # fmt: skip
#: The KMS encryption context of payload keys has this name, and its value begins with this text. CloudTrail shows it.
KMS_CONTEXT: Final = "redrive"
#: Purposes that only captures and sends have: the policies for mode `observe` leave them out.
_ACTS: Final = frozenset({
    Purpose.TAKE, Purpose.SEND, Purpose.PARK, Purpose.INVOKE, Purpose.PUBLISH, Purpose.PUT, Purpose.OBJECTS,
    Purpose.BUCKETS,
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """One use of an AWS resource by the service, for which the service needs a permission.

    Attributes:
        arn: the resource; a KMS key may be given by its alias; `*` if IAM accepts no narrower resource.
        role: the ARN of the role that uses the resource. Empty for the service's own role.
        within: the region or the metrics namespace to which the policy limits the permission; empty: no limit.
        acting: whether the resource is used only to capture or send messages. A DLQ in mode `observe` needs neither.
    """

    purpose: Purpose
    arn: str
    role: str = ""
    within: str = ""
    acting: bool = False


def iam_action(call: str) -> str:
    """Return the IAM action that allows an API call, such as sqs:SendMessage for sqs:SendMessageBatch."""
    return _ACTIONS.get(call, call)


def policies(uses: Iterable[ResourceUse], *, acts: bool) -> dict[str, dict[str, Any]]:
    """Return the IAM policies that allow the service to use these resources: one policy for each role, by role ARN.

    The policy with the key "" is for the service's own role. If `acts` is false, the policies allow the service only to
    observe DLQs, and not to capture or send messages.
    """
    wanted = {use for use in uses if acts or not (use.acting or use.purpose in _ACTS)}
    used = sorted(wanted, key=lambda use: (use.role, use.within, use.arn))
    roles = sorted({use.role for use in used} - {""})
    used += [ResourceUse(Purpose.ASSUME, role) for role in roles]
    return {
        role: {"Version": "2012-10-17", "Statement": list(_statements([use for use in used if use.role == role]))}
        for role in ("", *roles)
    }


def trust_policy(service: str) -> dict[str, Any]:
    """Return the trust policy of a role that the service assumes. `service` is the ARN of the service's own role."""
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "AllowServiceToAssumeRole", "Effect": "Allow", "Principal": {"AWS": service},
                "Action": "sts:AssumeRole", "Condition": {"StringEquals": {"sts:RoleSessionName": ASSUMED_SESSION}},
            }
        ],
    }  # fmt: skip


def _statements(used: list[ResourceUse]) -> Iterator[dict[str, Any]]:
    """Yield one policy statement for each pair of a purpose and a condition.

    If a purpose has several statements, their ids end in a number from the second on, because ids must be unique.
    """
    for purpose in Purpose:
        groups: dict[str, tuple[dict[str, Any], list[str]]] = {}
        for use in used:
            if use.purpose is purpose:
                condition = _condition(use)
                groups.setdefault(repr(condition), (condition, []))[1].append(_resource(use))
        for number, (condition, resources) in enumerate(groups.values(), 1):
            yield {
                "Sid": purpose.value + (str(number) if number > 1 else ""),
                "Effect": "Allow",
                "Action": sorted({iam_action(call) for call in CALLS[purpose]}),
                "Resource": sorted(set(resources)),
                **({"Condition": condition} if condition else {}),
            }


def _condition(use: ResourceUse) -> dict[str, Any]:
    match use.purpose:
        case Purpose.DECRYPT | Purpose.ENCRYPT:
            return {"StringEquals": {"kms:ViaService": f"sqs.{use.within}.amazonaws.com"}, **_alias(use)}
        case Purpose.WRAP | Purpose.UNWRAP:
            return {"StringLike": {f"kms:EncryptionContext:{KMS_CONTEXT}": f"{KMS_CONTEXT} *"}, **_alias(use)}
        case Purpose.METRICS:
            return {"StringEquals": {"cloudwatch:namespace": use.within}}
        case _ if use.arn == ANY_RESOURCE:
            return {"StringEquals": {"aws:RequestedRegion": use.within}}
        case _:
            return {}


def _alias(use: ResourceUse) -> dict[str, Any]:
    """Return the condition that limits a statement to the KMS key of an alias; empty if the ARN names no alias."""
    alias = use.arn.rpartition(":")[2]
    return {"ForAnyValue:StringEquals": {"kms:ResourceAliases": alias}} if alias.startswith("alias/") else {}


def _resource(use: ResourceUse) -> str:
    """Return the ARN for a policy statement, as IAM requires: key/* for a KMS alias, rule/* to list a bus's rules."""
    match use.purpose:
        case Purpose.DECRYPT | Purpose.ENCRYPT | Purpose.WRAP | Purpose.UNWRAP:
            return re.sub(r":alias/.*", ":key/*", use.arn)
        case Purpose.RULES:
            # To list the rules of a bus, IAM requires the resource rule/*.
            return re.sub(r":event-bus/.*", ":rule/*", use.arn)
        case Purpose.OBJECTS:
            return f"{use.arn}/*"
        case _:
            return use.arn


def kms_key_arn(queue: str, key: str) -> str | None:
    """Return the ARN of the KMS key, or of the key's alias, that encrypts a queue; None: no permission is needed.

    `queue`: the queue's ARN. `key`: the queue's attribute KmsMasterKeyId (an ARN, an alias or an id). The service needs
    no permission for the key alias/aws/sqs: AWS manages it, and everybody in the account may use it.
    """
    found = read(queue)
    if found is None or key.endswith("alias/aws/sqs"):
        return None
    if key.startswith("arn:"):
        return key
    partition = queue.split(":")[1]
    name = key if key.startswith("alias/") else f"key/{key}"
    return f"arn:{partition}:kms:{found.region}:{found.account}:{name}"
