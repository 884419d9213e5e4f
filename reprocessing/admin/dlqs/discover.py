"""The list of DLQs that discovery found in AWS, and the pages that add or ignore selected DLQs.

The list shows the results of the last discovery, and sends no requests to AWS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_safe

from reprocessing import conf
from reprocessing.admin.dlqs.dlq_form_page import ADD
from reprocessing.admin.site import confirmed_action
from reprocessing.admin.site.confirmed_action import Answer, Done, NotDone, Question
from reprocessing.admin.site.preview import digest
from reprocessing.admin.site.readonly_admin import Page, ReadOnlyAdmin
from reprocessing.admin.site.visible_rows import is_id, require_all
from reprocessing.domain.dlqs.expiry_risk import Risk
from reprocessing.domain.errors import RedriveError
from reprocessing.domain.notifications.text import duration
from reprocessing.models import DiscoveredQueue, Policy
from reprocessing.pipeline.dlqs import adopt
from reprocessing.pipeline.dlqs.adopt import Adoption, AdoptionSettings
from reprocessing.store.dlqs import discovered_queues, discovery_scopes
from reprocessing.store.dlqs.discovered_queues import DiscoveredDlq
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.rights.visible_dlqs import ALL_DLQS

#: Max rows of a page, and max DLQs that one request adds. To add a DLQ takes several calls to AWS.
MOST: Final = 50
_LIST: Final = "admin:reprocessing_discoveredqueue_changelist"
_STATUSES: Final = ("new", "watched", "ignored")


@dataclass(frozen=True, slots=True)
class DlqRow:
    """A row of the list: a discovered DLQ, the risk that SQS deletes its messages, and names of its source queues."""

    dlq: DiscoveredDlq
    risk: Risk
    sources: list[str]

    @property
    def oldest(self) -> str:
        """Return how old the oldest message was when discovery read the queue, as text."""
        return "unknown" if self.dlq.oldest_age is None else duration(self.dlq.oldest_age)

    @property
    def retention(self) -> str:
        """Return the retention period of the queue, after which SQS deletes a message, as text."""
        return "unknown" if self.dlq.retention is None else duration(self.dlq.retention)


@admin.register(DiscoveredQueue)
class DiscoverAdmin(ReadOnlyAdmin):
    """The list of discovered DLQs, and the pages that add or ignore them."""

    def has_view_permission(self, request: HttpRequest, obj: DiscoveredQueue | None = None) -> bool:
        """Return whether this person may see discovered DLQs, which needs the permission to see all DLQs."""
        return request.user.has_perm(ALL_DLQS) and super().has_view_permission(request, obj)

    @method_decorator(require_safe)
    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show a page of the DLQs that discovery found, the most urgent first."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        found, now, status = discovered_queues.list_dlqs(), database_now(), request.GET.get("status", "")
        rows = [DlqRow(dlq, dlq.risk(now), [source.words for source in dlq.sources]) for dlq in found]
        shown = [row for row in rows if status not in _STATUSES or row.dlq.status == status]
        shown.sort(key=lambda row: (row.dlq.status != "new", row.risk.rank, row.dlq.arn))
        context = self.admin_site.each_context(request) | {
            "title": "Discover",
            "rows": Paginator(shown, MOST).get_page(request.GET.get("page")),
            "counts": [(name, sum(row.dlq.status == name for row in rows)) for name in _STATUSES],
            "status": status,
            "scopes": [(row, row.scope.words) for row in discovery_scopes.all_scopes()],
            "may_add": request.user.has_perm(ADD),
            "policies": list(Policy.objects.order_by("name").values_list("name", flat=True)),
        }
        return TemplateResponse(request, "reprocessing/admin/discover.html", context)

    def pages(self) -> Iterable[Page]:
        """Return the pages that add, ignore or stop ignoring DLQs, and the page that starts a new discovery."""
        yield "add-selected", _page, "adopt", {"action": "adopt"}
        yield "ignore-selected", _page, "ignore", {"action": "ignore"}
        yield "unignore-selected", _page, "unignore", {"action": "unignore"}
        yield "scan", _scan_page, "scan", {}


def _page(request: HttpRequest, action: str) -> HttpResponse:
    require_all(request)
    ids = set(request.GET.getlist("queue"))
    if not all(map(is_id, ids)):
        raise Http404
    dlqs = [dlq for dlq in discovered_queues.list_dlqs() if str(dlq.id) in ids]
    if len(ids) > MOST:
        question, act = partial(_refuse_question, len(ids)), partial(_refuse, len(ids))
    elif action == "adopt":
        settings = AdoptionSettings(policy=request.GET.get("policy", ""))
        question, act = partial(_adopt_question, dlqs, settings), partial(_adopt, dlqs, settings)
    else:
        ignored = action == "ignore"
        question, act = partial(_ignore_question, dlqs, ignored=ignored), partial(_ignore, dlqs, ignored=ignored)
    return confirmed_action.page(request, permission=ADD, question=question, act=act)


def _too_many(selected: int) -> str:
    return f"{selected:,} DLQs are selected, and one request takes at most {MOST}. Select fewer DLQs in the list."


def _refuse_question(selected: int) -> Question:
    return _question("Too many DLQs", "", (), selected, _too_many(selected))


def _refuse(selected: int, _given: Mapping[str, Any], _by: str) -> Answer:
    return NotDone(_too_many(selected))


def _question(title: str, button: str, says: Sequence[str], seen: object, idle: str = "") -> Question:
    back = reverse(_LIST)
    return Question(title, button, tuple(says), seen=digest(seen), back=back, about="Discover", idle=idle)


def _adopt_question(dlqs: Sequence[DiscoveredDlq], settings: AdoptionSettings) -> Question:
    adoptions = list(adopt.examine_adoptions(dlqs, conf.current(), settings))
    addable = sum(not adoption.error for adoption in adoptions)
    says = [_effect(adoption) for adoption in adoptions]
    idle = "" if addable else " ".join(says) or "Select at least one DLQ."
    named = f", with the policy {settings.policy}" if settings.policy else ""
    return _question(f"Add {_counted(addable)} in mode observe{named}", "Add", says, _seen(adoptions), idle)


def _effect(adoption: Adoption) -> str:
    dlq = adoption.queue
    name = f"{dlq.name} ({dlq.account}, {dlq.region})"
    if adoption.error:
        return f"{name} cannot be added. {adoption.error}"
    findings = [finding.what for finding in adoption.examination.findings] if adoption.examination else []
    return " ".join([f"{name} is added as {adoption.name}. Nothing is received or sent.", *findings])


def _seen(adoptions: Sequence[Adoption]) -> object:
    return [
        [
            adoption.queue.arn,
            adoption.name,
            [[change.field, change.after] for change in adoption.changes],
            adoption.error,
        ]
        for adoption in adoptions
    ]


def _adopt(dlqs: Sequence[DiscoveredDlq], settings: AdoptionSettings, given: Mapping[str, Any], by: str) -> Answer:
    adoptions = list(adopt.examine_adoptions(dlqs, conf.current(), settings))
    if digest(_seen(adoptions)) != given["seen"]:
        return NotDone("The effect is no longer what you saw. Read it again below.")
    added: list[str] = []
    try:
        for adoption in adoptions:
            if not adoption.error:
                adopt.adopt(adoption, by=by, reason=given["reason"])
                added.append(adoption.name)
    except RedriveError as error:
        return NotDone(f"{error} Already added: {', '.join(added) or 'none'}.")
    return Done(reverse(_LIST), f"Added in mode observe: {', '.join(added)}.")


def _ignore_question(dlqs: Sequence[DiscoveredDlq], *, ignored: bool) -> Question:
    changing = [dlq for dlq in dlqs if (dlq.ignored_at is None) == ignored]
    button = "Ignore" if ignored else "Stop ignoring"
    effect = "is not reported again as new." if ignored else "is listed as new again."
    says = [f"{dlq.name} ({dlq.account}, {dlq.region}) {effect}" for dlq in changing]
    nothing = "All selected DLQs are ignored already." if ignored else "No selected DLQ is ignored."
    idle = "" if changing else nothing
    return _question(f"{button} {_counted(len(changing))}", button, says, [dlq.arn for dlq in changing], idle)


def _ignore(dlqs: Sequence[DiscoveredDlq], given: Mapping[str, Any], by: str, *, ignored: bool) -> Answer:
    changing = [dlq.arn for dlq in dlqs if (dlq.ignored_at is None) == ignored]
    if digest(changing) != given["seen"]:
        return NotDone("Somebody else has changed these DLQs. Read the effect again below.")
    changed = discovered_queues.set_ignored(changing, ignored=ignored, by=by, reason=given["reason"])
    return Done(reverse(_LIST), f"{'Ignored' if ignored else 'No longer ignored'}: {_counted(changed)}.")


def _counted(dlqs: int) -> str:
    return f"{dlqs} DLQ{'' if dlqs == 1 else 's'}"


def _scan_page(request: HttpRequest) -> HttpResponse:
    require_all(request)
    words = sorted(row.scope.words for row in discovery_scopes.all_scopes())

    def question() -> Question:
        idle = "" if words else "No account was scanned yet. To scan one, run: manage.py discover_dlqs"
        if not conf.current().discover_every:
            idle = "Workers do not scan, because REDRIVE_DISCOVER_EVERY is 0. Run: manage.py discover_dlqs"
        says = ("A worker reads the queues of these accounts and regions. It receives and sends no messages.", *words)
        title = "Scan again" if words else "Scan"
        return _question(title, title, says, words, idle)

    def act(given: Mapping[str, Any], by: str) -> Answer:
        discovery_scopes.request_scans(by=by, reason=str(given["reason"]))
        return Done(reverse(_LIST), "A worker scans the accounts and regions below. Reload this page in a minute.")

    return confirmed_action.page(request, permission=ADD, question=question, act=act)
