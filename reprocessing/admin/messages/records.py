"""Lists and pages of attempts, source queues, consumer reports and other records."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from reprocessing.admin.messages.message_page import may_see_payloads
from reprocessing.admin.site.readonly_admin import History
from reprocessing.models import Attempt, Halt, Notice, Origin, Pulse, Report, Reporter, Sighting


@admin.register(Attempt)
class Attempts(History):
    """Counted tries to deliver a message."""

    list_display = ("id", "letter", "no", "target", "outcome", "opened_at", "closed_at", "returned_at")
    list_filter = ("outcome",)
    list_select_related = ("letter", "target")
    search_fields = ("sent_message_id__exact",)
    ordering = ("-id",)
    sortable_by = ()


@admin.register(Origin)
class Origins(History):
    """The source queues of each DLQ, and where their messages are redriven to."""

    list_display = ("__str__", "dlq", "target")
    list_filter = ("dlq",)
    list_select_related = ("dlq", "target")
    ordering = ("dlq", "arn")


@admin.register(Sighting)
class Sightings(History):
    """When targets were found empty."""

    list_display = ("target", "seen_at")
    list_filter = ("target",)
    list_select_related = ("target",)
    ordering = ("-id",)
    sortable_by = ()


@admin.register(Notice)
class Notices(History):
    """What was sent to parking queues, or still has to be."""

    list_display = ("id", "letter", "news", "made_at", "sent_at", "trouble")
    list_filter = ("news",)
    list_select_related = ("letter",)
    ordering = ("-id",)
    sortable_by = ()


@admin.register(Halt)
class Halts(History):
    """Whether everything is stopped, and by whom."""

    list_display = ("since", "by", "reason")


@admin.register(Pulse)
class Pulses(History):
    """When workers last took a task from each queue."""

    list_display = ("queue", "beaten_at")


@admin.register(Reporter)
class Reporters(History):
    """Consumers that may report, and for which targets (manage.py add_reporter, revoke_reporter)."""

    list_display = ("name", "added_at", "added_by", "revoked_at")
    search_fields = ("name__exact",)
    ordering = ("name",)


@admin.register(Report)
class Reports(History):
    """What consumers reported. An error message can quote a payload, so this takes the permission to see payloads."""

    list_display = ("id", "verdict", "type", "message_id", "public_id", "attempt_no", "reporter", "received_at")
    list_filter = ("verdict", "reporter")
    list_select_related = ("reporter",)
    search_fields = ("message_id__exact", "fingerprint__exact")
    ordering = ("-id",)
    sortable_by = ()

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return whether this person may see payloads."""
        return super().has_view_permission(request, obj) and may_see_payloads(request.user)
