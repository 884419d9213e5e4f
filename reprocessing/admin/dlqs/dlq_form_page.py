"""The page that adds a DLQ or changes its settings: form, preview and confirmation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.http import require_http_methods

from reprocessing import conf
from reprocessing.admin.dlqs import team_limits
from reprocessing.admin.dlqs.dlq_form import COLUMNS, DlqForm
from reprocessing.admin.dlqs.dlq_url_form import UrlForm
from reprocessing.admin.messages.show_payload import may_reveal
from reprocessing.admin.site import preview_form, visible_rows
from reprocessing.admin.site.confirmed_action import Done
from reprocessing.admin.site.preview import Preview, value_text
from reprocessing.admin.site.preview_form import FormPage
from reprocessing.domain.errors import QueueUnreachable
from reprocessing.models import DeadLetterQueue
from reprocessing.models.dlq import Mode
from reprocessing.pipeline.configuration.export_text import export_part
from reprocessing.pipeline.configuration.proposed_state import proposed_state
from reprocessing.pipeline.dlqs import examine
from reprocessing.pipeline.dlqs.examine import Examination
from reprocessing.pipeline.dlqs.examine.reasons import REPORTED
from reprocessing.store.capture import capture_lease
from reprocessing.store.dlqs import automatic_redrive, dlq_proposal, registration
from reprocessing.store.proposed_changes import Difference

_LIST: Final = "admin:reprocessing_deadletterqueue_changelist"
_INTRO: Final = "The preview reads the attributes of the queues. It receives, sends and saves nothing."
ADD, CHANGE = "reprocessing.add_deadletterqueue", "reprocessing.change_deadletterqueue"


def page(request: HttpRequest, dlq: int | None = None) -> HttpResponse:
    """Show the form of a DLQ (`dlq`: its id; None: a new DLQ), then the preview; save after the confirmation."""
    every = DeadLetterQueue.objects.select_related("interval", "crontab")
    row, seen = visible_rows.row_or_404(request, every, dlq) if dlq else None, visible_rows.of(request)
    reveals = may_reveal(request)
    if row is None:
        visible_rows.require_all(request)
    begin = {name: request.GET[name] for name in ("name", "url") if name in request.GET}
    asked = FormPage(
        permission=CHANGE if row else ADD,
        title=f"Change {row.name}" if row else "Add a DLQ",
        intro=_INTRO if row else f"{_INTRO} Empty fields get the proposed values, which fit the queues.",
        button="Save" if row else "Add",
        back=reverse("admin:reprocessing_deadletterqueue_change", args=[row.pk]) if row else reverse(_LIST),
        about=row.name if row else "Dead-letter queues",
        make=lambda data: DlqForm(seen, data, row, _settings(row) if row else _defaults(begin), reveals=reveals),
        make_preview=_make_preview,
        write=_write,
    )
    is_whole = row is not None or "by" in request.GET or request.POST.get("do") in {"look", "write"}
    if is_whole:
        return preview_form.page(request, asked)
    return require_http_methods(["GET", "HEAD", "POST"])(_first_step)(request, asked)


def _first_step(request: HttpRequest, asked: FormPage) -> HttpResponse:
    """Ask for the queue's URL. When the person has entered it, show the whole form with proposed values and a preview.

    If SQS does not answer, the form has only the URL, the role and a proposed name, and the person fills in the rest.
    """
    if not request.user.has_perm(asked.permission):
        raise PermissionDenied
    form = UrlForm(request.POST if request.method == "POST" else None, initial=request.GET.dict())
    if not form.is_valid():
        context = {**admin.site.each_context(request), "title": asked.title, "form": form, "back": asked.back}
        return TemplateResponse(request, "reprocessing/admin/dlq_url.html", context)
    try:
        return preview_form.show_preview(request, asked, form.found())
    except QueueUnreachable:  # the preview asks SQS again, and shows why SQS does not answer
        return preview_form.show_preview(request, asked, form.typed())


def _make_preview(form: DlqForm) -> Preview:
    found = examine.dlq(form.wanted(), conf.current())
    observed = found.observed
    lifts = observed.row is not None and registration.lifts_approvals(observed.row, found.proposal.dlq)
    changes = dlq_proposal.differences(found.proposal)
    return Preview(
        about={observed.row.pk: None} if observed.row and lifts else {},
        payload=found,
        changes=changes,
        findings=[*found.findings, *team_limits.shared_targets(form.seen, found)],
        passed=found.passed,
        new=observed.row is None,
        why=None if observed.row else found.why,
        reported=REPORTED,
        proposed={} if observed.row else _proposed(changes),
        yaml="" if found.is_refused else export_part(proposed_state(found)),
        facts=(
            ("Queue", observed.dlq.facts.arn),
            ("Messages", f"about {observed.depth.visible:,} visible, {observed.depth.in_flight:,} in flight"),
            ("Source queues", ", ".join(seen.address.name for seen in observed.sources.values()) or "none known"),
        ),
    )


def _proposed(changes: Sequence[Difference]) -> dict[str, str]:
    """Return the values that a new DLQ gets for empty form fields: for each field name, the value as text.

    A field can set a value of several targets. If their values differ, the text lists each target with its value.
    """
    values: dict[str, dict[str, str]] = {}
    for change in changes:
        if change.after not in (None, "", []):
            values.setdefault(change.field, {})[change.name] = value_text(change.after)
    return {
        field: ", ".join(sorted(set(given.values())))
        if len(set(given.values())) == 1
        else ", ".join(f"{name}: {value}" for name, value in given.items())
        for field, given in values.items()
    }


def _write(preview: Preview, by: str, reason: str) -> Done:
    found: Examination = preview.payload
    name = found.proposal.name
    registration.register(found.proposal, by=by, reason=reason, seen=preview.changes)
    row = DeadLetterQueue.objects.get(name=name)
    capture_lease.note_depth(row.pk, visible=found.observed.depth.visible, in_flight=found.observed.depth.in_flight)
    sentence = f"{name} is {'added' if preview.new else 'changed'}."
    if any(change.field == "mode" for change in preview.changes):
        is_manual = row.mode == Mode.MANUAL
        told = _of_manual(row, preview) if is_manual else automatic_redrive.describe_redrive(name, by_hand="")
        sentence = format_html("{} {}", sentence, told)
    return Done(reverse("admin:reprocessing_deadletterqueue_change", args=[row.pk]), sentence)


def _of_manual(row: DeadLetterQueue, preview: Preview) -> str:
    """Return a sentence for a DLQ that was set to mode manual: whether messages are still redriven without a person.

    The automatic run of a DLQ still sends the messages that it has. The sentence then has a link to this run.
    """
    was_automatic = any(change.field == "mode" and change.before == Mode.AUTOMATIC for change in preview.changes)
    new = "New messages are no longer redriven automatically" if was_automatic else "Nothing is redriven automatically"
    if (run := automatic_redrive.still_sending(row.name)) is None:
        return f"{'Nothing is redriven yet' if preview.new else new}: plan a run."
    return format_html(
        '{}. The run {} still redrives the {} that it has. To stop this, <a href="{}">pause the run</a>.',
        new, run.name, run.unfinished, reverse("admin:reprocessing_run_change", args=[run.id]),
    )  # fmt: skip


def _defaults(begin: dict[str, str]) -> dict[str, Any]:
    new = DeadLetterQueue()
    plain = (
        "mode", "missing_key", "stale", "when_parked", "max_attempts", "backoff_base", "backoff_cap", "backoff_jitter",
        "wave_success", "give_up_after",
    )  # fmt: skip
    return {
        **{name: getattr(new, name) for name in plain},
        "waves": "yes", "at_once": "no", "held_copies_limit": conf.current().held_copies_limit, **begin,
    }  # fmt: skip


def _settings(row: DeadLetterQueue) -> dict[str, Any]:
    found = {name: getattr(row, name) for name in COLUMNS}
    every = row.interval and int(dlq_proposal.interval_seconds(row.interval))
    cron = row.crontab
    return {
        **found,
        **{name: "yes" if found[name] else "no" for name in ("waves", "at_once")},
        "public_fields": "\n".join(row.public_fields),
        "masked_fields": "\n".join(row.masked_fields),
        "search_fields": "\n".join(row.search_fields),
        "teams": sorted(row.teams.values_list("name", flat=True)),
        "interval": every,
        "crontab": cron and f"{cron.minute} {cron.hour} {cron.day_of_month} {cron.month_of_year} {cron.day_of_week}",
    }
