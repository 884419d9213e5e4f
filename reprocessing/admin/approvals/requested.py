"""If the action of an admin page needs a second person, say so on the page, and request an approval."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest
from django.urls import reverse

from reprocessing import conf
from reprocessing.domain.approvals.requested_action import ApprovalNeeded, Messages
from reprocessing.pipeline.approvals import request as requesting
from reprocessing.store.approvals import guard

#: Label of the confirming button on a page whose action needs a second person.
BUTTON: Final = "Request approval"
_NOTICE: Final = (
    "This action needs a second person. Nothing is done now: the action is requested, and somebody else approves or "
    "declines the request. If its messages, rule or settings change before that, the request becomes void."
)


def notice(request: HttpRequest, messages: Messages) -> str:
    """Return a text for the page if the action needs a second person, else an empty text.

    `messages`: how many messages of each DLQ the action changes.
    """
    return _NOTICE if guard.is_needed(messages, by=request.user.get_username()) else ""


def request_approval(request: HttpRequest, needed: ApprovalNeeded, reason: str) -> tuple[str, str]:
    """Store a request for approval. Return the URL to which the person is redirected, and a sentence to show there.

    The URL is that of the request's page, or of the dashboard if this person may not see requests.

    Raises:
        ApprovalRefused: the reason is missing.
    """
    by, lasts = request.user.get_username(), conf.current().approval_life
    row = requesting.request(needed, by=by, reason=reason, lasts=lasts)
    may = request.user.has_perm("reprocessing.view_approval")
    address = reverse("admin:reprocessing_approval_change", args=[row.pk]) if may else reverse("admin:index")
    return address, f"Nothing was done yet: approval {row.pk} is requested. It expires at {row.expires_at:%H:%M} UTC."
