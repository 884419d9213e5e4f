"""What every list and page of ours has in common: nobody writes here, and no list reads everything there is.

A list goes on from the row that its last page ended with, by what it is ordered by; no row before that is read again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import admin
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.core.paginator import Paginator
from django.db.models import Field, Model, Q, QuerySet
from django.db.models.options import Options
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.functional import cached_property
from django.utils.text import capfirst

if TYPE_CHECKING:
    Desk = admin.ModelAdmin[Any]  # generic for the type checker alone
    Pages = Paginator[Any]
else:
    Desk = admin.ModelAdmin
    Pages = Paginator

#: Rows that a list is counted to; of more it says that there are more.
REACH = 1_000
#: Where a page begins: the values of its order in the last row of the page before it, as JSON.
AFTER: Final = "after"


@dataclass(frozen=True, slots=True)
class Key:
    """One column that a list is ordered by."""

    field: Field[Any, Any]
    falls: bool


#: How a column is compared in an address.
_COMPARED: Final = frozenset({"", "exact", "id", "id__exact", "pk", "pk__exact", "isnull"})


class FirstPages(Pages):
    """Pages over the first `REACH` rows: the table is neither counted to its end nor skipped through."""

    @cached_property
    def count(self) -> int:
        """Rows, as far as they are counted."""
        listed = self.object_list
        return listed.order_by()[:REACH].count() if isinstance(listed, QuerySet) else min(len(listed), REACH)


class Stretch(ChangeList):
    """One page of a list. `more`: the query of the next one, empty after the last; `goes_on`: it is not the first.

    A list whose order has no keys that can be gone on from, since one may be missing, has Django's pages.
    """

    def __init__(self, request: HttpRequest, *args: Any, **options: Any) -> None:  # noqa: ANN401  Django's own
        self.more, self.is_keyed = "", False
        self._after = request.GET.get(AFTER)
        if self._after is not None:  # a filter, or a search, begins at the beginning
            left = request.GET.copy()
            del left[AFTER]
            request.GET = left  # type: ignore[assignment]  # as Django's own views do
        super().__init__(request, *args, **options)
        self.title = capfirst(str(self.opts.verbose_name_plural))

    @property
    def goes_on(self) -> bool:
        """Whether there are rows before its own."""
        return self.is_keyed and self._after is not None

    @property
    def counts_all(self) -> bool:
        """Whether there are no more rows than it says."""
        return self.result_count < REACH or self.known is not None

    @cached_property
    def known(self) -> int | None:
        """How many rows there are, where that is known without counting them."""
        return None

    def listed(self) -> QuerySet[Any]:
        """The rows, in their order."""
        rows: QuerySet[Any] = self.queryset
        return rows

    def get_results(self, request: HttpRequest) -> None:
        """The rows of this page, and how many there are on all."""
        keys = _keys(self.queryset, self.opts)
        if keys is None:
            super().get_results(request)
            return
        self.is_keyed = True
        given = _read(keys, self._after) if self._after is not None else None
        if given is None:
            self._after = None
        rows = list(_beyond(self.listed(), keys, given)[: self.list_per_page + 1])
        self.result_list = rows[: self.list_per_page]
        self.paginator = self.model_admin.get_paginator(request, self.queryset, self.list_per_page)
        self.result_count = self.paginator.count if self.known is None else self.known
        self.full_result_count = None if self.query else self.result_count  # what a search left out leads back
        self.show_full_result_count = self.can_show_all = self.multi_page = False
        self.show_admin_actions = True
        if len(rows) > self.list_per_page:
            self.more = self.get_query_string({AFTER: _written(keys, self.result_list[-1])})


class History(Desk):
    """Rows that people look at. Whatever a person's permissions say, this desk adds, changes and deletes nothing."""

    paginator = FirstPages
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_per_page = 50
    list_max_show_all = 0
    change_list_template = "reprocessing/admin/list.html"
    also_asked: ClassVar[tuple[str, ...]] = ()

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:  # noqa: ANN401  Django's own
        """Lists that go on from a row."""
        return Stretch

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """The list; of a filter that cannot be read it would show all that there is, so it shows nothing."""
        try:
            return super().get_changelist_instance(request)
        except IncorrectLookupParameters as error:
            raise DisallowedModelAdminLookup("A filter cannot be read") from error

    def _get_obj_does_not_exist_redirect(self, request: HttpRequest, *about: object) -> HttpResponse:
        """A row that is not there has no page: Django's own goes to the board instead."""
        raise Http404

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        *args: Any,  # noqa: ANN401  Django's own
        **options: Any,  # noqa: ANN401  likewise
    ) -> HttpResponse:
        """A page, by what it is about: Django's titles say what is done there."""
        context["title"] = capfirst(self.opts.verbose_name)
        return super().render_change_form(request, context, *args, **options)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """What the list's own filters ask, and its links: no other column or comparison, and nothing but a text."""
        name, _, how = lookup.partition("__")
        return name in {*self.list_filter, *self.also_asked} and how in _COMPARED and "\0" not in value

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody."""
        return False


def _keys(rows: QuerySet[Any], options: Options[Any]) -> list[Key] | None:
    """What rows are ordered by, up to what no two of them share; None: a value may be missing, or is none of theirs."""
    found: list[Key] = []
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
        found.append(Key(field, falls))
        if field.unique:
            return found
    return None


def _written(keys: list[Key], row: Model) -> str:
    return json.dumps([key.field.value_to_string(row) for key in keys])


def _read(keys: list[Key], text: str) -> list[Any] | None:
    """The values that `_written` wrote of a row; None: no page of ours did."""
    try:
        said = json.loads(text)
        if not isinstance(said, list) or len(said) != len(keys) or "\0" in "".join(said):
            return None
        "".join(said).encode()  # half a pair is no text
        return [key.field.to_python(one) for key, one in zip(keys, said, strict=True)]
    except (TypeError, ValueError, RecursionError, ValidationError):
        return None


def _beyond(rows: QuerySet[Any], keys: list[Key], values: list[Any] | None) -> QuerySet[Any]:
    """The rows behind the one with these values; the first condition alone is one that an index can begin at."""
    if values is None:
        return rows
    first, equal, behind = keys[0], Q(), Q(pk__in=[])
    for key, value in zip(keys, values, strict=True):
        behind |= equal & Q(**{f"{key.field.name}__{'lt' if key.falls else 'gt'}": value})
        equal &= Q(**{key.field.name: value})
    begins = Q(**{f"{first.field.name}__{'lte' if first.falls else 'gte'}": values[0]})
    return rows.filter(begins & behind)
