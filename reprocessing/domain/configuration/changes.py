"""Compare the settings of a configuration file with the stored settings."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from reprocessing.domain.configuration.keys import POLICY_FIELDS, Kind, Settings, key_of

#: Fields that are not shown as changes, because other fields determine them.
_HIDDEN: Final = frozenset({"fifo", "own_settings"})


class Action(StrEnum):
    """What `apply_config` does with an object. The value is the sign before the object in the plan that it shows."""

    ADD = "+"
    CHANGE = "~"
    REMOVE = "-"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A setting that changes: its old and new value. `inherited`: whether the new value is from the DLQ's policy."""

    key: str
    before: Any
    after: Any
    inherited: bool = False


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """What `apply_config` does with one object, and which of its settings change."""

    kind: Kind
    name: str
    action: Action
    fields: tuple[FieldChange, ...] = ()


def compare(kind: Kind, name: str, before: Settings | None, after: Settings | None) -> ObjectChange | None:
    """Return how an object changes from its settings `before` to its settings `after`; None: there is no change.

    `before` is None if the object does not exist yet. `after` is None if the object is to be removed.
    """
    if after is None:
        return None if before is None else ObjectChange(kind, name, Action.REMOVE)
    fields = tuple(_fields(kind, before or {}, after))
    if before is None:
        return ObjectChange(kind, name, Action.ADD, fields)
    if fields or before.get("own_settings") != after.get("own_settings"):
        return ObjectChange(kind, name, Action.CHANGE, fields)
    return None


def _fields(kind: Kind, before: Settings, after: Settings) -> list[FieldChange]:
    return [
        FieldChange(key_of(kind, name), before.get(name), after.get(name), _is_inherited(name, after))
        for name in dict.fromkeys((*after, *before))
        if name not in _HIDDEN and before.get(name) != after.get(name)
    ]


def _is_inherited(name: str, after: Settings) -> bool:
    return bool(after.get("policy")) and name in POLICY_FIELDS and name not in after["own_settings"]
