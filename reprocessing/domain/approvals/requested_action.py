"""Describe an action of a person that a second person may have to approve before it is executed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from reprocessing.domain.errors import RedriveError


class ActionKind(StrEnum):
    """The kinds of actions that a second person may have to approve. Other actions never need a second person."""

    RELEASE = "release"
    DISCARD = "discard"
    RESTORE = "restore"
    EDIT = "edit"
    START_RUN = "start_run"
    RESUME_RUN = "resume_run"
    REOPEN_RUN = "reopen_run"
    SAVE_RULE = "save_rule"
    SWITCH_RULE = "switch_rule"
    REMOVE_RULE = "remove_rule"
    CHANGE_SETTINGS = "change_settings"
    APPLY_CONFIGURATION = "apply_configuration"

    @property
    def is_about_rules(self) -> bool:
        """Return whether the action changes a rule."""
        return self in {ActionKind.SAVE_RULE, ActionKind.SWITCH_RULE, ActionKind.REMOVE_RULE}


_RUN: Final = "operate_run"
_PERMISSIONS: Final[Mapping[ActionKind, str]] = {
    ActionKind.RELEASE: "release_parkedletter", ActionKind.DISCARD: "discard_parkedletter",
    ActionKind.RESTORE: "discard_parkedletter", ActionKind.EDIT: "edit_parkedletter", ActionKind.START_RUN: _RUN,
    ActionKind.RESUME_RUN: _RUN, ActionKind.REOPEN_RUN: _RUN, ActionKind.SAVE_RULE: "change_rule",
    ActionKind.SWITCH_RULE: "change_rule", ActionKind.REMOVE_RULE: "delete_rule",
    ActionKind.CHANGE_SETTINGS: "change_deadletterqueue",
    ActionKind.APPLY_CONFIGURATION: "change_deadletterqueue change_target change_rule delete_rule "
    "change_notificationroute",
}  # fmt: skip
#: Arguments of an edit. Each says whether the edited messages are also released: of a bulk edit, of one message.
_RELEASES: Final = ("release", "replay")


def permissions_for(kind: ActionKind, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the permissions for an action of this kind. A person needs all of them to request or approve the action.

    `arguments`: the action's options. An edit that also releases messages needs the permission to release, too.
    """
    names = _PERMISSIONS[kind].split()
    if kind is ActionKind.EDIT and any(arguments.get(name) for name in _RELEASES):
        names += _PERMISSIONS[ActionKind.RELEASE].split()
    return tuple(f"reprocessing.{name}" for name in names)


@dataclass(frozen=True, slots=True)
class RequestedAction:
    """An action of a person, as data: it is stored, approved by a second person, and then executed unchanged.

    Attributes:
        title: the action in words, such as "Discard parked messages".
        arguments: the options of the action, as JSON values. The option `filter` selects all letters that it matches.
        letters: ids of the letters that the action is about. Empty if the arguments select the letters.
        body: the edited body of a message. None if the action edits no body.
        attributes: the edited attributes, packed as bytes. None if the action edits no attributes.
    """

    kind: ActionKind
    title: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    letters: tuple[int, ...] = ()
    body: bytes | None = field(default=None, repr=False)
    attributes: bytes | None = field(default=None, repr=False)

    @property
    def stamp(self) -> bytes:
        """Return a SHA-256, equal for actions that do the same. An approval covers only actions with its stamp."""
        parts = [hashlib.sha256(part or b"").hexdigest() for part in (self.body, self.attributes)]
        content = [self.kind.value, dict(self.arguments), sorted(self.letters), *parts]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).digest()


#: The key in `Messages`, instead of a DLQ's id, if an action is about all DLQs.
ALL: Final = 0
#: The number of messages that an action is about, by DLQ id. None: the number is not limited.
Messages = Mapping[int, int | None]


class ApprovalNeeded(RedriveError):
    """An action was not executed, because it needs the approval of a second person, which the caller then requests."""

    def __init__(self, action: RequestedAction, messages: Messages) -> None:
        super().__init__(f"{action.title}: this needs the approval of a second person. Nothing was done.")
        self.action, self.messages = action, messages


class ApprovalRefused(RedriveError):
    """An approval cannot be given, or does not cover the action to execute. The exception's text says why."""
