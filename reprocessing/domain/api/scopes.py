"""The scopes of API tokens. Each scope allows what one permission of the admin allows."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from reprocessing.domain.errors import InvalidApiToken


class Scope(StrEnum):
    """What an API token may do: one operation, or a group of operations, of the HTTP API."""

    DLQS_READ = "dlqs:read"
    DLQS_STOP = "dlqs:stop"
    MESSAGES_READ = "messages:read"
    MESSAGES_BODIES = "messages:bodies"
    MESSAGES_RELEASE = "messages:release"
    MESSAGES_DISCARD = "messages:discard"
    MESSAGES_ASSIGN = "messages:assign"
    MESSAGES_EDIT = "messages:edit"
    RUNS_READ = "runs:read"
    RUNS_OPERATE = "runs:operate"
    RULES_READ = "rules:read"
    RULES_SWITCH = "rules:switch"
    EVERYTHING_STOP = "everything:stop"
    APPROVALS_READ = "approvals:read"
    APPROVALS_DECIDE = "approvals:decide"

    @property
    def permission(self) -> str:
        """Return the Django permission that allows the same actions in the admin, such as reprocessing.view_run."""
        return f"reprocessing.{_MEANINGS[self][0]}"

    @property
    def sentence(self) -> str:
        """Return what the scope allows, in words."""
        return _MEANINGS[self][1]


#: The scopes that only a token of a user can use, and why: with a token of teams, each request would be refused.
ONLY_FOR_USERS: Final = {
    Scope.EVERYTHING_STOP: "it is about all DLQs, and a token of teams sees only the DLQs of its teams",
    Scope.APPROVALS_DECIDE: "a person decides, and a token of teams is nobody's",
}
_MEANINGS: Final = {
    Scope.DLQS_READ: ("view_deadletterqueue", "list DLQs and read their status and stops"),
    Scope.DLQS_STOP: ("stop_deadletterqueue", "stop and resume DLQs"),
    Scope.MESSAGES_READ: ("view_letter", "list messages and bulk actions, without bodies"),
    Scope.MESSAGES_BODIES: ("view_payload", "read bodies of messages, and search in them"),
    Scope.MESSAGES_RELEASE: ("release_parkedletter", "release parked messages"),
    Scope.MESSAGES_DISCARD: ("discard_parkedletter", "discard parked messages, and restore them"),
    Scope.MESSAGES_ASSIGN: ("assign_parkedletter", "assign parked messages to people, and add notes"),
    Scope.MESSAGES_EDIT: ("edit_parkedletter", "edit bodies of parked messages, together with messages:bodies"),
    Scope.RUNS_READ: ("view_run", "list runs and read their progress"),
    Scope.RUNS_OPERATE: ("operate_run", "plan, start, pause, resume and abort runs"),
    Scope.RULES_READ: ("view_rule", "list rules"),
    Scope.RULES_SWITCH: ("change_rule", "enable and disable rules"),
    Scope.EVERYTHING_STOP: ("stop_sends", "stop and resume all sends"),
    Scope.APPROVALS_READ: ("view_approval", "list approvals"),
    Scope.APPROVALS_DECIDE: ("view_approval", "approve and decline requests of other people"),
}  # fmt: skip


def read_scopes(names: Iterable[str]) -> tuple[Scope, ...]:
    """Return the scopes with these names, without repetitions.

    Raises:
        InvalidApiToken: there are no names, or a name is unknown.
    """
    given = set(names)
    known = ", ".join(Scope)
    if unknown := sorted(given - set(Scope)):
        raise InvalidApiToken(f'There is no scope "{unknown[0]}". The scopes are: {known}.')
    if not given:
        raise InvalidApiToken(f"A token without scopes could do nothing. Give it some of: {known}.")
    return tuple(scope for scope in Scope if scope in given)
