"""Queue attributes: their names, allowed values and defaults, and the form in which answers show them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import orjson

from redrive_service.sandbox.sqs.api.errors import SqsError
from redrive_service.sandbox.sqs.api.redrive_policies import (
    RedriveAllowPolicy,
    RedrivePolicy,
    read_allow_policy,
    read_redrive_policy,
)

# Lowest and highest value (AWS, CreateQueue).
_RANGES: Final = {
    "DelaySeconds": (0, 900),
    "KmsDataKeyReusePeriodSeconds": (60, 86_400),
    "MaximumMessageSize": (1_024, 1_048_576),
    "MessageRetentionPeriod": (60, 1_209_600),
    "ReceiveMessageWaitTimeSeconds": (0, 20),
    "VisibilityTimeout": (0, 43_200),
}
_CHOICES: Final = {
    "ContentBasedDeduplication": ("true", "false"),
    "DeduplicationScope": ("queue", "messageGroup"),
    "FifoThroughputLimit": ("perQueue", "perMessageGroupId"),
    "SqsManagedSseEnabled": ("true", "false"),
}
_STANDARD_DEFAULTS: Final = {
    "DelaySeconds": "0",
    "MaximumMessageSize": "1048576",
    "MessageRetentionPeriod": "345600",
    "ReceiveMessageWaitTimeSeconds": "0",
    "SqsManagedSseEnabled": "true",
    "VisibilityTimeout": "30",
}
_FIFO_DEFAULTS: Final = {
    **_STANDARD_DEFAULTS,
    "ContentBasedDeduplication": "false",
    "DeduplicationScope": "queue",
    "FifoQueue": "true",
    "FifoThroughputLimit": "perQueue",
}
_FIFO_ONLY: Final = frozenset(_FIFO_DEFAULTS) - frozenset(_STANDARD_DEFAULTS)
_FREE_TEXT: Final = frozenset({"KmsMasterKeyId", "Policy"})
SETTABLE: Final = frozenset({*_RANGES, *_CHOICES, *_FREE_TEXT, "FifoQueue", "RedrivePolicy", "RedriveAllowPolicy"})
COMPUTED: Final = frozenset({
    "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed", "ApproximateNumberOfMessagesNotVisible",
    "CreatedTimestamp", "LastModifiedTimestamp", "QueueArn",
})  # fmt: skip
KNOWN: Final = SETTABLE | COMPUTED | {"All"}


def unknown_attribute(name: str) -> SqsError:
    """Return the error for an attribute that this type of queue does not have."""
    return SqsError("InvalidAttributeName", f"Unknown Attribute {name}.")


@dataclass(slots=True, kw_only=True)
class Settings:
    """The attributes of one queue: in `shown` as texts, for answers, and as typed values.

    Times are in seconds, sizes in bytes. `wait` is the default time of a long poll. If `content_based` is true,
    messages without deduplication id are deduplicated by their content. If `scoped_by_group` is true, only messages of
    the same message group are duplicates. `redrive` is None if the queue has no dead-letter queue.
    """

    fifo: bool
    shown: dict[str, str] = field(default_factory=dict)
    delay: int = 0
    largest_message: int = 0
    retention: int = 0
    wait: int = 0
    visibility: int = 0
    content_based: bool = False
    scoped_by_group: bool = False
    redrive: RedrivePolicy | None = None
    allow: RedriveAllowPolicy = field(default_factory=RedriveAllowPolicy)

    def __post_init__(self) -> None:
        self.apply(_FIFO_DEFAULTS if self.fifo else _STANDARD_DEFAULTS)

    def apply(self, changes: Mapping[str, str]) -> None:
        """Apply changes that `normalise` has checked. An empty value removes the attribute."""
        shown = {name: value for name, value in {**self.shown, **changes}.items() if value}
        self.shown = shown
        self.delay = int(shown["DelaySeconds"])
        self.largest_message = int(shown["MaximumMessageSize"])
        self.retention = int(shown["MessageRetentionPeriod"])
        self.wait = int(shown["ReceiveMessageWaitTimeSeconds"])
        self.visibility = int(shown["VisibilityTimeout"])
        self.content_based = shown.get("ContentBasedDeduplication") == "true"
        self.scoped_by_group = shown.get("DeduplicationScope") == "messageGroup"
        self.redrive = read_redrive_policy(shown["RedrivePolicy"]) if "RedrivePolicy" in shown else None
        allow = shown.get("RedriveAllowPolicy")
        self.allow = read_allow_policy(allow) if allow else RedriveAllowPolicy()


def normalise(changes: Mapping[str, str], *, fifo: bool, before: Mapping[str, str]) -> dict[str, str]:
    """Check changes of attributes, and return them in the form in which they are stored.

    Raises:
        SqsError: a change is invalid by itself, or in combination with the present attributes `before`.
    """
    checked = {name: _normalise_one(name, value, fifo=fifo) for name, value in changes.items()}
    after = {**(_FIFO_DEFAULTS if fifo else _STANDARD_DEFAULTS), **before, **checked}
    per_group = after.get("FifoThroughputLimit") == "perMessageGroupId"
    if per_group and after.get("DeduplicationScope") != "messageGroup":
        reason = "perMessageGroupId is only allowed when DeduplicationScope is messageGroup."
        raise _bad_value("FifoThroughputLimit", reason)
    if checked.get("KmsMasterKeyId"):
        if checked.get("SqsManagedSseEnabled") == "true":
            sentence = "You can use one type of server-side encryption (SSE) at one time."
            raise SqsError("InvalidAttributeName", f"{sentence} You can either enable KMS SSE or SQS SSE.")
        checked["SqsManagedSseEnabled"] = "false"
    return checked


def _normalise_one(name: str, value: str, *, fifo: bool) -> str:
    if name not in SETTABLE or (name in _FIFO_ONLY and not fifo):
        raise unknown_attribute(name)
    if name in _RANGES:
        return _normalise_number(name, value)
    if name in _CHOICES:
        return _normalise_choice(name, value)
    if not value or name in _FREE_TEXT:
        return _normalise_text(name, value)
    if name == "FifoQueue":
        if value.lower() != "true":
            raise _bad_value(name, "Modifying queue type is not supported.")
        return "true"
    if name == "RedrivePolicy":
        return read_redrive_policy(value).stored()
    return read_allow_policy(value).stored()


def _normalise_number(name: str, value: str) -> str:
    low, high = _RANGES[name]
    if not value.isascii() or not value.isdecimal() or not low <= int(value[:12]) <= high:
        raise _bad_value(name, f"Must be a whole number from {low} to {high}.")
    return str(int(value))


def _normalise_choice(name: str, value: str) -> str:
    for choice in _CHOICES[name]:
        if value.lower() == choice.lower():
            return choice
    raise _bad_value(name, f"Must be one of {', '.join(_CHOICES[name])}.")


def _normalise_text(name: str, value: str) -> str:
    if name == "FifoQueue":
        raise _bad_value(name, "Must be true.")
    if name == "Policy" and value:
        try:
            orjson.loads(value)
        except orjson.JSONDecodeError:
            raise _bad_value(name, "Must be JSON.") from None
    return value


def _bad_value(name: str, reason: str) -> SqsError:
    return SqsError("InvalidAttributeValue", f"Invalid value for the parameter {name}. Reason: {reason}")
