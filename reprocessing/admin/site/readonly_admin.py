"""Base classes of the admin's lists and pages. Nobody can change a row with Django's own forms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import admin
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.db.models import ForeignKey, Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path
from django.utils.text import capfirst

from reprocessing.admin.site import labels, visible_rows
from reprocessing.admin.site.buttons import Button
from reprocessing.admin.site.keyset_list import FirstPages, KeysetList
from reprocessing.admin.site.visible_rows import VisibleRelatedFilter
from reprocessing.store.rights.visible_dlqs import ALL_DLQS

if TYPE_CHECKING:
    PlainAdmin = admin.ModelAdmin[Any]  # only the type checker needs the type argument
else:
    PlainAdmin = admin.ModelAdmin

#: Django lookups that a filter in a URL may use.
_COMPARED: Final = frozenset({"", "exact", "in", "id", "id__exact", "pk", "pk__exact", "isnull"})

#: A page that Django's admin does not have: route, view, end of the URL's name, and fixed arguments of the view.
Page = tuple[str, Callable[..., HttpResponseBase], str, dict[str, Any]]


class ReadOnlyAdmin(PlainAdmin):
    """The list and the pages of a model. Nobody can add, change or delete rows with Django's own forms.

    Attributes:
        link_filters: filters that the list accepts in its URL, but does not offer in its sidebar.
        labels: labels of fields that are different on these pages.
        field_help: help texts of fields on these pages.
        add_permission: the permission that a person needs to add a row; empty: nobody can add rows here.
    """

    paginator = FirstPages
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_per_page = 50
    list_max_show_all = 0
    change_list_template = "reprocessing/admin/list.html"
    link_filters: ClassVar[tuple[str, ...]] = ()
    labels: ClassVar[Mapping[str, str]] = {}
    field_help: ClassVar[Mapping[str, str]] = {}
    add_permission: ClassVar[str] = ""
    #: Whether a new row belongs to no DLQ, so that only people who see all DLQs may add it.
    adds_for_all: ClassVar[bool] = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the rows that this person sees. Lists, pages and searches of the model read only these rows."""
        return visible_rows.rows(request, super().get_queryset(request))

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        """Return the filters of the list. A filter by a related object offers only objects that this person sees."""
        return [
            (name, VisibleRelatedFilter) if isinstance(self.opts.get_field(str(name)), ForeignKey) else name
            for name in self.list_filter
        ]

    def pages(self) -> Iterable[Page]:
        """Return the pages that this model has in addition to Django's pages."""
        return ()

    def buttons(self, request: HttpRequest, row: Any) -> Iterable[Button]:  # noqa: ANN401  a row of the model
        """Return the buttons on the page of a row."""
        return ()

    def get_urls(self) -> list[URLPattern]:
        """Return the URLs of `pages`, then Django's URLs."""
        prefix, wrap = f"{self.opts.app_label}_{self.opts.model_name}", self.admin_site.admin_view
        own = [path(route, wrap(view), fixed, name=f"{prefix}_{name}") for route, view, name, fixed in self.pages()]
        return [*own, *super().get_urls()]

    def get_form(self, request: HttpRequest, obj: Model | None = None, *args: Any, **options: Any) -> Any:  # noqa: ANN401  Django's own
        """Return Django's form of a row, with labels from the module `labels` and this class, and with help texts."""
        named = {**labels.FIELDS, **self.labels}
        return super().get_form(request, obj, *args, labels=named, help_texts=self.field_help, **options)

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:  # noqa: ANN401  Django's own
        """Return the class of a list with keyset pagination."""
        return KeysetList

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """Return the list. An invalid filter is answered with status 400. Django would show all rows instead."""
        try:
            return super().get_changelist_instance(request)
        except IncorrectLookupParameters as error:
            raise DisallowedModelAdminLookup("A filter cannot be read") from error

    def _get_obj_does_not_exist_redirect(self, request: HttpRequest, *about: object) -> HttpResponse:
        """Raise Http404 for a missing row; Django would redirect to the dashboard."""
        raise Http404

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the page that adds a row."""
        return self.add_page(request)

    def add_page(self, request: HttpRequest) -> HttpResponse:
        """Return the page that adds a row. Subclasses with `add_permission` override this method."""
        return super().add_view(request)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the page of a row, with its buttons."""
        row = self.get_object(request, object_id)
        more = {"buttons": list(self.buttons(request, row))} if row else {}
        return super().change_view(request, object_id, form_url, {**more, **(extra_context or {})})

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        *args: Any,  # noqa: ANN401  Django's own
        **options: Any,  # noqa: ANN401  likewise
    ) -> HttpResponse:
        """Show the page of a row, with the name of the model as its title. Django's title would be "View …"."""
        context["title"] = capfirst(labels.singular(self.opts))
        return super().render_change_form(request, context, *args, **options)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Return whether a filter in the URL is allowed: it must be in `list_filter` or in `link_filters`."""
        name, _, how = lookup.partition("__")
        return name in {*self.list_filter, *self.link_filters} and how in _COMPARED and "\0" not in value

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return whether this person may open the form of a new row."""
        needed = [self.add_permission, *([ALL_DLQS] if self.adds_for_all else [])]
        return bool(self.add_permission) and request.user.has_perms(needed)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return False, because nobody may use Django's own form."""
        return False

    has_delete_permission = has_change_permission


class RecordsAdmin(ReadOnlyAdmin):
    """The list and the pages of a model whose rows record events. The newest row comes first."""

    ordering = ("-id",)
    sortable_by = ()
