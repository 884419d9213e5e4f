"""Save and delete filters of the parking lot, and show the saved ones above the list."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.admin.parking_lot import message_list
from reprocessing.admin.parking_lot.confirm_forms import filter_of_query
from reprocessing.admin.site import visible_rows
from reprocessing.admin.site.session_end import post_only
from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.store.search import saved_filters

_LIST = "admin:reprocessing_parkedletter_changelist"


class SaveForm(forms.Form):
    """The form that saves the filter of the list, for the person or for a team."""

    name = forms.CharField(max_length=saved_filters.NAME_LENGTH, label="Name")
    team: forms.ModelChoiceField[Group] = forms.ModelChoiceField(
        None, required=False, label="For", empty_label="me alone"
    )
    query = forms.CharField(required=False, max_length=20_000, widget=forms.HiddenInput)

    def __init__(self, user: User, *args: Any, **options: Any) -> None:  # noqa: ANN401  Django's own
        super().__init__(*args, **options)
        self.fields["team"].queryset = saved_filters.teams_of(user)  # type: ignore[attr-defined]  # a choice field's


@post_only
def save(request: HttpRequest) -> HttpResponse:
    """Save the filter in the request under the entered name, for the person or a team."""
    user = _user(request)
    try:
        criteria = filter_of_query(request.POST.get("query", ""))
        _save(request, user, SaveForm(user, request.POST), criteria)
    except InvalidFilter as error:
        messages.error(request, f"Not saved: {error}")
        return HttpResponseRedirect(reverse(_LIST))
    return HttpResponseRedirect(message_list.address_of(criteria))


def _save(request: HttpRequest, user: User, form: SaveForm, criteria: MessageFilter) -> None:
    if not form.is_valid():
        raise InvalidFilter("Enter a name of 1 to 60 characters, and choose “me alone” or one of your teams.")
    name = form.cleaned_data["name"]
    saved_filters.save_filter(user, name, message_list.allowed(criteria, request), team=form.cleaned_data["team"])
    messages.success(request, f"The filter {visible(name)} is saved.")


@post_only
def delete(request: HttpRequest) -> HttpResponse:
    """Delete a saved filter, if this person sees it and may delete it."""
    user, saved = _user(request), request.POST.get("saved", "")
    row = saved_filters.rows_seen_by(user).filter(pk=saved).first() if visible_rows.is_id(saved) else None
    if row is None:
        raise Http404
    if not saved_filters.may_delete(user, row):
        raise PermissionDenied
    row.delete()
    messages.success(request, f"The saved filter {visible(row.name)} is deleted.")
    return HttpResponseRedirect(_back(request))


def shown(request: HttpRequest, query: str) -> dict[str, Any]:
    """Return template values: the saved filters that this person sees, and the form that saves the filter `query`."""
    user = _user(request)
    return {
        "saved": [
            {
                "id": row.id, "name": row.name, "team": row.team, "address": message_list.address_of(row.criteria),
                "here": message_list.query_of(row.criteria) == query, "deletable": saved_filters.may_delete(user, row),
            }
            for row in saved_filters.filters_seen_by(user)
        ],
        "save_form": SaveForm(user, initial={"query": query}),
    }  # fmt: skip


def _user(request: HttpRequest) -> User:
    """Return the person. Raises PermissionDenied if the person may not see parked messages."""
    if not isinstance(request.user, User) or not request.user.has_perm("reprocessing.view_parkedletter"):
        raise PermissionDenied
    return request.user


def _back(request: HttpRequest) -> str:
    address = request.POST.get("back", "")
    is_own = url_has_allowed_host_and_scheme(address, allowed_hosts=None)
    return address if is_own and address.startswith(reverse(_LIST)) else reverse(_LIST)
