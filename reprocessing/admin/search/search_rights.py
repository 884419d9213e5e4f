"""Decide who may search in bodies, and by masked values, and who sees the values of another person's filter."""

from __future__ import annotations

from dataclasses import replace

from django.http import HttpRequest

from reprocessing.admin.messages import show_payload
from reprocessing.admin.messages.message_page import may_see_payloads
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.store.payloads import viewed_content


def may_search_bodies(request: HttpRequest, sieve: MessageFilter) -> bool:
    """Return whether this person may see payloads, and masked values if the filter's messages can have any."""
    if not may_see_payloads(request.user):
        return False
    return show_payload.may_reveal(request) or not viewed_content.masks_fields(sieve.dlq)


def may_read_filter(request: HttpRequest, sieve: MessageFilter) -> bool:
    """Return whether this person may see the texts and values that a filter of any person searches for."""
    if sieve.reads_bodies and not may_search_bodies(request, sieve):
        return False
    return not sieve.reveals or show_payload.may_reveal(request)


def with_masked_values(request: HttpRequest, sieve: MessageFilter) -> MessageFilter:
    """Return the filter; it finds messages by masked values, too, if this person may reveal them."""
    asks = bool(sieve.fields) or sieve.named is not None
    reveals = asks and show_payload.may_reveal(request) and viewed_content.masks_fields(sieve.dlq)
    return replace(sieve, reveals=reveals)
