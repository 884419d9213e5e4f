"""Save and delete message filters, and show the saved ones above the lists of messages."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied, TooManyFieldsSent
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.admin.parking_lot import message_list
from reprocessing.admin.parking_lot.confirm_forms import filter_of_query
from reprocessing.admin.search import list_search
from reprocessing.admin.search.list_search import CannotBeSaved
from reprocessing.admin.search.read_search import search_of
from reprocessing.admin.site import visible_rows
from reprocessing.admin.site.session_end import post_only
from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.store.search import saved_filters

_PARKED: Final = "reprocessing.view_parkedletter"
_LETTERS: Final = "reprocessing.view_letter"
_PARKING_LOT_STATES: Final = frozenset({LetterState.PARKED.value, LetterState.DISCARDED.value})
#: Conditions of a message filter that the list of all messages does not have.
_PARKING_LOT_CONDITIONS: Final = (
    "source", "target", "assigned", "selector", "sent_after", "sent_before", "finished_after", "finished_before",
)  # fmt: skip


class SavingPage(StrEnum):
    """A page on which a person can save the shown filter. The value is sent in the form's hidden field `page`."""

    PARKING_LOT = "parking_lot"
    LIST = "list"
    SEARCH = "search"

    @property
    def address(self) -> str:
        """Return the URL of the page."""
        names = {SavingPage.PARKING_LOT: "reprocessing_parkedletter_changelist", SavingPage.SEARCH: "search"}
        return reverse(f"admin:{names.get(self, 'reprocessing_letter_changelist')}")

    def criteria(self, request: HttpRequest, query: str) -> MessageFilter:
        """Return the filter that the page shows. `query`: the query of the page's URL, or the text of the search page.

        Raises:
            InvalidFilter: the query is not a filter that can be saved, or this person may not use it.
            PermissionDenied: the filter searches payloads, and this person may not see payloads.
        """
        match self:
            case SavingPage.PARKING_LOT:
                return message_list.allowed(filter_of_query(query), request)
            case SavingPage.SEARCH:
                return search_of(request, query).criteria
            case SavingPage.LIST:
                return list_search.criteria_of(request, _parsed(query))


class SaveForm(forms.Form):
    """The form that saves the filter of a page, either for the person alone or for a team."""

    name = forms.CharField(max_length=saved_filters.NAME_LENGTH, label="Name")
    team: forms.ModelChoiceField[Group] = forms.ModelChoiceField(
        None, required=False, label="For", empty_label="me alone"
    )
    query = forms.CharField(required=False, max_length=20_000, widget=forms.HiddenInput)
    page = forms.ChoiceField(
        required=False, choices=[(page.value, page.value) for page in SavingPage], widget=forms.HiddenInput
    )

    def __init__(self, user: User, *args: Any, **options: Any) -> None:  # noqa: ANN401  Django's own
        super().__init__(*args, **options)
        self.fields["team"].queryset = saved_filters.teams_of(user)  # type: ignore[attr-defined]  # a choice field's


@post_only
def save(request: HttpRequest) -> HttpResponse:
    """Save the filter in the request under the entered name, either for the person alone or for a team."""
    user, given = _user(request), request.POST.get("page", "")
    page = SavingPage(given) if given in set(SavingPage) else SavingPage.PARKING_LOT
    try:
        criteria = page.criteria(request, request.POST.get("query", ""))
        _save(request, user, SaveForm(user, request.POST), criteria)
    except InvalidFilter as error:
        messages.error(request, f"Not saved: {error}")
        return HttpResponseRedirect(page.address)
    return HttpResponseRedirect(_address_after_saving(page, request, criteria))


def _save(request: HttpRequest, user: User, form: SaveForm, criteria: MessageFilter) -> None:
    if not form.is_valid():
        raise InvalidFilter("Enter a name of 1 to 60 characters, and choose “me alone” or one of your teams.")
    name = form.cleaned_data["name"]
    saved_filters.save_filter(user, name, criteria, team=form.cleaned_data["team"])
    messages.success(request, f"The filter {visible(name)} is saved.")


def _address_after_saving(page: SavingPage, request: HttpRequest, criteria: MessageFilter) -> str:
    if page is SavingPage.SEARCH:
        return f"{page.address}?{urlencode({'q': request.POST.get('query', '')})}"
    return _address(request, criteria) or page.address


def _address(request: HttpRequest, criteria: MessageFilter) -> str:
    """Return the URL that shows the messages of a saved filter, in the parking lot or in the list of all messages.

    The parking lot is chosen for parked and discarded messages, and for conditions that the list does not have. Empty:
    this person may not open the page.
    """
    sees_parking_lot, sees_list = request.user.has_perm(_PARKED), request.user.has_perm(_LETTERS)
    is_in_parking_lot = bool(criteria.states) and _PARKING_LOT_STATES.issuperset(criteria.states)
    fits_list = all(getattr(criteria, name) is None for name in _PARKING_LOT_CONDITIONS)
    if sees_parking_lot and (is_in_parking_lot or not fits_list):
        return message_list.address_of(criteria)
    return list_search.address_of(criteria) if sees_list and fits_list else ""


@post_only
def delete(request: HttpRequest) -> HttpResponse:
    """Delete a saved filter. The person must see the filter, and have the right to delete it."""
    user, saved = _user(request), request.POST.get("saved", "")
    row = saved_filters.rows_seen_by(user).filter(pk=saved).first() if visible_rows.is_id(saved) else None
    if row is None:
        raise Http404
    if not saved_filters.may_delete(user, row):
        raise PermissionDenied
    row.delete()
    messages.success(request, f"The saved filter {visible(row.name)} is deleted.")
    return HttpResponseRedirect(_back(request))


def section_values(
    request: HttpRequest, page: SavingPage, query: str, criteria: MessageFilter | None
) -> dict[str, Any]:
    """Return template values: the saved filters that this person sees, and the form that saves the page's filter.

    `query`: the query of the page's URL, or the text of the search page. `criteria`: the page's filter; None: the page
    has no filter that can be saved.
    """
    user = _user(request)
    here = None if criteria is None else replace(criteria, dlqs=None, reveals=False)
    is_filtered = here is not None and (here.is_narrow or (page is not SavingPage.PARKING_LOT and bool(here.states)))
    return {
        "saved": [
            {
                "id": row.id, "name": row.name, "team": row.team, "address": address,
                "here": row.criteria == here, "deletable": saved_filters.may_delete(user, row),
            }
            for row in saved_filters.filters_seen_by(user)
            if (address := _address(request, row.criteria))
        ],
        "save_form": SaveForm(user, initial={"query": query, "page": page.value}) if is_filtered else None,
    }  # fmt: skip


def list_section_values(request: HttpRequest) -> dict[str, Any]:
    """Return for the list of all messages the template values that `section_values` describes."""
    query = request.GET.copy()
    for name in ("after", "e", "_changelist_filters"):
        query.pop(name, None)
    try:
        criteria = list_search.criteria_of(request, query)
    except InvalidFilter as error:  # the list itself warns of a search that is not valid
        why = str(error) if isinstance(error, CannotBeSaved) and not _is_one_key_queue(query) else ""
        return section_values(request, SavingPage.LIST, "", None) | {"why_not_saved": why}
    return section_values(request, SavingPage.LIST, query.urlencode(), criteria)


def _is_one_key_queue(query: QueryDict) -> bool:
    """Return whether the list has no other filter than a key queue: then somebody followed a link of a message."""
    return bool(filters := set(query) - {"p", "o"}) and all(name.startswith("lane") for name in filters)


def _parsed(query: str) -> QueryDict:
    try:
        return QueryDict(query)
    except TooManyFieldsSent:
        raise InvalidFilter("The filter has too many parts. Open the list again.") from None


def _user(request: HttpRequest) -> User:
    """Return the signed-in user. Raise PermissionDenied if the user may see neither messages nor parked messages."""
    user = request.user
    if not isinstance(user, User) or not (user.has_perm(_PARKED) or user.has_perm(_LETTERS)):
        raise PermissionDenied
    return user


def _back(request: HttpRequest) -> str:
    address = request.POST.get("back", "")
    is_own = url_has_allowed_host_and_scheme(address, allowed_hosts=None)
    path = address.partition("?")[0]
    return address if is_own and path in {page.address for page in SavingPage} else SavingPage.PARKING_LOT.address
