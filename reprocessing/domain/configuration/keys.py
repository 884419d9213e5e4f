"""Name the objects and settings of a configuration file, and the fields that store them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, TypeAlias

#: The settings of one object, as JSON values by field name.
Settings: TypeAlias = dict[str, Any]
#: The settings of objects by kind and name.
State: TypeAlias = dict["Kind", dict[str, Settings]]

#: The value, in a file and on a command line, that removes a setting.
OFF: Final = "off"


class Kind(StrEnum):
    """A kind of object in a configuration file; the enum's value is the name of the file's section.

    Objects refer only to objects of kinds that come earlier in this list.
    """

    POLICY = "policies"
    RATE_CLASS = "rate_classes"
    TARGET = "targets"
    DLQ = "dlqs"
    RULE = "rules"
    NOTIFICATION = "notifications"
    APPROVAL = "approvals"

    @property
    def singular(self) -> str:
        """Return the word for one object of this kind, such as "rate class"."""
        return _SINGULAR[self]


_SINGULAR: Final = {
    Kind.POLICY: "policy", Kind.RATE_CLASS: "rate class", Kind.TARGET: "target", Kind.DLQ: "DLQ", Kind.RULE: "rule",
    Kind.NOTIFICATION: "notification route", Kind.APPROVAL: "approval limit",
}  # fmt: skip


def _same(*names: str) -> dict[str, str]:
    """Return a mapping from each name to itself, for keys of the file that equal the name of the field they set."""
    return dict(zip(names, names, strict=True))


_BACKOFF: Final = {"backoff_base": "backoff_base", "backoff_cap": "backoff_cap", "jitter": "backoff_jitter"}
#: Keys of the settings that a policy can have, with the DLQ's fields that store them, in the order of an export.
POLICY_KEYS: Final[Mapping[str, str]] = {
    **_same("mode", "ordering_key", "sequence", "idempotency_key", "missing_key", "message_type", "tenant", "stale"),
    **_same("when_parked", "max_attempts"),
    **_BACKOFF,
    **_same("new_key_delay", "receive_limit", "delete_when", "held_copies_limit", "parking_url", "public_fields"),
    **_same("masked_fields", "search_fields"),
    **_same("keep_bodies"),
    **_same("waves", "wave_success", "give_up_after", "approval_above"),
    "every": "interval",
    **_same("crontab", "at_once"),
    "role": "role_arn",
}
#: Keys of a DLQ that a policy cannot set. Teams are not in the file: `add_dlq --team` sets them.
DLQ_ONLY: Final = ("url", "policy", "sources", "default_source")
#: The keys that objects of each kind can have in the file, in the order of an export, with the fields that store them.
KEYS: Final[Mapping[Kind, Mapping[str, str]]] = {
    Kind.POLICY: POLICY_KEYS,
    Kind.RATE_CLASS: {**_same("rate", "burst"), **_BACKOFF},
    Kind.TARGET: {
        "outcome": "proof",
        **_same("advance", "window", "rate", "burst", "breaker_threshold", "breaker_ratio", "breaker_cooldown"),
        **_same("breaker_closes_after", "ramp_from", "ramp_every", "timeout", "answers", "content_type", "secret"),
        **_same("region"),
        "role": "role_arn",
        "refire": "confirmed_fanout",
        "celery": "kind",
        "strip_eta": "strips_eta",
        "strip_expires": "strips_expires",
        "reset_retries": "resets_retries",
        "new_id": "renews_id",
        **_same("health_checks"),
    },
    Kind.DLQ: {**_same(*DLQ_ONLY), **POLICY_KEYS},
    Kind.RULE: {
        **_same("position", "enabled", "dlq"),
        "when": "conditions",
        "then": "action",
        **_same("delay"),
        "to": "target",
        **_same("rate_class"),
        **_BACKOFF,
        "from": "valid_from",
        "until": "valid_until",
    },
    Kind.NOTIFICATION: {"events": "kinds", "dlqs": "dlqs"},
    Kind.APPROVAL: _same("above"),
}
#: Fields of `DeadLetterQueue` that policies can set.
POLICY_FIELDS: Final = tuple(POLICY_KEYS.values())
#: Fields that keep their stored value if the file omits their key, because their default depends on the queue. Other
#: fields get their default.
KEPT: Final[Mapping[Kind, frozenset[str]]] = {
    Kind.DLQ: frozenset({"delete_when", "held_copies_limit", "sources", "default_source"}),
    Kind.TARGET: frozenset(
        {"proof", "advance", "window", "region", "role_arn", "confirmed_fanout", "health_checks"}
    ),
}  # fmt: skip
#: Keys of health checks in the file, each with the kind of the check. The key `status` belongs to `http`.
CHECK_KEYS: Final[Mapping[str, str]] = {"http": "http", "alarm": "alarm", "max_depth": "depth", "max_age": "age"}


def key_of(kind: Kind, field: str) -> str:
    """Return the key of the configuration file that sets a field, such as `every` for the field `interval`."""
    return next((key for key, name in KEYS[kind].items() if name == field), field)


def effective(own: Settings, inherited: Settings, defaults: Settings) -> Settings:
    """Return the settings in force for a DLQ: its own settings, else its policy's settings, else defaults.

    Only one schedule is in force: the DLQ's own interval or crontab, else the policy's interval or crontab.
    """
    found = {**defaults, **inherited, **own}
    for values in (own, inherited):
        for schedule, other in (("crontab", "interval"), ("interval", "crontab")):
            if values.get(schedule) is not None and values.get(other) is None:
                return {**found, other: None}
    return found
