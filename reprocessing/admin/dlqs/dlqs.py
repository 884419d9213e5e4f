"""The dlqs: how each stands, and the ways to what can be done to it; one is changed on its sheet."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse

from reprocessing.admin.dlqs import dlq_form
from reprocessing.admin.safety import stop_pages
from reprocessing.admin.safety.stop_pages import Act
from reprocessing.admin.site.readonly_admin import History
from reprocessing.models import DeadLetterQueue

_ADDRESS = ("name", "url", "arn", "region", "fifo", "retention", "added_at")
_POLICY = (
    "mode", "max_attempts", "backoff_base", "backoff_cap", "backoff_jitter", "quiet_for", "parked_head", "stale",
    "receive_ceiling", "custody_limit", "interval", "crontab", "at_once", "ordering_key", "sequence",
    "idempotency_key", "missing_key", "default_origin", "delete_when", "parking_url", "role_arn", "open_fields",
)  # fmt: skip
_STANDING = ("depth_visible", "depth_in_flight", "depth_at", "next_poll_at", "drained_through", "trouble")
#: What the rows of its page are called: as its sheet calls them, and the rest.
_LABELS: Final = {name: str(field.label) for name, field in dlq_form.DlqSheet.base_fields.items()} | {
    "arn": "ARN", "fifo": "FIFO: it keeps the order of groups", "retention": "It keeps messages for, seconds",
    "default_origin": "Letters of unknown origin died in",
    "depth_visible": "Visible messages", "depth_in_flight": "Messages in flight",
    "depth_at": "SQS said so at", "next_poll_at": "Looked into again at",
    "drained_through": "All that was in it before this moment is captured", "trouble": "What ails it",
}  # fmt: skip


@admin.register(DeadLetterQueue)
class Queues(History):
    """Watched dlqs."""

    change_list_template = "admin/change_list.html"
    change_form_template = "reprocessing/admin/queue.html"
    list_display = ("name", "mode", "stopped_at", "depth_visible", "depth_in_flight", "depth_at", "trouble")
    list_filter = ("mode",)
    search_fields = ("name",)
    ordering = ("name",)
    fieldsets = (
        (None, {"fields": _ADDRESS}),
        ("Policy", {"fields": _POLICY}),
        ("How it stands", {"fields": _STANDING}),
    )

    def get_form(self, request: HttpRequest, obj: Model | None = None, *args: Any, **options: Any) -> Any:  # noqa: ANN401  Django's own
        """Django's; what its sheet asks for has the same name here."""
        return super().get_form(request, obj, *args, labels=_LABELS, **options)

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Who may have one watched."""
        return request.user.has_perm(dlq_form.ADD)

    def get_urls(self) -> list[URLPattern]:
        """Django's, the sheet of one that is watched, its stop, and the end of that."""
        wrap, name = self.admin_site.admin_view, "reprocessing_deadletterqueue"
        return [
            path("<int:dlq>/examine", wrap(dlq_form.page), name=f"{name}_examine"),
            *(
                path(
                    f"<int:dlq>/{act}", wrap(stop_pages.page), {"kind": "deadletterqueue", "act": act}, f"{name}_{act}"
                )
                for act in Act
            ),
            *super().get_urls(),
        ]

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Where one is examined, and added."""
        return dlq_form.page(request)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Its page, and what can be done to it."""
        row = self.get_object(request, object_id)
        stopped = row is not None and row.stopped_at is not None
        act = Act.RESUME if stopped else Act.STOP
        more = {
            "stop_words": "Let it go on…" if stopped else "Stop it…",
            "stop_address": row and reverse(f"admin:reprocessing_deadletterqueue_{act}", args=[row.pk]),
            "may_stop": request.user.has_perm("reprocessing.stop_deadletterqueue"),
            "may_examine": request.user.has_perm(dlq_form.CHANGE),
            "may_plan": request.user.has_perm("reprocessing.operate_run"),
        }
        return super().change_view(request, object_id, form_url, {**more, **(extra_context or {})})
