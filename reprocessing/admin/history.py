"""What every list and page of ours has in common: nobody writes here, and no list counts everything there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property

if TYPE_CHECKING:
    Desk = admin.ModelAdmin[Any]  # generic for the type checker alone
    Pages = Paginator[Any]
else:
    Desk = admin.ModelAdmin
    Pages = Paginator

#: Rows that the pages of one list reach. Beyond it a filter or a search is quicker, for people and for Postgres.
REACH = 10_000


class FirstPages(Pages):
    """Pages over the first `REACH` rows: the table is neither counted to its end nor skipped through."""

    @cached_property
    def count(self) -> int:
        """Rows on all pages."""
        listed = self.object_list
        return listed.order_by()[:REACH].count() if isinstance(listed, QuerySet) else min(len(listed), REACH)


class History(Desk):
    """Rows that people look at. Whatever a person's permissions say, this desk adds, changes and deletes nothing."""

    paginator = FirstPages
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_per_page = 50
    list_max_show_all = 0
    change_list_template = "reprocessing/admin/list.html"

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody."""
        return False
