"""Make the line with which a dry run says that the action needs the approval of a second person."""

from __future__ import annotations

from reprocessing.domain.approvals.requested_action import Messages
from reprocessing.store.approvals import guard


def approval_text(messages: Messages, *, by: str) -> list[str]:
    """Return one line if the person `by` needs a second person to change these messages, else an empty list.

    `messages` is the number of messages to change, by the DLQ's primary key.
    """
    needed = guard.is_needed(messages, by=by)
    return ["This needs a second person: with --confirm, an approval is requested."] if needed else []
