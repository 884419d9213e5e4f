"""The page that groups the messages of a filter by a field of their payloads.

The page shows values of payloads. So it needs the permission to see payloads, and the audit log records who saw the
values. Values of masked fields stay masked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse

from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.admin.parking_lot import message_list
from reprocessing.admin.parking_lot.confirm_forms import filter_of_query
from reprocessing.admin.search.search_rights import may_search_bodies
from reprocessing.admin.site.session_end import post_only
from reprocessing.domain.errors import InvalidFilter, PayloadUnreadable
from reprocessing.domain.message.identity import Selector
from reprocessing.domain.parking_lot.field_value import FieldValue, NoValue, read_field
from reprocessing.domain.parking_lot.message_filter import LONGEST, MessageFilter
from reprocessing.models import AuditAct, AuditEntry
from reprocessing.store.parking_lot import field_values, filtered_letters
from reprocessing.store.parking_lot.field_values import ValueGroup, ValueGroups
from reprocessing.store.payloads import viewed_content

#: Max messages that a page reads, and the seconds after which it stops.
READ: Final = 5_000
SECONDS: Final = 1.5
#: Max values on a page, and max characters of a value.
SHOWN: Final = 100
_LONGEST_SHOWN: Final = 200


class GroupForm(forms.Form):
    """The form that asks for the field by which messages are grouped."""

    by = forms.CharField(
        label="Field", max_length=300,
        widget=forms.TextInput(attrs={"placeholder": "body:customer.country", "spellcheck": "false"}),
        help_text="body: and a JMESPath expression, or attribute: and the name of an attribute.",
    )  # fmt: skip

    def clean_by(self) -> Selector:
        """Return the entered field as a selector. Refuse a text that is not a selector."""
        try:
            return read_field(self.cleaned_data["by"])
        except InvalidFilter as error:
            raise forms.ValidationError(str(error)) from error


@post_only
def page(request: HttpRequest) -> HttpResponse:
    """Show the form, and below the form the groups, if the person has entered a field.

    Raises:
        PermissionDenied: the person may not see parked messages, or not see payloads.
    """
    if not request.user.has_perms(("reprocessing.view_parkedletter", "reprocessing.view_payload")):
        raise PermissionDenied
    form, query = GroupForm(request.POST if "by" in request.POST else None), request.POST.get("query", "")
    criteria, refusal, found = MessageFilter(), "", dict[str, Any]()
    try:
        criteria = message_list.allowed(filter_of_query(query), request)
        if form.is_valid():
            found = _grouped(request, criteria, form.cleaned_data["by"])
    except (InvalidFilter, PayloadUnreadable) as error:
        refusal = str(error)
    context = admin.site.each_context(request) | {
        "title": "Messages by field", "form": form, "query": query, "refusal": refusal,
        "back": message_list.address_of(criteria),
        "sentence": criteria.sentence(message_list.names_of(request, criteria)), **found,
    }  # fmt: skip
    return TemplateResponse(request, "reprocessing/admin/group_by.html", context)


def _grouped(request: HttpRequest, criteria: MessageFilter, field: Selector) -> dict[str, Any]:
    """Return the groups as values for the template. The audit log records who saw them."""
    count = filtered_letters.count_letters(criteria)
    found = field_values.group_letters(field, filtered_letters.newest_ids(criteria, limit=READ), seconds=SECONDS)
    AuditEntry.objects.create(
        act=AuditAct.REVEALED, dlq_id=criteria.dlq, by=request.user.get_username(),
        reason=f"Grouped messages by {field}.", after={"filter": criteria.recorded(), "letters": found.read},
    )  # fmt: skip
    may_search = criteria.selector is None and may_search_bodies(request, criteria)
    return {
        "field": visible(str(field)), "found": found, "is_part": found.read < count,
        "counted": filtered_letters.counted(count), "count": count,
        "lines": [_line(group, found, criteria, field, may_search=may_search) for group in found.groups[:SHOWN]],
        "others": max(0, len(found.groups) - SHOWN),
        "is_masked": viewed_content.masks_fields(criteria.dlq),
    }  # fmt: skip


def _line(
    group: ValueGroup, found: ValueGroups, criteria: MessageFilter, field: Selector, *, may_search: bool
) -> dict[str, Any]:
    return {
        "value": _shown(group.value), "is_value": isinstance(group.value, str) and bool(group.value.strip()),
        "n": group.letters, "share": round(100 * group.letters / max(1, found.read)), "oldest": group.oldest,
        "sample": reverse("admin:reprocessing_letter_change", args=[group.sample]),
        "address": _address(group.value, criteria, field) if may_search else "",
    }  # fmt: skip


def _address(value: FieldValue, criteria: MessageFilter, field: Selector) -> str:
    """Return the URL of the list of the messages with this value; empty: no filter selects exactly these messages."""
    if value is NoValue.MISSING:
        return message_list.address_of(replace(criteria, selector=str(field)))
    if not isinstance(value, str) or not value.strip() or value != value.strip() or len(value) > LONGEST:
        return ""
    narrowed = replace(criteria, selector=str(field), value=value)
    try:
        filter_of_query(message_list.query_of(narrowed))
    except InvalidFilter:
        return ""
    return message_list.address_of(narrowed)


def _shown(value: FieldValue) -> str:
    if isinstance(value, NoValue):
        return value.value
    text = visible(value) if value.strip() else "(empty text)"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
