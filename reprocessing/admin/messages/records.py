"""What happened and what stands: attempts, reviews and the rest, to be looked at."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from reprocessing.admin.messages.message_page import may_see_payloads
from reprocessing.admin.site.readonly_admin import History
from reprocessing.models import Attempt, Halt, Notice, Origin, Pulse, Report, Reporter, Sighting


@admin.register(Attempt)
class Attempts(History):
    """Every counted try."""

    list_display = ("id", "letter", "no", "target", "outcome", "opened_at", "closed_at", "returned_at")
    list_filter = ("outcome",)
    list_select_related = ("letter", "target")
    search_fields = ("sent_message_id__exact",)
    ordering = ("-id",)
    sortable_by = ()


@admin.register(Origin)
class Origins(History):
    """What letters of which dlq died in, and where they go."""

    list_display = ("__str__", "dlq", "target")
    list_filter = ("dlq",)
    list_select_related = ("dlq", "target")
    ordering = ("dlq", "arn")


@admin.register(Sighting)
class Sightings(History):
    """When targets were seen empty."""

    list_display = ("target", "seen_at")
    list_filter = ("target",)
    list_select_related = ("target",)
    ordering = ("-id",)
    sortable_by = ()


@admin.register(Notice)
class Notices(History):
    """What parking queues were told, or are still owed."""

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
    """When tasks were last consumed."""

    list_display = ("queue", "beaten_at")


@admin.register(Reporter)
class Reporters(History):
    """Consumers that may report, and on which targets' letters (manage.py add_reporter, revoke_reporter)."""

    list_display = ("name", "added_at", "added_by", "revoked_at")
    search_fields = ("name__exact",)
    ordering = ("name",)


@admin.register(Report)
class Reports(History):
    """What consumers said. An exception's text can quote what its message held: it takes the right to see payloads."""

    list_display = ("id", "verdict", "type", "message_id", "public_id", "attempt_no", "reporter", "received_at")
    list_filter = ("verdict", "reporter")
    list_select_related = ("reporter",)
    search_fields = ("message_id__exact", "fingerprint__exact")
    ordering = ("-id",)
    sortable_by = ()

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Who may see what customers wrote."""
        return super().has_view_permission(request, obj) and may_see_payloads(request.user)
