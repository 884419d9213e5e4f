"""The lists of policies and of objects that a configuration file manages, and the page that unlocks such an object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse

from reprocessing.admin.configuration.managed_admin import ManagedAdmin
from reprocessing.admin.site import confirmed_action, visible_rows
from reprocessing.admin.site.confirmed_action import Answer, Done, NotDone, Question
from reprocessing.admin.site.readonly_admin import Page, ReadOnlyAdmin
from reprocessing.domain.configuration.keys import Kind
from reprocessing.models import ManagedObject, Policy
from reprocessing.store.configuration import managed

UNLOCK: Final = "reprocessing.unlock_managedobject"


@admin.register(Policy)
class Policies(ManagedAdmin):
    """The list of policies (named sets of DLQ settings). Only the command apply_config changes policies."""

    managed_kind = Kind.POLICY
    list_display = ("name", "settings", "in_file")
    ordering = ("name",)


@admin.register(ManagedObject)
class ManagedObjects(ReadOnlyAdmin):
    """The list of objects that a configuration file manages, with who applied the file, and who unlocked the object."""

    list_display = ("__str__", "applied_from", "applied_by", "applied_at", "unlocked_at", "unlocked_by")
    list_filter = ("kind",)
    ordering = ("kind", "name", "pk")
    sortable_by = ()

    def pages(self) -> Iterable[Page]:
        """Return the page on which a person unlocks an object."""
        return (("<int:mark>/unlock", _unlock, "unlock", {}),)


def _unlock(request: HttpRequest, mark: int) -> HttpResponse:
    visible_rows.require_all(request)
    return confirmed_action.page(
        request, permission=UNLOCK, question=partial(_question, mark), act=partial(_act, mark)
    )  # fmt: skip


def _question(key: int) -> Question:
    row = get_object_or_404(ManagedObject, pk=key)
    return Question(
        title=f"Unlock {row}",
        button="Unlock",
        says=(
            "People with permission may change it in the admin until the file is applied again.",
            "The next apply overwrites their changes. Until then, redrive_doctor reports these changes.",
        ),
        seen=str(row.applied_at),
        back=reverse("admin:reprocessing_managedobject_change", args=[key]),
        about=str(row),
        facts=(("Applied by", row.applied_by), ("Applied from", row.applied_from or "unknown")),
        idle=f"{row.unlocked_by} has already unlocked it." if row.unlocked_at else "",
    )


def _act(key: int, given: Mapping[str, Any], by: str) -> Answer:
    row = get_object_or_404(ManagedObject, pk=key)
    if str(row.applied_at) != given["seen"]:
        return NotDone("The file was applied again after you opened this page.")
    if not managed.unlock(key, by=by, reason=str(given["reason"])):
        return NotDone("Somebody else has already unlocked it.")
    return Done(reverse("admin:reprocessing_managedobject_change", args=[key]), f"{row} is unlocked.")
