"""Turn the search text and the other filters of the list of messages into a message filter, and back into a URL."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, QueryDict
from django.urls import reverse

from reprocessing.admin.search.read_search import search_of
from reprocessing.admin.site import active_filters
from reprocessing.admin.site.keyset_list import REACH
from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.domain.search.search_text import SearchText, read_search, write_search
from reprocessing.models import Letter
from reprocessing.store.search import found_letters

_ID: Final = re.compile("[0-9]{1,18}")
#: Filters of the list by id that a message filter has, too, with their names on pages.
_ROWS: Final = {"dlq": "DLQ", "group": "failure group", "run": "run", "rule": "rule"}
#: Ends of the names that Django allows for a filter by id.
_ENDS: Final = ("__id__exact", "__id", "__exact", "")
#: Names of these filters in a URL, and parameters that are no filters.
_KNOWN: Final = frozenset(
    {f"{name}{end}" for name in _ROWS for end in _ENDS}
    | {"state__exact", "presumed__exact", "q", "o", "p", "e", "after", "_changelist_filters"}
)  # fmt: skip
_PRESUMED: Final = {None: None, "1": True}


class CannotBeSaved(InvalidFilter):
    """The filters of a list cannot be expressed as a message filter. The text says why, and what to do instead."""


def newest_ids(request: HttpRequest, text: str) -> list[int]:
    """Return the ids of the newest 1,000 messages (`REACH`) that match the search text and the list's filters.

    If more messages match, or the text is not a valid search, the list shows a warning.
    """
    try:
        found = found_letters.newest_ids(
            search_of(request, text, within=_within(request.GET)).criteria, limit=REACH + 1
        )
    except InvalidFilter as error:
        if not _is_list(request):
            raise
        messages.warning(request, str(error))
        return []
    if len(found) > REACH and _is_list(request):
        messages.warning(
            request, f"More than {REACH:,} messages match. The list shows only the newest {REACH:,} of them at most."
        )
    return found[:REACH]


def criteria_of(request: HttpRequest, query: QueryDict) -> MessageFilter:
    """Return the message filter that finds exactly the messages that the list shows for this URL query.

    Raises:
        CannotBeSaved: no message filter finds exactly these messages. The error says why.
        InvalidFilter: the text of the search box is not a valid search.
    """
    query = active_filters.canonical(query, (*_ROWS, "state", "presumed"), Letter._meta)  # noqa: SLF001  Django's public name
    text = query.get("q", "").strip()
    _check_parameters(query)
    _check_conditions_differ(query, read_search(text) if text else SearchText())
    criteria = replace(_within(query), presumed=_PRESUMED[query.get("presumed__exact")])
    return search_of(request, text, within=criteria).criteria if text else criteria


def address_of(criteria: MessageFilter) -> str:
    """Return the URL of the list of the messages that match a filter.

    The list cannot filter by source queue, target, dates, person or a field of the body. The URL leaves out such parts
    of the filter.
    """
    is_single = len(criteria.states) == 1
    text = SearchText(
        named=criteria.named, key=criteria.key, text=criteria.text, fields=criteria.conditions,
        reasons=criteria.reasons,
        states=() if is_single else criteria.states, presumed=bool(criteria.presumed) and not is_single,
    )  # fmt: skip
    asked = {"q": write_search(text), "state__exact": criteria.states[0] if is_single else ""}
    asked |= {"presumed__exact": "1" if criteria.presumed and is_single else ""}
    ids = {f"{name}__id__exact": getattr(criteria, name) for name in _ROWS}
    given = {name: value for name, value in asked.items() if value}
    given |= {name: str(value) for name, value in ids.items() if value is not None}
    return reverse("admin:reprocessing_letter_changelist") + (f"?{urlencode(given)}" if given else "")


def _check_parameters(query: QueryDict) -> None:
    """Raise CannotBeSaved if the URL has a filter that is not valid, or that a message filter cannot express."""
    if any(name.startswith("lane") for name in query):
        raise CannotBeSaved("A saved filter cannot have a key queue. Search for its ordering key instead.")
    states, presumed = set(query.getlist("state__exact")), set(query.getlist("presumed__exact"))
    unread = [words for name, words in _ROWS.items() if _is_given(query, name) and _id(query, name) is None]
    unread += ["state"] if len(states) > 1 or not states <= set(LetterState) else []
    if unread:
        raise CannotBeSaved(f"The filter by {unread[0]} in this list's address has no single valid value. Remove it.")
    if presumed and (presumed != {"1"} or states != {LetterState.DELIVERED}):
        raise CannotBeSaved(
            "A saved filter cannot find delivered messages without presumed ones. Choose the state “presumed "
            "delivered”, or search for state:delivered, which finds both."
        )
    if not set(query) <= _KNOWN or len(query.getlist("q")) > 1:
        raise CannotBeSaved("A saved filter cannot have all filters of this list. Remove some of them.")


def _check_conditions_differ(query: QueryDict, asked: SearchText) -> None:
    """Raise CannotBeSaved if the search text and the list's other filters both name a DLQ, a state or a failure group.

    The list then shows messages that match both. A message filter cannot do this, since it has only one value for each.
    """
    both = {
        "DLQ": asked.dlq is not None and _is_given(query, "dlq"), "state": asked.states and "state__exact" in query,
        "failure group": asked.group is not None and _is_given(query, "group"),
    }  # fmt: skip
    for words, is_twice in both.items():
        if is_twice:
            raise CannotBeSaved(f"The search and the other filters of this list both name a {words}. Remove one.")


def _within(query: QueryDict) -> MessageFilter:
    """Return a message filter with the list's filters by DLQ, state, failure group, run and rule.

    The list has two more filters, by key queue and by `presumed`. It applies them itself to the found messages.
    """
    state = query.get("state__exact", "")
    dlq, group, run, rule = (_id(query, name) for name in _ROWS)
    states = (state,) if state in set(LetterState) else ()
    return MessageFilter(dlq=dlq, states=states, group=group, run=run, rule=rule)


def _id(query: QueryDict, name: str) -> int | None:
    """Return the id in a filter of the list, such as `dlq` or `dlq__exact`; None: there is not exactly one valid id."""
    given = {value for end in _ENDS for value in query.getlist(name + end)}
    value = given.pop() if len(given) == 1 else ""
    return int(value) if _ID.fullmatch(value) else None


def _is_given(query: QueryDict, name: str) -> bool:
    """Return whether the URL filters the list by this field, such as `dlq`, with any lookup that Django allows."""
    return any(name + end in query for end in _ENDS)


def _is_list(request: HttpRequest) -> bool:
    """Return whether the request shows a list. A message's page also searches the list, but only to find neighbours."""
    return request.resolver_match is not None and str(request.resolver_match.url_name).endswith("_changelist")
