"""The list of messages, its filter, and the messages before and after a message in the list that a person came from.

Links in lists carry the query of their list in the parameter `list`. If the query is not valid, or the search takes too
long, the page has no such links.
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

from reprocessing.admin.site.keyset_list import REACH, KeysetList
from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.lifecycle import FINISHED_STATES
from reprocessing.models import DeadLetterQueue, FailureGroup, Letter
from reprocessing.store.maintenance import counters
from reprocessing.store.search import filter_conditions

#: The URL parameter with the query of the list.
LIST: Final = "list"
_LONGEST: Final = 2_000
_PATIENCE: Final = 100  # milliseconds

_ID: Final = re.compile("[0-9]{1,18}")
_LONGEST_NUMBER: Final = 9  # max digits of an id
_KEPT: Final = ("dlq__id__exact", "state__exact", "presumed__exact")

#: What a query raises that is no filter of the list, or whose search takes too long.
_NO_LIST: Final = (
    InvalidFilter, IncorrectLookupParameters, PermissionDenied, SuspiciousOperation, ValidationError, ValueError
)  # fmt: skip

#: Ids of the messages before and after; None: there is none.
Neighbours = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class ListPosition:
    """The links from a message to its list and to its neighbours there; empty texts: there is no such link.

    `suffix`: the end of the URL of each page of the message, so that the list is not lost.
    """

    suffix: str = ""
    back: str = ""
    before: str = ""
    after: str = ""


def position(request: HttpRequest, model: str, find: Callable[[QueryDict], Neighbours]) -> ListPosition:
    """Return the links for a message.

    `model`: name of the list's model. `find`: returns the neighbours in the list with this query.
    """
    query = request.GET.get(LIST)
    if query is None or len(query) > _LONGEST or "\0" in unquote_plus(query):
        return ListPosition()
    try:
        asked = QueryDict(query)
        with filter_conditions.patiently(_PATIENCE):
            before, after = find(asked)
    except _NO_LIST:
        return ListPosition()
    end = suffix(request)
    links = (reverse(f"admin:reprocessing_{model}_change", args=[one]) + end if one else "" for one in (before, after))
    back = reverse(f"admin:reprocessing_{model}_changelist") + (f"?{asked.urlencode()}" if asked else "")
    return ListPosition(end, back, *links)


def suffix(request: HttpRequest) -> str:
    """Return the end of the URL of a message's page that keeps the list from which the person came."""
    query = request.GET.get(LIST)
    return "" if query is None else f"?{urlencode({LIST: query})}"


def link(address: str, query: QueryDict) -> str:
    """Return the URL of a message with the query of the list that links to it, without the list's page.

    A list that searches bodies is left out: its text may be secret, and a search takes too long for one message.
    """
    if query.get("text"):
        return address
    query = query.copy()
    query.pop("after", None)
    return f"{address}?{urlencode({LIST: query.urlencode()})}"


class MessageList(KeysetList):
    """A list of messages. Their number comes from stored counters by DLQ and state: counting rows would be slow."""

    @cached_property
    def known(self) -> int | None:
        """Return the number of messages from stored counters; None: they do not know it for the filter of this list.

        The counters know DLQ, state, and whether a delivery is presumed.
        """
        asked = {name: values[-1] for name, values in self.filter_params.items()}
        dlq, state, presumed = (asked.pop(name, None) for name in _KEPT)
        if asked or self.query or not (dlq is None or dlq.isdecimal()) or presumed not in {None, "0", "1"}:
            return None
        return sum(
            kind.n
            for kind in counters.counts_by_state(None if dlq is None else int(dlq[:_LONGEST_NUMBER]))
            if state in {None, kind.state}
            and presumed in {None, str(int(kind.presumed))}
            and self.visible_dlqs.includes(kind.dlq_id)
        )

    def get_filters_params(self, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the filters of the URL. A group's messages are also those of the groups that are merged into it."""
        found: dict[str, Any] = super().get_filters_params(params)
        asked = [value for value in found.get("group", ()) if _ID.fullmatch(value)]
        groups = FailureGroup.objects.filter(Q(pk__in=asked) | Q(merged_into__in=asked)).values_list("pk", flat=True)
        if asked and (ids := ",".join(map(str, groups))):
            del found["group"]  # a copy
            found["group__in"] = [ids]
        return found

    def ordered_rows(self) -> QuerySet[Letter]:
        """Return the messages, newest first."""
        return self.rows_by_id(super().ordered_rows(), newest_first=True)

    def rows_by_id(self, rows: QuerySet[Letter], *, newest_first: bool) -> QuerySet[Letter]:
        """Return these messages of the list by id.

        If few messages match, PostgreSQL must sort them (`pk + 0`). With the index on the id, it would read all
        messages until it finds these few.
        """
        if self.known is None or self.known > REACH:
            return rows.order_by("-pk" if newest_first else "pk")
        state = self.filter_params.get("state__exact", [""])[-1]
        if state and state not in FINISHED_STATES:  # the condition of a partial index, which PostgreSQL then uses
            rows = rows.filter(finished_at=None, dlq__in=DeadLetterQueue.objects.values("pk"))
        return rows.order_by((F("pk") + 0).desc() if newest_first else (F("pk") + 0).asc())

    def url_for_result(self, result: Model) -> str:
        """Return the URL of a message, with the query of this list, so that its page links to its neighbours here."""
        return link(super().url_for_result(result), self.query_shown)

    @cached_property
    def query_shown(self) -> QueryDict:
        """The query of the list's URL, without the page."""
        return QueryDict(self.get_query_string()[1:])


class FilteredMessages(MessageList):
    """The filter of a list of messages, without a page of the list."""

    def get_results(self, request: HttpRequest) -> None:
        """Read nothing."""

    def neighbours(self, letter: Letter) -> Neighbours:
        """Return the ids of the messages before and after a message in the list; None: there is none."""
        before = self.rows_by_id(self.queryset.filter(pk__gt=letter.pk), newest_first=False)
        after = self.rows_by_id(self.queryset.filter(pk__lt=letter.pk), newest_first=True)
        return before.values_list("pk", flat=True).first(), after.values_list("pk", flat=True).first()
