"""The attributes RedrivePolicy (a queue's dead-letter queue) and RedriveAllowPolicy (its allowed source queues)."""

import re
from dataclasses import dataclass
from typing import Final, Literal

import orjson

from redrive_service.sandbox.sqs.api.errors import SqsError, invalid_value

MOST_RECEIVES: Final = 1000  # max of maxReceiveCount (AWS)
_MOST_SOURCES: Final = 10
_ARN: Final = re.compile(r"arn:aws[a-z-]*:sqs:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,80}(\.fifo)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class RedrivePolicy:
    """The redrive policy of a queue. After `most_receives` receives, a message moves to the queue `target_arn`."""

    target_arn: str
    most_receives: int

    def stored(self) -> str:
        """Return the policy as GetQueueAttributes shows it."""
        policy = {"deadLetterTargetArn": self.target_arn, "maxReceiveCount": self.most_receives}
        return orjson.dumps(policy).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveAllowPolicy:
    """Which source queues may name this queue as their dead-letter queue."""

    permission: Literal["allowAll", "denyAll", "byQueue"] = "allowAll"
    source_arns: tuple[str, ...] = ()

    def allows(self, source_arn: str) -> bool:
        """Return whether the queue `source_arn` may have the queue with this policy as its dead-letter queue."""
        return self.permission == "allowAll" or source_arn in self.source_arns

    def stored(self) -> str:
        """Return the policy as GetQueueAttributes shows it."""
        policy: dict[str, object] = {"redrivePermission": self.permission}
        if self.source_arns:
            policy["sourceQueueArns"] = list(self.source_arns)
        return orjson.dumps(policy).decode()


def read_redrive_policy(text: str) -> RedrivePolicy:
    """Return the policy in a RedrivePolicy attribute. Its `maxReceiveCount` may be a number or a numeric string."""
    policy = _read_object("RedrivePolicy", text, {"deadLetterTargetArn", "maxReceiveCount"})
    for name in ("deadLetterTargetArn", "maxReceiveCount"):
        if policy.get(name) is None:
            raise _refused("RedrivePolicy", text, f"Redrive policy does not contain mandatory attribute: {name}.")
    arn = policy["deadLetterTargetArn"]
    if not isinstance(arn, str) or not _ARN.fullmatch(arn):
        raise _refused("RedrivePolicy", text, "Invalid value for deadLetterTargetArn.")
    count = _read_count(policy["maxReceiveCount"])
    if count is None:
        reason = (
            f"Invalid value for maxReceiveCount: {policy['maxReceiveCount']}, "
            f"valid values are from 1 to {MOST_RECEIVES} both inclusive."
        )
        raise _refused("RedrivePolicy", text, reason)
    return RedrivePolicy(target_arn=arn, most_receives=count)


def read_allow_policy(text: str) -> RedriveAllowPolicy:
    """Return the policy in a RedriveAllowPolicy attribute. Raises SqsError if the attribute is invalid."""
    policy = _read_object("RedriveAllowPolicy", text, {"redrivePermission", "sourceQueueArns"})
    permission = policy.get("redrivePermission")
    sources = policy.get("sourceQueueArns")
    if permission not in ("allowAll", "denyAll", "byQueue"):
        raise _refused("RedriveAllowPolicy", text, "redrivePermission must be allowAll, denyAll or byQueue.")
    if permission != "byQueue":
        if sources is not None:
            raise _refused("RedriveAllowPolicy", text, "sourceQueueArns is only for the permission byQueue.")
        return RedriveAllowPolicy(permission=permission)
    if not isinstance(sources, list) or not 1 <= len(sources) <= _MOST_SOURCES:
        raise _refused("RedriveAllowPolicy", text, f"byQueue needs 1 to {_MOST_SOURCES} sourceQueueArns.")
    if not all(isinstance(arn, str) and _ARN.fullmatch(arn) for arn in sources):
        raise _refused("RedriveAllowPolicy", text, "sourceQueueArns must be ARNs of SQS queues.")
    return RedriveAllowPolicy(permission="byQueue", source_arns=tuple(sources))


def _read_object(parameter: str, text: str, known: set[str]) -> dict[str, object]:
    try:
        policy = orjson.loads(text)
    except orjson.JSONDecodeError:
        policy = None
    if not isinstance(policy, dict):
        raise _refused(parameter, text, f"{parameter} is not a valid JSON map.")
    for name in policy:
        if name not in known:
            raise _refused(parameter, text, f"Unknown attribute {name}.")
    return policy


def _read_count(value: object) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_RECEIVES:
        return value
    return None


def _refused(parameter: str, text: str, reason: str) -> SqsError:
    return invalid_value(text, parameter, reason)
