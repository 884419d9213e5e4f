"""The list and the pages of registered DLQs. Their buttons change, stop and resume a DLQ, or plan a run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from reprocessing.admin.configuration.managed_admin import ManagedAdmin
from reprocessing.admin.dlqs import dlq_form, dlq_form_page
from reprocessing.admin.safety import stop_pages
from reprocessing.admin.site.buttons import Button, button
from reprocessing.admin.site.readonly_admin import Page
from reprocessing.domain.configuration.keys import Kind
from reprocessing.models import DeadLetterQueue
from reprocessing.models.dlq import Mode

_ADDRESS = ("name", "url", "arn", "region", "fifo", "retention", "added_at", "teams")
_POLICY = (
    "mode", "policy", "own_settings",
    "max_attempts", "backoff_base", "backoff_cap", "backoff_jitter", "new_key_delay", "when_parked", "stale",
    "receive_limit", "held_copies_limit", "keep_bodies", "interval", "crontab", "at_once", "ordering_key", "sequence",
    "idempotency_key", "missing_key", "default_source", "delete_when", "parking_url", "role_arn", "public_fields",
    "masked_fields", "search_fields",
)  # fmt: skip
_STATUS = ("depth_visible", "depth_in_flight", "depth_at", "next_poll_at", "drained_through", "last_error")
#: Labels on a DLQ's page: the labels of the form, and labels of columns that the form does not have.
_LABELS: Final = {name: str(field.label) for name, field in dlq_form.DlqForm.base_fields.items()} | {
    "policy": "Inherited policy", "own_settings": "Own values", "depth_visible": "Visible messages",
    "depth_in_flight": "Messages in flight",
}  # fmt: skip


@admin.register(DeadLetterQueue)
class DlqAdmin(ManagedAdmin):
    """The list and the pages of registered DLQs."""

    managed_kind = Kind.DLQ
    changing = ("examine",)
    add_permission = dlq_form_page.ADD
    adds_for_all = True
    labels = _LABELS
    list_display = (
        "name",
        "mode",
        "stopped_at",
        "depth_visible",
        "depth_in_flight",
        "depth_at",
        "last_error",
        "in_file",
    )
    list_filter = ("mode",)
    search_fields = ("name",)
    ordering = ("name",)
    fieldsets = ((None, {"fields": _ADDRESS}), ("Settings", {"fields": _POLICY}), ("Status", {"fields": _STATUS}))

    def add_page(self, request: HttpRequest) -> HttpResponse:
        """Return the page with the form of a new DLQ."""
        return dlq_form_page.page(request)

    def pages(self) -> Iterable[Page]:
        """Return the page that changes a DLQ's settings, and the pages that stop and resume a DLQ."""
        return ("<int:dlq>/examine", dlq_form_page.page, "examine", {}), *stop_pages.pages("deadletterqueue", "dlq")

    def buttons(self, request: HttpRequest, row: DeadLetterQueue) -> Iterable[Button]:
        """Return the buttons on the page of a DLQ: stop or resume, change, plan a run, and links to its messages.

        A run can be planned only in mode manual.
        """
        yield stop_pages.stop_button(request, row, ("stop_deadletterqueue", "stop DLQs"))
        form = reverse("admin:reprocessing_deadletterqueue_examine", args=[row.pk])
        yield button(request, "Change…", form, ("change_deadletterqueue", "change DLQs"))
        if row.mode == Mode.MANUAL:
            plan = f"{reverse('admin:reprocessing_run_add')}?dlq={row.pk}"
            yield button(request, "Plan a run…", plan, ("operate_run", "operate runs"))
        yield Button("Messages", reverse("admin:board_dlq", args=[row.pk]))
        yield Button("Runs", f"{reverse('admin:reprocessing_run_changelist')}?dlq={row.pk}")
