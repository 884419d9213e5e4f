"""Decide who may search in bodies and by masked values, and who may see for which values another person searched."""

from __future__ import annotations

from dataclasses import replace

from django.http import HttpRequest

from reprocessing.admin.messages import show_payload
from reprocessing.admin.messages.message_page import may_see_payloads
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.store.payloads import viewed_content


def may_search_bodies(request: HttpRequest, criteria: MessageFilter) -> bool:
    """Return whether this person may search the bodies of the filter's messages.

    This needs the permission to see payloads. If the messages can have masked values, it also needs the permission to
    reveal them.
    """
    if not may_see_payloads(request.user):
        return False
    return show_payload.may_reveal(request) or not viewed_content.masks_fields(criteria.dlq)


def may_read_filter(request: HttpRequest, criteria: MessageFilter) -> bool:
    """Return whether this person may see for which texts and values a filter searches, even another person's filter."""
    if criteria.reads_bodies and not may_search_bodies(request, criteria):
        return False
    return not criteria.reveals or show_payload.may_reveal(request)


def with_masked_values(request: HttpRequest, criteria: MessageFilter) -> MessageFilter:
    """Return the filter. It also finds messages by masked values if this person may reveal masked values."""
    asks = bool(criteria.fields) or criteria.named is not None
    reveals = asks and show_payload.may_reveal(request) and viewed_content.masks_fields(criteria.dlq)
    return replace(criteria, reveals=reveals)
