"""The form that sets which events a notification destination receives, as the command set_notification does."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse

from reprocessing import conf
from reprocessing.admin.site import preview_form, visible_rows
from reprocessing.admin.site.confirmed_action import Done
from reprocessing.admin.site.preview import Preview
from reprocessing.admin.site.preview_form import FormPage, PreviewForm
from reprocessing.domain.notifications.event import EventKind
from reprocessing.models import DeadLetterQueue, NotificationRoute
from reprocessing.pipeline.dlqs.examine import Finding, Severity
from reprocessing.store.notifications import routes
from reprocessing.store.notifications.routes import Route
from reprocessing.store.proposed_changes import changed_fields
from reprocessing.store.rights.visible_dlqs import VisibleDlqs

ADD, CHANGE = "reprocessing.add_notificationroute", "reprocessing.change_notificationroute"


class NotificationForm(PreviewForm):
    """The form that sets which kinds of events, of which DLQs, a notification destination receives."""

    sections = (("Destination", ("destination",)), ("Notifications", ("events", "dlqs")))
    fixed = ("destination",)

    destination = forms.CharField(
        max_length=100, label="Destination",
        help_text="Name of the destination, such as ops. The environment variable REDRIVE_NOTIFY_OPS then has its "
        "URL, which is never shown.",
    )  # fmt: skip
    events = forms.MultipleChoiceField(
        required=False, label="Events", choices=[(kind.value, kind.value.replace("_", " ")) for kind in EventKind],
        help_text="None selected: all events.",
    )  # fmt: skip
    dlqs = forms.MultipleChoiceField(
        required=False, label="Dead-letter queues", help_text="None selected: all DLQs and the service itself."
    )

    def __init__(self, seen: VisibleDlqs, data: QueryDict | None, row: NotificationRoute | None) -> None:
        super().__init__(data, row, _settings(row))
        self.seen = seen
        names = seen.rows(DeadLetterQueue.objects.order_by("name")).values_list("name", flat=True)
        if not seen.are_all:  # only people who see all DLQs may select the events of all DLQs
            self.fields["dlqs"].required, self.fields["dlqs"].help_text = True, "Select at least one DLQ."
        self.fields["dlqs"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]  # a choice field's

    def last(self) -> str:
        """Return the end of an error text: it refers to the audit log for who changed the destination."""
        return "see the audit log."


def page(request: HttpRequest, route: int | None = None) -> HttpResponse:
    """Show the form of a notification destination, then the preview. Save when the person confirms the preview.

    `route`: the id of the destination; None: a new destination.
    """
    row = visible_rows.row_or_404(request, NotificationRoute.objects, route) if route else None
    seen = visible_rows.of(request)
    name = "admin:reprocessing_notificationroute_"
    known = ", ".join(sorted(conf.current().destinations)) or "none"
    asked = FormPage(
        permission=CHANGE if row else ADD,
        title=f"Change notifications to {row}" if row else "Add a destination",
        intro=f"Destinations with a URL in this process: {known}. This page sends nothing.",
        button="Save" if row else "Add",
        back=reverse(f"{name}change", args=[row.pk]) if row else reverse(f"{name}changelist"),
        about=str(row) if row else "Notifications",
        make=lambda data: NotificationForm(seen, data, row),
        make_preview=_make_preview,
        write=_write,
    )
    return preview_form.page(request, asked)


def _make_preview(form: NotificationForm) -> Preview:
    given = form.cleaned_data
    destination = form.row.destination if form.row else given["destination"].strip()
    wanted = Route(destination, routes.read_kinds(given["events"] or ["all"]), tuple(sorted(given["dlqs"])))
    routes.check_route(wanted)
    before = routes.route_or_none(destination)
    shown = form.seen.rows(NotificationRoute.objects.filter(destination=destination)).exists()
    now = before.audit_values() if before and shown else {}
    findings = []
    if before and not form.row:
        what = f"{destination} has notifications already."
        findings.append(Finding(Severity.REFUSE, what, "Change the notifications on the page of the destination."))
    if destination not in conf.current().destinations:
        what = f"This process has no URL for {destination}, so nothing can be sent there."
        findings.append(
            Finding(Severity.WARN, what, "Set the variable REDRIVE_NOTIFY_<NAME> for workers and web server.")
        )
    return Preview(
        payload=wanted,
        changes=changed_fields(destination, now, wanted.audit_values()),
        findings=findings,
        new=not before,
    )


def _write(preview: Preview, by: str, reason: str) -> Done:
    wanted: Route = preview.payload
    routes.set_route(wanted, by=by, reason=reason)
    row = NotificationRoute.objects.get(destination=wanted.destination)
    address = reverse("admin:reprocessing_notificationroute_change", args=[row.pk])
    return Done(address, f"Saved. Test it: manage.py test_notification {row}")


def _settings(row: NotificationRoute | None) -> dict[str, Any]:
    if row is None:
        return {"events": [], "dlqs": []}
    return {"events": list(row.kinds), "dlqs": sorted(row.dlqs.values_list("name", flat=True))}
