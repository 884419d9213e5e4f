"""Lists with keyset pagination, so that no list reads a whole table.

The URL of the next page has the sort values of the last row of this page. The query for the next page begins there.

A filter that no index serves may still read the whole table to find few rows. After 5 seconds, such a query is stopped.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from django.contrib import messages
from django.contrib.admin.views.main import IGNORED_PARAMS, ChangeList
from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.core.paginator import Paginator
from django.db.models import Field, ForeignKey, Model, Q, QuerySet
from django.db.models.options import Options
from django.http import HttpRequest
from django.utils.functional import cached_property
from django.utils.text import capfirst, smart_split, unescape_string_literal

from reprocessing.admin.site import active_filters, labels, visible_rows
from reprocessing.admin.site.active_filters import ActiveFilter
from reprocessing.admin.site.visible_rows import is_id
from reprocessing.domain.errors import InvalidFilter
from reprocessing.store.search.filter_conditions import search_timeout

Row = TypeVar("Row", bound=Model)
if TYPE_CHECKING:
    Pages = Paginator[Any]  # only the type checker needs the type argument
else:
    Pages = Paginator

#: A list counts rows up to this number. If there are more rows, it shows "at least 1,000".
REACH = 1_000
#: The URL parameter that says where a page begins: the sort values of the last row of the page before, as JSON.
AFTER: Final = "after"
_STOPPED: Final = (
    "The list took longer than 5 seconds and was stopped, so rows are missing. Choose another filter, or use the "
    "search."
)


@dataclass(frozen=True, slots=True)
class OrderColumn:
    """A column by which a list is ordered, and its direction."""

    field: Field[Any, Any]
    is_descending: bool


class FirstPages(Pages):
    """A paginator that counts and pages only the first 1,000 rows (`REACH`), because counting a large table is slow."""

    @cached_property
    def count(self) -> int:
        """The number of rows, counted up to 1,000 (`REACH`)."""
        listed = self.object_list
        return listed.order_by()[:REACH].count() if isinstance(listed, QuerySet) else min(len(listed), REACH)


class KeysetList(ChangeList):
    """One page of a list.

    `more`: the URL query of the next page; empty: this is the last page. `is_keyed`: whether the list uses keyset
    pagination. If the order of the list does not allow keyset pagination, the list has Django's numbered pages.
    """

    def __init__(self, request: HttpRequest, *args: Any, **options: Any) -> None:  # noqa: ANN401  Django's own
        self.more, self.is_keyed, self.visible_dlqs = "", False, visible_rows.of(request)
        self._is_stopped = False
        self._after = request.GET.get(AFTER)
        if self._after is not None:  # so that links to filters and searches lead to the first page
            left = request.GET.copy()
            del left[AFTER]
            request.GET = left  # type: ignore[assignment]  # as Django's own views do
        list_filter, list_admin = args[3], args[10]
        plain = [
            name for name in list_admin.link_filters if not isinstance(list_admin.opts.get_field(name), ForeignKey)
        ]
        request.GET = active_filters.canonical(request.GET, [*list_filter, *plain], list_admin.opts)  # type: ignore[assignment]
        super().__init__(request, *args, **options)
        self.title = capfirst(labels.plural(self.opts))

    @property
    def goes_on(self) -> bool:
        """Whether this is not the first page of the list."""
        return self.is_keyed and self._after is not None

    @property
    def counts_all(self) -> bool:
        """Whether the shown number of rows is exact, not "at least 1,000"."""
        return not self._is_stopped and (self.known is not None or self.result_count < REACH)

    @cached_property
    def known(self) -> int | None:
        """The number of rows, if a subclass knows it without counting rows; else None."""
        return None

    @property
    def active_filters(self) -> list[ActiveFilter]:
        """The filters in the URL, in words, each with the URL query that removes it."""
        found = []
        for parameter, value in self.filters_shown().items():
            name, _, lookup = parameter.partition("__")
            field = self.opts.get_field(name)
            if isinstance(field, Field):
                shown = active_filters.words(field, lookup, value, self.visible_dlqs)
                found.append(ActiveFilter(labels.column(name), shown, self.get_query_string({parameter: None})))
        return found

    def filters_shown(self) -> dict[str, str]:
        """Return the URL parameters that are filters, with their values; of a repeated parameter, the last value."""
        return {name: value for name, value in self.params.items() if name not in IGNORED_PARAMS}

    def ordered_rows(self, after: list[Any] | None) -> QuerySet[Any]:
        """Return the query for the rows in the order of the list. A subclass can override it by a faster query.

        `after`: the sort values of the last row of the page before; None: this is the first page.
        """
        rows: QuerySet[Any] = self.queryset
        return rows

    def get_results(self, request: HttpRequest) -> None:
        """Read the rows of this page, and the number of rows in the list."""
        keys = _keys(self.queryset, self.opts)
        if keys is None:
            super().get_results(request)
            return
        self.is_keyed = True
        given = _read(keys, self._after) if self._after is not None else None
        if given is None:
            self._after = None
        rows, self.result_count = self._rows_and_number(request, keys, given)
        self.result_list = rows[: self.list_per_page]
        # Shown in the link to all rows, after a search.
        self.full_result_count = None if self.query else self.result_count
        self.show_full_result_count = self.can_show_all = self.multi_page = False
        self.show_admin_actions = True
        if len(rows) > self.list_per_page:
            self.more = self.get_query_string({AFTER: _after_text(keys, self.result_list[-1])})

    def _rows_and_number(
        self, request: HttpRequest, keys: list[OrderColumn], given: list[Any] | None
    ) -> tuple[list[Any], int]:
        """Return the rows of this page and one more, if there is one, and the number of rows in the list.

        A query that takes longer than 5 seconds is stopped: then rows are missing, or the number is too low.
        """
        self.paginator = self.model_admin.get_paginator(request, self.queryset, self.list_per_page)
        rows, number = list[Any](), None
        try:
            with search_timeout():
                rows = list(_beyond(self.ordered_rows(given), keys, given)[: self.list_per_page + 1])
                number = self._number(len(rows))
        except InvalidFilter:
            self._is_stopped = True
            if not rows:
                messages.warning(request, _STOPPED)
        return rows, len(rows) if number is None else number

    def _number(self, read: int) -> int:
        """Return the number of rows in the list. `read`: rows read for this page, one more than it shows if it can.

        If all rows are on this page, they are not counted again.
        """
        if self.known is not None:
            return self.known
        return read if self._after is None and read <= self.list_per_page else self.paginator.count


def search_words(text: str) -> list[str]:
    """Return the words of a list's search text, as Django splits it. Spaces in quotes do not separate words."""
    return [
        unescape_string_literal(word) if word[0] in {'"', "'"} and word[0] == word[-1] else word
        for word in smart_split(text)
    ]


def keyset_page(rows: QuerySet[Row], after: str, size: int) -> tuple[list[Row], int | None]:
    """Return a page of at most `size` rows, newest first, and the value of `after` for the next page.

    The second value is None on the last page. `after`: the id after which the page begins, from the URL; if it is not
    an id, the page is the first.
    """
    rows = rows.order_by("-pk")
    found = list((rows.filter(pk__lt=after) if is_id(after) else rows)[: size + 1])
    return found[:size], found[size - 1].pk if len(found) > size else None


def _keys(rows: QuerySet[Any], options: Options[Any]) -> list[OrderColumn] | None:
    """Return the columns by which the list is ordered, up to the first unique column.

    None: keyset pagination is impossible. No column is unique, or a column belongs to another model, or an ascending
    column can be NULL.
    """
    found: list[OrderColumn] = []
    for name in rows.query.order_by:
        if not isinstance(name, str):
            return None
        falls, plain = name.startswith("-"), name.lstrip("-")
        try:
            field = options.pk if plain == "pk" else options.get_field(plain)
        except FieldDoesNotExist:
            return None
        if not isinstance(field, Field) or field.is_relation or not field.concrete or (field.null and not falls):
            return None
        found.append(OrderColumn(field, falls))
        if field.unique:
            return found
    return None


def _after_text(keys: list[OrderColumn], row: Model) -> str:
    return json.dumps([key.field.value_to_string(row) for key in keys])


def _read(keys: list[OrderColumn], text: str) -> list[Any] | None:
    """Return the sort values that `_after_text` wrote into a URL; None: the text is not valid."""
    try:
        values = json.loads(text)
        if not isinstance(values, list) or len(values) != len(keys) or "\0" in "".join(values):
            return None
        "".join(values).encode()  # raises UnicodeEncodeError for a lone surrogate
        return [key.field.to_python(value) for key, value in zip(keys, values, strict=True)]
    except (TypeError, ValueError, RecursionError, ValidationError):
        return None


def _beyond(rows: QuerySet[Any], keys: list[OrderColumn], values: list[Any] | None) -> QuerySet[Any]:
    """Return the rows that come after the row with these sort values. If `values` is None, return all rows."""
    if values is None:
        return rows
    first, equal, behind = keys[0], Q(), Q(pk__in=[])
    for key, value in zip(keys, values, strict=True):
        behind |= equal & Q(**{f"{key.field.name}__{'lt' if key.is_descending else 'gt'}": value})
        equal &= Q(**{key.field.name: value})
    begins = Q(**{f"{first.field.name}__{'lte' if first.is_descending else 'gte'}": values[0]})
    return rows.filter(begins & behind)
