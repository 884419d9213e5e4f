"""Parse ARNs, and return the short names that people use for the resources."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

_PARTS: Final = re.compile(
    r"arn:aws[a-z-]*:(?P<service>[a-z0-9-]+):(?P<region>[a-z0-9-]*):(?P<account>[0-9]{0,12}):(?P<resource>[!-~]{1,1024})"
)
#: The part of an ARN before the resource's name. SQL in `store.safety` removes the same part.
_BEFORE_THE_NAME: Final = re.compile(r"^arn:[^:]*:[^:]*:[^:]*:[^:]*:(?:function:|event-bus/)?")
_ROLE: Final = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[!-~]{1,576}")
_REGION: Final = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]+")
_WORD: Final = r"[A-Za-z0-9_.$-]{1,256}"


class ResourceKind(Enum):
    """The kinds of AWS resources that this service knows."""

    QUEUE = "a queue"
    FUNCTION = "a Lambda function"
    TOPIC = "an SNS topic"
    SUBSCRIPTION = "an SNS subscription"
    BUS = "an EventBridge bus"
    RULE = "an EventBridge rule"
    ANOTHER = "a resource to which this service cannot send messages"


_FORMS: Final = (
    (ResourceKind.QUEUE, "sqs", re.compile(_WORD)),
    (ResourceKind.FUNCTION, "lambda", re.compile(rf"function:{_WORD}(:{_WORD})?")),
    (ResourceKind.TOPIC, "sns", re.compile(_WORD)),
    (ResourceKind.SUBSCRIPTION, "sns", re.compile(rf"{_WORD}:[A-Za-z0-9-]+")),
    (ResourceKind.BUS, "events", re.compile(r"event-bus/[A-Za-z0-9_./-]{1,256}")),
    (ResourceKind.RULE, "events", re.compile(r"rule/[A-Za-z0-9_./-]{1,321}")),
)


@dataclass(frozen=True, slots=True)
class Arn:
    """A parsed ARN. `named`: the kind of resource that the ARN names.

    The qualifier :$LATEST of a function's ARN is removed, because it means the same as no qualifier.
    """

    text: str
    named: ResourceKind
    region: str
    account: str

    @property
    def fifo(self) -> bool:
        """Return whether the resource is a FIFO queue or topic."""
        return self.named in {ResourceKind.QUEUE, ResourceKind.TOPIC} and self.text.endswith(".fifo")


def read(text: str) -> Arn | None:
    """Return the parsed ARN; None: the text is not an ARN."""
    parts = _PARTS.fullmatch(text)
    if parts is None:
        return None
    named = next(
        (kind for kind, service, form in _FORMS if service == parts["service"] and form.fullmatch(parts["resource"])),
        ResourceKind.ANOTHER,
    )
    plain = text.removesuffix(":$LATEST") if named is ResourceKind.FUNCTION else text
    return Arn(plain, named, parts["region"], parts["account"])


def is_role(text: str) -> bool:
    """Return whether the text is the ARN of an IAM role."""
    return _ROLE.fullmatch(text) is not None


def is_region(text: str) -> bool:
    """Return whether the text is the name of an AWS region, such as eu-west-1."""
    return _REGION.fullmatch(text) is not None


def resource_name(arn: str) -> str:
    """Return the name of an ARN's resource, such as orders-dlq. A text that is no ARN is returned whole."""
    return _BEFORE_THE_NAME.sub("", arn)
