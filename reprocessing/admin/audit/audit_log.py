"""The list of audit entries, and the page that exports the entries as JSON, one entry a line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.http import require_http_methods

from reprocessing.admin.site import labels, visible_rows
from reprocessing.admin.site.fields import utc_datetime
from reprocessing.admin.site.readonly_admin import Page, RecordsAdmin
from reprocessing.models import AuditAct, AuditEntry
from reprocessing.store.maintenance import audit_log
from reprocessing.store.maintenance.audit_log import LogEntry, LogFilter

#: Columns of an audit entry that refer to an object, with the object's model. The list shows the first column that is
#: not empty.
_ABOUT: Final = {
    "letter": "letter", "group": "failuregroup", "run": "run", "rule": "rule", "target": "target",
    "dlq": "deadletterqueue", "operation": "bulkaction",
}  # fmt: skip
PERMISSION: Final = "reprocessing.export_letter"
_WHEN = forms.DateTimeInput(attrs={"type": "datetime-local", "step": "1"})


class ExportFilterForm(forms.Form):
    """A form that selects the audit entries to export."""

    since = utc_datetime("From (UTC)", "Empty: from the first entry.", widget=_WHEN)
    until = utc_datetime("Before (UTC)", "Empty: to the last entry.", widget=_WHEN)
    by = forms.CharField(
        required=False, max_length=150, label="User",
        help_text="Name of the user who acted or approved. Empty: all users.",
    )  # fmt: skip
    operation = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=2**63 - 1,
        label="Bulk action",
        help_text="The number of a bulk action, to export only its entries. Empty: all entries.",
    )

    def clean(self) -> dict[str, Any]:
        """Return the entered values. Refuse a period that ends before it begins."""
        given = super().clean() or self.cleaned_data
        since, until = given.get("since"), given.get("until")
        if since and until and until <= since:
            raise forms.ValidationError({"until": "The end is before the beginning."})
        return given

    @property
    def span(self) -> LogFilter:
        """Return the filter of audit entries that the form describes."""
        given = self.cleaned_data
        return LogFilter(given["since"], given["until"], given["by"] or None, given["operation"])


@admin.register(AuditEntry)
class AuditLogAdmin(RecordsAdmin):
    """The list of audit entries, which nobody can change. When a message is deleted, its entries are deleted, too."""

    change_list_template = "reprocessing/admin/audit_log.html"
    list_display = ("at", "act", "by", "about", "reason", "part_of")
    list_filter = ("act", "dlq")
    list_select_related = ("letter", "dlq", "run", "target", "rule", "group", "operation")
    search_fields = ("by__exact",)
    search_help_text = "Enter a full user name. The search finds entries of actions that the user did or approved."

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[AuditEntry], search_term: str
    ) -> tuple[QuerySet[AuditEntry], bool]:
        """Return the entries of actions that a user did or approved. `search_term`: the user's name.

        The second value that is returned is False, which tells Django that no entry occurs twice.
        """
        name = search_term.strip().replace("\0", "")
        return (queryset.filter(by__in=audit_log.authors(name)) if name else queryset), False

    @admin.display(description="object")
    def about(self, review: AuditEntry) -> str:
        """Return the object that the entry is about, such as a DLQ, as a link; "everything" if it has no object."""
        for name, model in _ABOUT.items():
            subject = getattr(review, name)
            if subject is not None:
                address = reverse(f"admin:reprocessing_{model}_change", args=[subject.pk])
                shown = subject.message_id if name == "letter" else subject
                return format_html('{} <a href="{}">{}</a>', labels.singular(type(subject)._meta), address, shown)  # noqa: SLF001
        return "messages, or the audit log" if review.act == AuditAct.EXPORTED else "everything"

    @admin.display(description="bulk action")
    def part_of(self, review: AuditEntry) -> str:
        """Return the id of the bulk action to which the entry belongs; "-": the entry belongs to none."""
        return str(review.operation_id or "-")

    def pages(self) -> Iterable[Page]:
        """Return the page that exports audit entries."""
        return (("export", require_http_methods(["GET", "HEAD", "POST"])(self._export), "export", {}),)

    def _export(self, request: HttpRequest) -> HttpResponseBase:
        if not (self.has_view_permission(request) and request.user.has_perm(PERMISSION)):
            raise PermissionDenied
        form = ExportFilterForm(request.POST or None)
        if request.method != "POST" or not form.is_valid():
            return self._page(request, form)
        span = form.span
        AuditEntry.objects.create(
            act=AuditAct.EXPORTED,
            by=request.user.get_username(),
            reason="Exported the audit log.",
            after=_filter_values(span),
        )
        return StreamingHttpResponse(
            map(json_line, audit_log.log_entries(span, seen=visible_rows.of(request))),
            content_type="application/x-ndjson",
            headers={"Content-Disposition": 'attachment; filename="redrive-audit.jsonl"', "Cache-Control": "no-store"},
        )

    def _page(self, request: HttpRequest, form: ExportFilterForm) -> HttpResponse:
        context = self.admin_site.each_context(request) | {"title": "Export the audit log", "form": form}
        return TemplateResponse(request, "reprocessing/admin/audit_export.html", context)


def json_line(entry: LogEntry) -> bytes:
    """Return an audit entry as a line of JSON.

    If the Elastic Common Schema (ECS) has a field for a value, the value has this field's name.
    Characters that are not ASCII are escaped, because some of them break lines or control terminals.

    Source: https://www.elastic.co/guide/en/ecs/current/ecs-field-reference.html
    """
    about = {
        "id": entry.id, "operation": entry.operation, "dlq": entry.dlq, "letter": entry.letter and str(entry.letter),
        "message_id": entry.message_id, "group": entry.group, "run": entry.run, "target": entry.target,
        "rule": entry.rule, "before": entry.before or None, "after": entry.after or None,
    }  # fmt: skip
    line = {
        "@timestamp": entry.at.isoformat(),
        "event": {"kind": "event", "action": entry.act, "reason": entry.reason},
        "user": {"name": entry.by},
        "redrive": {name: value for name, value in about.items() if value is not None},
    }
    return json.dumps(line).encode() + b"\n"


def _filter_values(span: LogFilter) -> dict[str, Any]:
    given = {"since": span.since, "until": span.until, "by": span.by, "operation": span.operation}
    return {"what": "audit"} | {name: str(value) for name, value in given.items() if value is not None}
