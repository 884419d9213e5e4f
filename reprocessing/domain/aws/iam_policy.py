"""Which calls of AWS the service makes, what for, and the IAM policies that allow those and no others.

AWS: Service Authorization Reference, for the actions, what they are about, and their conditions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from reprocessing.domain.message.arn import read

#: Under which every assumed session stands in CloudTrail, and which a trust policy may ask for.
SESSION: Final = "redrive"
ALL: Final = "*"


class Purpose(Enum):
    """What a right is for, as a statement's id says it."""

    WATCH = "LookAtTheDlqs"
    TAKE = "TakeMessagesOutOfTheDlqs"
    LOOK = "LookAtTheQueuesThatLettersGoTo"
    SEND = "SendLettersToTheirQueues"
    LOOK_AT_PARKING = "LookAtTheParkingQueues"
    PARK = "TellTheParkingQueuesWhatIsParked"
    INVOKE = "InvokeTheFunctions"
    SUBSCRIBER = "AskWhomASubscriptionIsFor"
    LISTENERS = "CountWhoListensToTheTopics"
    PUBLISH = "PublishToTheTopics"
    RULES = "CountTheTargetsOfTheBuses"
    PUT = "PutEventsOnTheBuses"
    OBJECTS = "LookWhetherWhatBodiesPointToIsThere"
    BUCKETS = "TellAMissingObjectFromAForbiddenOne"
    ALARMS = "AskAlarmsWhetherTargetsAreWell"
    AGES = "AskHowOldMessagesOfTargetsAre"
    OWN = "PassOnTheServicesOwnTasks"
    ASSUME = "AssumeTheRoles"
    DECRYPT = "ReadWhatTheKeysEncrypt"
    ENCRYPT = "EncryptWithTheKeys"
    PROVISION = "MakeAndChangeTheQueues"
    NATIVE = "LetAwsMoveMessagesOutOfTheDlqs"
    NATIVE_TO = "LetAwsMoveMessagesToTheQueues"
    METRICS = "CountInCloudWatch"
    PUT_ALARMS = "SetAlarms"
    SEE_ALARMS = "SeeWhichAlarmsThereAre"
    CONSUMERS = "AskHowTheConsumersDo"
    DEAD_TASKS = "CountTheServicesDeadTasks"


#: The calls, as boto3 names them. Some AWS makes in our name: those of KMS for SQS, and what a move of messages takes
#: (AWS: SQS Developer Guide, permissions for a dead-letter queue redrive).
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
    Purpose.OBJECTS: ("s3:HeadObject",),
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
}  # fmt: skip

#: What IAM calls a call that it does not call by its own name.
_ACTIONS: Final = {
    "sqs:SendMessageBatch": "sqs:SendMessage",
    "sqs:DeleteMessageBatch": "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
    "lambda:Invoke": "lambda:InvokeFunction",
    "sns:PublishBatch": "sns:Publish",
    "s3:HeadObject": "s3:GetObject",
}
#: What takes something, or makes something happen: not in the mode observe.
_ACTS: Final = frozenset({
    Purpose.TAKE, Purpose.SEND, Purpose.PARK, Purpose.INVOKE, Purpose.PUBLISH, Purpose.PUT, Purpose.OBJECTS,
    Purpose.BUCKETS,
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Use:
    """Something of AWS that is used.

    Attributes:
        arn: what; of a key also an alias' ARN; `*` where IAM knows nothing narrower.
        role: the ARN of the role under which it is used; empty: the service's own.
        within: what a condition narrows it down to: a region; of metrics their namespace.
        acting: whether it is only used where letters are taken or sent.
    """

    purpose: Purpose
    arn: str
    role: str = ""
    within: str = ""
    acting: bool = False


def action(call: str) -> str:
    """The action that IAM asks for where this call is made: `sqs:SendMessageBatch` takes `sqs:SendMessage`."""
    return _ACTIONS.get(call, call)


def policies(uses: Iterable[Use], *, acts: bool) -> dict[str, dict[str, Any]]:
    """The policy of each role, by its ARN; of the service's own under the empty text, always there.

    Args:
        uses: what is used, perhaps some of it twice.
        acts: whether letters may be taken and sent; else dlqs are only observed.
    """
    wanted = {one for one in uses if acts or not (one.acting or one.purpose in _ACTS)}
    used = sorted(wanted, key=lambda one: (one.role, one.within, one.arn))
    roles = sorted({one.role for one in used} - {""})
    used += [Use(Purpose.ASSUME, role) for role in roles]
    return {
        role: {"Version": "2012-10-17", "Statement": list(_statements([one for one in used if one.role == role]))}
        for role in ("", *roles)
    }


def trust(service: str) -> dict[str, Any]:
    """The trust policy of a role that the service's role, of this ARN, assumes."""
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "LetTheServiceAssumeThisRole",
                "Effect": "Allow",
                "Principal": {"AWS": service},
                "Action": "sts:AssumeRole",
                "Condition": {"StringEquals": {"sts:RoleSessionName": SESSION}},
            }
        ],
    }


def _statements(used: list[Use]) -> Iterator[dict[str, Any]]:
    """One a purpose and condition, in the order of the purposes; ids are told apart by numbers."""
    for purpose in Purpose:
        groups: dict[str, tuple[dict[str, Any], list[str]]] = {}
        for one in used:
            if one.purpose is purpose:
                condition = _condition(one)
                groups.setdefault(repr(condition), (condition, []))[1].append(_resource(one))
        for number, (condition, resources) in enumerate(groups.values(), 1):
            yield {
                "Sid": purpose.value + (str(number) if number > 1 else ""),
                "Effect": "Allow",
                "Action": sorted({action(call) for call in CALLS[purpose]}),
                "Resource": sorted(set(resources)),
                **({"Condition": condition} if condition else {}),
            }


def _condition(one: Use) -> dict[str, Any]:
    match one.purpose:
        case Purpose.DECRYPT | Purpose.ENCRYPT:
            via = {"StringEquals": {"kms:ViaService": f"sqs.{one.within}.amazonaws.com"}}
            alias = one.arn.rpartition(":")[2]
            if not alias.startswith("alias/"):
                return via
            return {**via, "ForAnyValue:StringEquals": {"kms:ResourceAliases": alias}}
        case Purpose.METRICS:
            return {"StringEquals": {"cloudwatch:namespace": one.within}}
        case _ if one.arn == ALL:
            return {"StringEquals": {"aws:RequestedRegion": one.within}}
        case _:
            return {}


def _resource(one: Use) -> str:
    """What IAM is told that it is about: a key by its id, for it knows no alias; of a bus its account's rules."""
    match one.purpose:
        case Purpose.DECRYPT | Purpose.ENCRYPT:
            return re.sub(r":alias/.*", ":key/*", one.arn)
        case Purpose.RULES:
            # AWS does not say for which rule it asks when those of a bus are listed.
            return re.sub(r":event-bus/.*", ":rule/*", one.arn)
        case Purpose.OBJECTS:
            return f"{one.arn}/*"
        case _:
            return one.arn


def key_of(queue: str, key: str) -> str | None:
    """The ARN of the key that encrypts the queue with this ARN, or of its alias; None: it takes no right.

    The policy of AWS's own key, alias/aws/sqs, lets everybody in its account use it through SQS.
    """
    found = read(queue)
    if found is None or key.endswith("alias/aws/sqs"):
        return None
    if key.startswith("arn:"):
        return key
    partition = queue.split(":")[1]
    name = key if key.startswith("alias/") else f"key/{key}"
    return f"arn:{partition}:kms:{found.region}:{found.account}:{name}"
