"""Search the list of messages: read the text of its search box, and combine it with the list's other filters."""

from __future__ import annotations

import re
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, QueryDict

from reprocessing.admin.search.read_search import search_of
from reprocessing.admin.site.keyset_list import REACH
from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.store.search import found_letters

_ID: Final = re.compile("[0-9]{1,18}")


def newest_ids(request: HttpRequest, text: str) -> list[int]:
    """Return the ids of the newest 1,000 messages (`REACH`) that match the text and the filters of `_within`.

    If more messages match, the list shows a warning. It also shows why a text is not a valid search.
    """
    try:
        found = found_letters.newest_ids(
            search_of(request, text, within=_within(request.GET)).criteria, limit=REACH + 1
        )
    except InvalidFilter as error:
        messages.warning(request, str(error))
        return []
    if len(found) > REACH and _is_list(request):
        messages.warning(
            request, f"More than {REACH:,} messages match. The list shows only the newest {REACH:,} of them at most."
        )
    return found[:REACH]


def _within(query: QueryDict) -> MessageFilter:
    """Return the filters of the list that a message filter has: DLQ, state, failure group, run and rule.

    The list itself applies its other filters, by lane and by `presumed`, to the messages that the search finds.
    """
    state = query.get("state__exact", "")
    dlq, group, run, rule = (_id(query, name) for name in ("dlq", "group", "run", "rule"))
    states = (state,) if state in set(LetterState) else ()
    return MessageFilter(dlq=dlq, states=states, group=group, run=run, rule=rule)


def _id(query: QueryDict, name: str) -> int | None:
    """Return the id in a filter of the list, under any of the names that Django allows; None: not exactly one id."""
    given = {query.get(name + end, "") for end in ("__id__exact", "__id", "__exact", "") if name + end in query}
    value = given.pop() if len(given) == 1 else ""
    return int(value) if _ID.fullmatch(value) else None


def _is_list(request: HttpRequest) -> bool:
    """Return whether a list is shown. A message's page searches its list, too, to link to the message's neighbours."""
    return request.resolver_match is not None and str(request.resolver_match.url_name).endswith("_changelist")
