"""What an ARN names, and what people call it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

_PARTS: Final = re.compile(
    r"arn:aws[a-z-]*:(?P<service>[a-z0-9-]+):(?P<region>[a-z0-9-]*):(?P<account>[0-9]{0,12}):(?P<resource>[!-~]{1,1024})"
)
#: What people do not say, when they name it; `models.bearings.NAME` drops the same.
_BEFORE_THE_NAME: Final = re.compile(r"^arn:[^:]*:[^:]*:[^:]*:[^:]*:(?:function:|event-bus/)?")
_ROLE: Final = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[!-~]{1,576}")
_REGION: Final = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]+")
_WORD: Final = r"[A-Za-z0-9_.$-]{1,256}"


class Named(Enum):
    """Kinds of things, in words."""

    QUEUE = "a queue"
    FUNCTION = "a Lambda function"
    TOPIC = "an SNS topic"
    SUBSCRIPTION = "an SNS subscription"
    BUS = "an EventBridge bus"
    RULE = "an EventBridge rule"
    ANOTHER = "nothing that letters can be sent to from here"


_FORMS: Final = (
    (Named.QUEUE, "sqs", re.compile(_WORD)),
    (Named.FUNCTION, "lambda", re.compile(rf"function:{_WORD}(:{_WORD})?")),
    (Named.TOPIC, "sns", re.compile(_WORD)),
    (Named.SUBSCRIPTION, "sns", re.compile(rf"{_WORD}:[A-Za-z0-9-]+")),
    (Named.BUS, "events", re.compile(r"event-bus/[A-Za-z0-9_./-]{1,256}")),
    (Named.RULE, "events", re.compile(r"rule/[A-Za-z0-9_./-]{1,321}")),
)


@dataclass(frozen=True, slots=True)
class Arn:
    """An ARN, taken apart. A function's has no $LATEST: that is what it is without a qualifier."""

    text: str
    named: Named
    region: str
    account: str

    @property
    def fifo(self) -> bool:
        """Whether it keeps the order of groups: queues and topics say so in their names."""
        return self.named in {Named.QUEUE, Named.TOPIC} and self.text.endswith(".fifo")


def read(text: str) -> Arn | None:
    """What the ARN names; None where it is none."""
    parts = _PARTS.fullmatch(text)
    if parts is None:
        return None
    named = next(
        (one for one, service, form in _FORMS if service == parts["service"] and form.fullmatch(parts["resource"])),
        Named.ANOTHER,
    )
    plain = text.removesuffix(":$LATEST") if named is Named.FUNCTION else text
    return Arn(plain, named, parts["region"], parts["account"])


def is_role(text: str) -> bool:
    """Whether it is the ARN of a role."""
    return _ROLE.fullmatch(text) is not None


def is_region(text: str) -> bool:
    """Whether it is the name of a region."""
    return _REGION.fullmatch(text) is not None


def name_of(arn: str) -> str:
    """What people call it: a queue's name, a function's with its qualifier; of a URL all of it."""
    return _BEFORE_THE_NAME.sub("", arn)
