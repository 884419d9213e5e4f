"""Say in a dry run that the action needs a second person."""

from __future__ import annotations

from reprocessing.domain.approvals.requested_action import Messages
from reprocessing.store.approvals import guard


def approval_text(messages: Messages, *, by: str) -> list[str]:
    """Return one line if `by` needs a second person to change these messages, else no line.

    `messages`: the number of changed messages of each DLQ.
    """
    needed = guard.is_needed(messages, by=by)
    return ["This needs a second person: with --confirm, an approval is requested."] if needed else []
