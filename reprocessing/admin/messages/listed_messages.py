"""The list of messages, and links from a message's page to the previous and next message of a list.

When a list links to a message, the URL has the query of the list in its parameter `list`. With this query, the page of
the message finds the previous and the next message in the list. If the query is invalid, or the search takes too long,
the page has no such links.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote_plus, urlencode

from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied, SuspiciousOperation, ValidationError
from django.db.models import F, Model, Q, QuerySet
from django.http import HttpRequest, QueryDict
from django.urls import reverse
from django.utils.functional import cached_property

from reprocessing.admin.search import state_filter
from reprocessing.admin.site import labels
from reprocessing.admin.site.active_filters import ActiveFilter
from reprocessing.admin.site.keyset_list import REACH, KeysetList
from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.lifecycle import FINISHED_STATES, LetterState
from reprocessing.domain.search.search_text import read_search
from reprocessing.models import FailureGroup, Letter
from reprocessing.store.maintenance import counters
from reprocessing.store.maintenance.counters import CountByState
from reprocessing.store.search import filter_conditions

#: The URL parameter with the query of the list.
LIST: Final = "list"
_LONGEST: Final = 2_000  # max characters of the query of the list
_SEARCH_TIMEOUT_MS: Final = 100  # max milliseconds of the search for the previous and next message

_ID: Final = re.compile("[0-9]{1,18}")
_LONGEST_NUMBER: Final = 9  # max digits of an id
_NEWEST: Final = 20_000  # number of ids that are read first, because they usually have enough messages for a page
_MOST_SORTED: Final = 300_000  # max messages that are read and sorted for one page
_COUNTED_FILTERS: Final = ("dlq__id__exact", "state__exact", "presumed__exact")

#: Errors of a query that is not a filter of the list, or whose search takes too long.
_NO_LIST: Final = (
    InvalidFilter, IncorrectLookupParameters, PermissionDenied, SuspiciousOperation, ValidationError, ValueError
)  # fmt: skip

#: Ids of the previous and the next message in a list; None: there is no such message.
Neighbours = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class ListPosition:
    """URLs of links on a message's page to the list from which the person came. An empty URL means no link.

    Attributes:
        suffix: the query to append to URLs of the message's other pages, so that they can link to the list, too.
        back: the list.
        before, after: the previous and the next message in the list.
    """

    suffix: str = ""
    back: str = ""
    before: str = ""
    after: str = ""


def position(request: HttpRequest, model: str, find: Callable[[QueryDict], Neighbours]) -> ListPosition:
    """Return the links of a message's page to the list from which the person came, and to its neighbours there.

    `model`: name of the list's model. `find`: function that takes the query of the list, and returns the ids of the
    previous and the next message.
    """
    query = request.GET.get(LIST)
    if query is None or len(query) > _LONGEST or "\0" in unquote_plus(query):
        return ListPosition()
    try:
        asked = QueryDict(query)
        with filter_conditions.search_timeout(_SEARCH_TIMEOUT_MS):
            before, after = find(asked)
    except _NO_LIST:
        return ListPosition()
    end = suffix(request)
    links = (reverse(f"admin:reprocessing_{model}_change", args=[pk]) + end if pk else "" for pk in (before, after))
    back = reverse(f"admin:reprocessing_{model}_changelist") + (f"?{asked.urlencode()}" if asked else "")
    return ListPosition(end, back, *links)


def suffix(request: HttpRequest) -> str:
    """Return the query to append to URLs of a message's pages. It says from which list the person came."""
    query = request.GET.get(LIST)
    return "" if query is None else f"?{urlencode({LIST: query})}"


def link(address: str, query: QueryDict) -> str:
    """Return the URL of a message, with the query of the list that links to the message.

    The query of a list that searches bodies is left out: the searched text may be secret, and the search is slow.
    """
    if query.get("text") or _quotes_text(query.get("q", "")):
        return address
    query = query.copy()
    query.pop("after", None)
    return f"{address}?{urlencode({LIST: query.urlencode()})}"


def _quotes_text(search: str) -> bool:
    try:
        return read_search(search).text is not None
    except InvalidFilter:
        return True


class MessageList(KeysetList):
    """A list of messages. The number of messages is read from stored counters, because counting rows would be slow."""

    @cached_property
    def known(self) -> int | None:
        """Return the number of messages in the list from stored counters; None: the counters do not fit the filter."""
        return None if self.known_counts is None else sum(kind.n for kind in self.known_counts)

    @cached_property
    def known_counts(self) -> list[CountByState] | None:
        """Return the stored counters of the messages in the list; None: the counters do not fit the filter.

        There are counters for each DLQ, each state, and presumed deliveries.
        """
        asked = {name: values[-1] for name, values in self.filter_params.items()}
        if any(len(set(values)) > 1 for values in self.filter_params.values()):
            return None
        dlq, state, presumed = (asked.pop(name, None) for name in _COUNTED_FILTERS)
        if asked or self.query or not (dlq is None or dlq.isdecimal()) or presumed not in {None, "0", "1"}:
            return None
        return [
            kind
            for kind in counters.counts_by_state(None if dlq is None else int(dlq[:_LONGEST_NUMBER]))
            if state in {None, kind.state}
            and presumed in {None, str(int(kind.presumed))}
            and self.visible_dlqs.includes(kind.dlq_id)
        ]

    def get_filters_params(self, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the filters in the URL. The filter of a failure group includes the groups that are merged into it."""
        found: dict[str, Any] = super().get_filters_params(params)
        asked = [value for value in found.get("group", ()) if _ID.fullmatch(value)]
        groups = FailureGroup.objects.filter(Q(pk__in=asked) | Q(merged_into__in=asked)).values_list("pk", flat=True)
        if asked and (ids := ",".join(map(str, groups))):
            del found["group"]  # in a copy of the URL's filters
            found["group__in"] = [ids]
        return found

    @property
    def active_filters(self) -> list[ActiveFilter]:
        """The filters in the URL, in words. The filters by state and by `presumed` are shown as one filter."""
        found, name = super().active_filters, state_filter.named_state(self.filters_shown())
        if not name:
            return found
        without = self.get_query_string({state_filter.STATE: None, state_filter.PRESUMED: None})
        both = {labels.column("state"), labels.column("presumed")}
        return [
            *(other for other in found if other.label not in both),
            ActiveFilter(labels.column("state"), name, without),
        ]

    def ordered_rows(self, after: list[Any] | None) -> QuerySet[Letter]:
        """Return the messages, newest first."""
        rows = super().ordered_rows(after)
        is_sparse = self.known is not None and REACH < self.known <= _MOST_SORTED and self._is_sparse(rows, after)
        return self.rows_by_id(rows, newest_first=True, sorts=is_sparse)

    def rows_by_id(self, rows: QuerySet[Letter], *, newest_first: bool, sorts: bool = False) -> QuerySet[Letter]:
        """Return these messages of the list, sorted by id.

        If few messages match, or with `sorts`, they are sorted by `pk + 0`. PostgreSQL then finds them first, and sorts
        them after that. Sorted by `pk`, PostgreSQL could read the whole table in the order of the index to find the few
        that match.
        """
        if not sorts and (self.known is None or self.known > REACH):
            return rows.order_by("-pk" if newest_first else "pk")
        state = self.filter_params.get("state__exact", [""])[-1]
        if state and state != LetterState.PARKED:  # lets PostgreSQL use a partial index
            dlqs = {kind.dlq_id for kind in self.known_counts or ()}  # other DLQs have no such message
            rows = rows.filter(finished_at__isnull=state not in FINISHED_STATES, dlq__in=dlqs)
        return rows.order_by((F("pk") + 0).desc() if newest_first else (F("pk") + 0).asc())

    def _is_sparse(self, rows: QuerySet[Letter], after: list[Any] | None) -> bool:
        """Return whether fewer messages match than a page shows, among the next 20,000 messages of the table.

        `after`: the sort values of the last row of the page before; None: this is the first page.
        """
        newest = after[0] if after else Letter.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
        found = rows.filter(pk__lte=newest, pk__gt=newest - _NEWEST).order_by("-pk").values("pk")
        return len(found[: self.list_per_page + 1]) <= self.list_per_page

    def url_for_result(self, result: Model) -> str:
        """Return the URL of a message. It contains the list's query, from which the page finds its neighbours."""
        return link(super().url_for_result(result), self.query_shown)

    @cached_property
    def query_shown(self) -> QueryDict:
        """The query of the list's URL, without the parameter that says where the page of the list begins."""
        return QueryDict(self.get_query_string()[1:])


class FilteredMessages(MessageList):
    """A list of messages that is not shown. It only finds the messages before and after a given message."""

    def get_results(self, request: HttpRequest) -> None:
        """Do nothing, because no page of the list is shown."""

    def neighbours(self, letter: Letter) -> Neighbours:
        """Return the ids of the previous and the next message in the list; None: there is no such message."""
        before = self.rows_by_id(self.queryset.filter(pk__gt=letter.pk), newest_first=False)
        after = self.rows_by_id(self.queryset.filter(pk__lt=letter.pk), newest_first=True)
        return before.values_list("pk", flat=True).first(), after.values_list("pk", flat=True).first()
