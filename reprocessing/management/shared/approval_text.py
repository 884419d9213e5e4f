"""The line of a dry run whose action needs a second person."""

from __future__ import annotations

from reprocessing.domain.approvals.deed import Messages
from reprocessing.store.approvals import guard


def approval_text(messages: Messages, *, by: str) -> list[str]:
    """Return the line that says that a second person is needed; no line if none is."""
    needed = guard.is_needed(messages, by=by)
    return ["This needs a second person: with --confirm, an approval is requested."] if needed else []
