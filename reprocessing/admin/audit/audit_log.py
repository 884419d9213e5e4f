"""Who did what, when and why: to be looked at, and to be handed on as it was written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.views.decorators.http import require_http_methods

from reprocessing.admin.site.fields import moment
from reprocessing.admin.site.readonly_admin import History
from reprocessing.models import Act, Review
from reprocessing.store.maintenance import audit_log
from reprocessing.store.maintenance.audit_log import Entry, Span

#: What an act can be about, the most particular first, and whose pages tell of it.
_ABOUT: Final = {
    "letter": "deadletter", "group": "lettergroup", "run": "run", "rule": "rule", "target": "target",
    "dlq": "deadletterqueue", "operation": "operation",
}  # fmt: skip
PERMISSION: Final = "reprocessing.export_deadletter"
_WHEN = forms.DateTimeInput(attrs={"type": "datetime-local", "step": "1"})


class Wish(forms.Form):
    """Which acts are handed on."""

    since = moment("From (UTC)", "Empty: from the first.", widget=_WHEN)
    until = moment("Before (UTC)", "Empty: to the last.", widget=_WHEN)
    by = forms.CharField(required=False, max_length=150, label="Done by", help_text="A user name; empty: by anybody.")
    operation = forms.IntegerField(
        required=False, min_value=1, max_value=2**63 - 1, help_text="The number of an operation; empty: any, and none."
    )

    def clean(self) -> dict[str, Any]:
        """A span that could hold something."""
        given = super().clean() or self.cleaned_data
        since, until = given.get("since"), given.get("until")
        if since and until and until <= since:
            raise forms.ValidationError({"until": "It ends before it begins."})
        return given

    @property
    def span(self) -> Span:
        """What was asked for."""
        given = self.cleaned_data
        return Span(given["since"], given["until"], given["by"] or None, given["operation"])


@admin.register(Review)
class Audit(History):
    """What people did. Postgres refuses to rewrite it; it goes when what it is about is past its time."""

    change_list_template = "reprocessing/admin/audit.html"
    list_display = ("at", "act", "by", "about", "reason", "part_of")
    list_filter = ("act", "dlq")
    list_select_related = ("letter", "dlq", "run", "target", "rule", "group", "operation")
    search_fields = ("by__exact",)
    search_help_text = "A whole user name."
    ordering = ("-id",)
    sortable_by = ()

    @admin.display(description="about")
    def about(self, review: Review) -> str:
        """What it was done to, as far as one thing can be named; a link to it."""
        for name, model in _ABOUT.items():
            there = getattr(review, name)
            if there is not None:
                address = reverse(f"admin:reprocessing_{model}_change", args=[there.pk])
                shown = there.message_id if name == "letter" else there
                return format_html('{} <a href="{}">{}</a>', name, address, shown)
        return "letters, or what people did" if review.act == Act.EXPORTED else "everything"

    @admin.display(description="part of")
    def part_of(self, review: Review) -> str:
        """The operation that it belongs to."""
        return f"operation {review.operation_id}" if review.operation_id else "-"

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, by the word that leads to it."""
        return super().changelist_view(request, {"title": "Audit", **(extra_context or {})})

    def get_urls(self) -> list[URLPattern]:
        """Django's, and the export."""
        name = "reprocessing_review_export"
        return [path("export", self.admin_site.admin_view(self.export), name=name), *super().get_urls()]

    def export(self, request: HttpRequest) -> HttpResponseBase:
        """Asked for, the page that asks which acts; sent back, a line of JSON for each."""
        return require_http_methods(["GET", "HEAD", "POST"])(self._export)(request)

    def _export(self, request: HttpRequest) -> HttpResponseBase:
        if not (self.has_view_permission(request) and request.user.has_perm(PERMISSION)):
            raise PermissionDenied
        form = Wish(request.POST or None)
        if request.method != "POST" or not form.is_valid():
            return self._page(request, form)
        span = form.span
        Review.objects.create(
            act=Act.EXPORTED, by=request.user.get_username(), reason="Exported what people did.", after=_told(span)
        )
        return StreamingHttpResponse(
            map(line, audit_log.entries(span)),
            content_type="application/x-ndjson",
            headers={"Content-Disposition": 'attachment; filename="redrive-audit.jsonl"', "Cache-Control": "no-store"},
        )

    def _page(self, request: HttpRequest, form: Wish) -> HttpResponse:
        context = self.admin_site.each_context(request) | {"title": "Export what people did", "form": form}
        return TemplateResponse(request, "reprocessing/admin/audit_export.html", context)


def line(entry: Entry) -> bytes:
    """One act as a line of JSON in ASCII, in fields of the Elastic Common Schema where it has one.

    Any other character is escaped: some end a line, turn it around, or command the terminal that shows it.

    Source: https://www.elastic.co/guide/en/ecs/current/ecs-field-reference.html
    """
    about = {
        "id": entry.id, "operation": entry.operation, "dlq": entry.dlq, "letter": entry.letter and str(entry.letter),
        "message_id": entry.message_id, "group": entry.group, "run": entry.run, "target": entry.target,
        "rule": entry.rule, "before": entry.before or None, "after": entry.after or None,
    }  # fmt: skip
    told = {
        "@timestamp": entry.at.isoformat(),
        "event": {"kind": "event", "action": entry.act, "reason": entry.reason},
        "user": {"name": entry.by},
        "redrive": {name: value for name, value in about.items() if value is not None},
    }
    return json.dumps(told).encode() + b"\n"


def _told(span: Span) -> dict[str, Any]:
    said: Iterator[tuple[str, object]] = iter(
        (("since", span.since), ("until", span.until), ("by", span.by), ("operation", span.operation))
    )
    return {"what": "audit"} | {name: str(value) for name, value in said if value is not None}
