"""The base class of admin pages whose objects a configuration file can manage.

Such an object is locked in the admin until a person unlocks it, because the next apply_config of the file would
overwrite the person's changes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import Exists, Model, OuterRef, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path, reverse

from reprocessing.admin.site import visible_rows
from reprocessing.admin.site.buttons import Button, button
from reprocessing.admin.site.readonly_admin import ReadOnlyAdmin
from reprocessing.domain.configuration.keys import Kind
from reprocessing.models import ManagedObject
from reprocessing.store.configuration import managed

_UNLOCKS = ("unlock_managedobject", "unlock managed objects")


class ManagedAdmin(ReadOnlyAdmin):
    """Lists and pages of objects that a configuration file can manage.

    To change a managed object in the admin, a person has to unlock it first.

    Attributes:
        managed_kind: the kind of object in configuration files.
        name_field: the model's field that has the object's name in the file.
        changing: names of the pages (see `pages`) that change an object.
    """

    managed_kind: ClassVar[Kind]
    name_field: ClassVar[str] = "name"
    changing: ClassVar[tuple[str, ...]] = ()

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the rows of the list. The added field `is_managed`: whether a configuration file manages the row."""
        marks = ManagedObject.objects.filter(kind=self.managed_kind, name=OuterRef(self.name_field))
        rows: QuerySet[Any] = super().get_queryset(request).annotate(is_managed=Exists(marks))
        return rows

    @admin.display(description="managed by file", boolean=True)
    def in_file(self, row: Any) -> bool:  # noqa: ANN401  a row of `get_queryset`
        """Return whether a configuration file manages the object, for a column of the list."""
        return bool(row.is_managed)

    def mark(self, row: Model) -> ManagedObject | None:
        """Return the record that a configuration file manages this object; None: no file manages the object."""
        return managed.find_mark(self.managed_kind, str(getattr(row, self.name_field)))

    def get_urls(self) -> list[URLPattern]:
        """Return the URLs of all pages. A page that changes an object shows an error while the object is locked."""
        prefix, wrap = f"{self.opts.app_label}_{self.opts.model_name}", self.admin_site.admin_view
        guarded = [
            path(route, wrap(self._guarded(view)), fixed, name=f"{prefix}_{name}")
            for route, view, name, fixed in self.pages()
            if name in self.changing
        ]
        return [*guarded, *super().get_urls()]

    def _guarded(self, view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
        """Return a view that calls `view`, but shows an error on the object's page if the object is locked."""

        def guarded(request: HttpRequest, **about: Any) -> HttpResponseBase:  # noqa: ANN401  the view's own
            key = next((value for value in about.values() if isinstance(value, int)), None)
            row = visible_rows.rows(request, self.model._default_manager).filter(pk=key).first()  # noqa: SLF001  Django's
            mark = self.mark(row) if row is not None else None
            if mark is None or mark.unlocked_at is not None:
                return view(request, **about)
            messages.error(request, "Nothing was changed: the configuration file manages this object. Unlock it first.")
            return HttpResponseRedirect(reverse(f"admin:reprocessing_{self.opts.model_name}_change", args=[key]))

        return update_wrapper(guarded, view)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the page of an object. If it is locked, the button "Unlock…" replaces the buttons that change it."""
        row = self.get_object(request, object_id)
        mark = self.mark(row) if row is not None else None
        more: dict[str, Any] = {"mark": mark}
        if mark is not None and row is not None and mark.unlocked_at is None:
            more["buttons"] = [self._unlock(request, mark), *self._harmless(request, row)]
        return super().change_view(request, object_id, form_url, {**more, **(extra_context or {})})

    def _harmless(self, request: HttpRequest, row: Model) -> list[Button]:
        model = self.opts.model_name
        closed = {reverse(f"admin:reprocessing_{model}_{name}", args=[row.pk]) for name in self.changing}
        return [offered for offered in self.buttons(request, row) if offered.address not in closed]

    def _unlock(self, request: HttpRequest, mark: ManagedObject) -> Button:
        address = reverse("admin:reprocessing_managedobject_unlock", args=[mark.pk])
        return button(request, "Unlock…", address, _UNLOCKS)
