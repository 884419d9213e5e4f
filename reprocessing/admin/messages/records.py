"""Read-only lists and pages of attempts, source queues, checks of targets, consumer reports, and other records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest

from reprocessing.admin.messages.message_page import may_see_payloads
from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.admin.site.keyset_list import search_words
from reprocessing.admin.site.readonly_admin import ReadOnlyAdmin, RecordsAdmin
from reprocessing.domain.payloads import sealing
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
from reprocessing.store.payloads import answer_texts, viewed_content


@admin.register(Attempt)
class Attempts(RecordsAdmin):
    """The list of attempts to deliver messages."""

    list_display = ("id", "letter", "no", "target", "outcome", "opened_at", "closed_at", "returned_at")
    list_filter = ("outcome",)
    list_select_related = ("letter", "target")
    search_fields = ("sent_message_id__exact",)
    readonly_fields = ("readable_detail",)

    def get_fields(self, request: HttpRequest, obj: Attempt | None = None) -> Any:  # noqa: ANN401  Django's own
        """Return the fields of an attempt's page, with `readable_detail` instead of `detail`."""
        return _instead(super().get_fields(request, obj), "detail", "readable_detail")

    @admin.display(description="detail")
    def readable_detail(self, attempt: Attempt) -> str:
        """Return the attempt's detail. A text that may quote the payload is left out; the message's page shows it."""
        return visible(answer_texts.detail_for(attempt.letter, attempt.detail or "", shown=False, revealed=False))


@admin.register(Source)
class Sources(ReadOnlyAdmin):
    """The list of source queues, each with its DLQ and the target of its messages."""

    list_display = ("__str__", "dlq", "target")
    list_filter = ("dlq",)
    list_select_related = ("dlq", "target")
    ordering = ("dlq", "arn")


@admin.register(TargetCheck)
class TargetChecks(RecordsAdmin):
    """The list of checks that found a target queue empty, or not empty any more. The outcome `absence` needs them."""

    list_display = ("target", "seen_at")
    list_filter = ("target",)
    list_select_related = ("target",)


@admin.register(ParkingQueueMessage)
class ParkingQueueMessages(RecordsAdmin):
    """The list of SQS messages that the service sends to parking queues.

    They are copies of parked messages, and notices that a message is no longer parked.
    """

    list_display = ("id", "letter", "parking_event", "made_at", "sent_at", "last_error")
    list_filter = ("parking_event",)
    list_select_related = ("letter",)


@admin.register(GlobalStop)
class GlobalStops(ReadOnlyAdmin):
    """The list of what stops the sends of all DLQs: a person's stop, or the wait after a restore of PostgreSQL."""

    list_display = ("since", "by", "reason")


@admin.register(Heartbeat)
class Heartbeats(ReadOnlyAdmin):
    """The list of the service's own task queues, with the time at which a worker last took a task from each queue."""

    list_display = ("queue", "consumed_at")

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Heartbeat | None:
        """Return the row of the queue with this name; None: there is no such row, or the name has a zero byte."""
        found: Heartbeat | None = None if "\0" in object_id else super().get_object(request, object_id, from_field)
        return found


@admin.register(Reporter)
class Reporters(ReadOnlyAdmin):
    """The list of consumers that may report outcomes. The commands add_reporter and revoke_reporter change the list."""

    list_display = ("name", "added_at", "added_by", "revoked_at")
    search_fields = ("name__exact",)
    ordering = ("name",)


@admin.register(Report)
class Reports(RecordsAdmin):
    """The list of consumer reports. Reports can quote payloads, so the list needs the permission to see payloads."""

    list_display = ("id", "verdict", "type", "message_id", "public_id", "attempt_no", "reporter", "received_at")
    list_filter = ("verdict", "reporter")
    list_select_related = ("reporter",)
    search_fields = ("message_id__exact", "fingerprint__exact")
    readonly_fields = ("text",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Report], search_term: str
    ) -> tuple[QuerySet[Report], bool]:
        """Return the reports with a message id or fingerprint.

        The second value that is returned is False, which tells Django that no report occurs twice.
        """
        for word in search_words(search_term):
            queryset = queryset.filter(_names(word))
        return queryset, False

    def get_fields(self, request: HttpRequest, obj: Report | None = None) -> Any:  # noqa: ANN401  Django's own
        """Return the fields of a report's page, with `text` instead of `message`."""
        return _instead(super().get_fields(request, obj), "message", "text")

    @admin.display(description="message")
    def text(self, report: Report) -> str:
        """Return the text of the report. If the text is encrypted, or any DLQ masks fields, return a note instead.

        Masking rules cannot find values in a text. The page of the message shows the text, and the audit log records
        who saw it.
        """
        is_hidden = sealing.from_text(report.message) is not None or viewed_content.masks_fields(None)
        return answer_texts.HIDDEN if report.message and is_hidden else visible(report.message)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return whether this person may see reports and payloads."""
        return super().has_view_permission(request, obj) and may_see_payloads(request.user)


def _names(word: str) -> Q:
    """Return the condition that a report has this message id or fingerprint.

    A word is seldom both. So the condition names only the column in which the word occurs: with both, PostgreSQL may
    read all reports.
    """
    by_message, by_fingerprint = Q(message_id=word), Q(fingerprint=word)
    if not Report.objects.filter(by_fingerprint).exists():
        return by_message
    return by_message | by_fingerprint if Report.objects.filter(by_message).exists() else by_fingerprint


def _instead(fields: Iterable[Any], hidden: str, shown: str) -> list[str]:
    """Return the names in `fields`, with the name `shown` in place of the name `hidden`."""
    return [shown if name == hidden else name for name in fields if name != shown]
