"""Request an approval instead of acting, and say so on the page that asks for confirmation."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest
from django.urls import reverse

from reprocessing import conf
from reprocessing.domain.approvals.deed import ApprovalNeeded, Messages
from reprocessing.pipeline.approvals import request as requesting
from reprocessing.store.approvals import guard

#: The button of a page whose action needs a second person.
BUTTON: Final = "Request approval"
_NOTICE: Final = (
    "This needs a second person. It is not done now: it is requested, and somebody else approves or declines it. If "
    "anything changes before, the request becomes void."
)


def notice(request: HttpRequest, messages: Messages) -> str:
    """Return the text for an action about these messages that needs a second person; empty: it needs none."""
    return _NOTICE if guard.is_needed(messages, by=request.user.get_username()) else ""


def request_approval(request: HttpRequest, needed: ApprovalNeeded, reason: str) -> tuple[str, str]:
    """Store the request. Return the address of its page, and what was done.

    Raises:
        ApprovalRefused: the reason is missing.
    """
    by, lasts = request.user.get_username(), conf.current().approval_life
    row = requesting.request(needed, by=by, reason=reason, lasts=lasts)
    may = request.user.has_perm("reprocessing.view_approval")
    address = reverse("admin:reprocessing_approval_change", args=[row.pk]) if may else reverse("admin:index")
    return address, f"Nothing was done yet: approval {row.pk} is requested. It expires at {row.expires_at:%H:%M} UTC."
