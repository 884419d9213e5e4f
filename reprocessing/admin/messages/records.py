"""Read-only lists and pages of attempts, source queues, target checks, parking queue notices, stops and reports."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from reprocessing.admin.messages.message_page import may_see_payloads
from reprocessing.admin.site.readonly_admin import ReadOnlyAdmin, RecordsAdmin
from reprocessing.models import (
    Attempt,
    GlobalStop,
    Heartbeat,
    ParkingQueueMessage,
    Report,
    Reporter,
    Source,
    TargetCheck,
)


@admin.register(Attempt)
class Attempts(RecordsAdmin):
    """The list of attempts to deliver messages."""

    list_display = ("id", "letter", "no", "target", "outcome", "opened_at", "closed_at", "returned_at")
    list_filter = ("outcome",)
    list_select_related = ("letter", "target")
    search_fields = ("sent_message_id__exact",)


@admin.register(Source)
class Sources(ReadOnlyAdmin):
    """The list of source queues, each with its DLQ and the target of its messages."""

    list_display = ("__str__", "dlq", "target")
    list_filter = ("dlq",)
    list_select_related = ("dlq", "target")
    ordering = ("dlq", "arn")


@admin.register(TargetCheck)
class Sightings(RecordsAdmin):
    """The list of checks that found a target queue empty, or no longer empty: the evidence for outcome `absence`."""

    list_display = ("target", "seen_at")
    list_filter = ("target",)
    list_select_related = ("target",)


@admin.register(ParkingQueueMessage)
class Notices(RecordsAdmin):
    """The list of messages to parking queues: copies of parked messages, and notices that one left the parking lot."""

    list_display = ("id", "letter", "parking_event", "made_at", "sent_at", "trouble")
    list_filter = ("parking_event",)
    list_select_related = ("letter",)


@admin.register(GlobalStop)
class Halts(ReadOnlyAdmin):
    """The list with the stop of all DLQs, or the hold after a restore of PostgreSQL; empty if nothing is stopped."""

    list_display = ("since", "by", "reason")


@admin.register(Heartbeat)
class Pulses(ReadOnlyAdmin):
    """The list of the service's own task queues, with the time at which a worker last took a task from each queue."""

    list_display = ("queue", "consumed_at")

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Heartbeat | None:
        """Return the row with this id, which is the queue's name; PostgreSQL cannot read a text with a zero byte."""
        found: Heartbeat | None = None if "\0" in object_id else super().get_object(request, object_id, from_field)
        return found


@admin.register(Reporter)
class Reporters(ReadOnlyAdmin):
    """The list of consumers that may report outcomes. The commands add_reporter and revoke_reporter change it."""

    list_display = ("name", "added_at", "added_by", "revoked_at")
    search_fields = ("name__exact",)
    ordering = ("name",)


@admin.register(Report)
class Reports(RecordsAdmin):
    """The list of consumer reports. Reports can quote payloads, so the list takes the permission to see payloads."""

    list_display = ("id", "verdict", "type", "message_id", "public_id", "attempt_no", "reporter", "received_at")
    list_filter = ("verdict", "reporter")
    list_select_related = ("reporter",)
    search_fields = ("message_id__exact", "fingerprint__exact")

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return whether this person may see reports and payloads."""
        return super().has_view_permission(request, obj) and may_see_payloads(request.user)
