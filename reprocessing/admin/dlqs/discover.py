"""The page of discovered DLQs, and the pages that add or ignore the ticked DLQs. The list is read from the database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_safe

from reprocessing import conf
from reprocessing.admin.dlqs.dlq_form_page import ADD
from reprocessing.admin.site import confirmed_action
from reprocessing.admin.site.confirmed_action import Answer, Done, NotDone, Question
from reprocessing.admin.site.preview_form import digest
from reprocessing.admin.site.readonly_admin import Page, ReadOnlyAdmin
from reprocessing.admin.site.visible_rows import is_id, require_all
from reprocessing.domain.dlqs.discovery import FailureSource
from reprocessing.domain.dlqs.expiry_risk import Risk
from reprocessing.domain.errors import RedriveError
from reprocessing.domain.message.arn import resource_name
from reprocessing.domain.notifications.text import duration
from reprocessing.models import DiscoveredQueue
from reprocessing.pipeline.dlqs import adopt
from reprocessing.pipeline.dlqs.adopt import Adoption
from reprocessing.store.dlqs import discovered_queues, discovery_scopes
from reprocessing.store.dlqs.discovered_queues import DiscoveredDlq
from reprocessing.store.dlqs.visible_dlqs import ALL_DLQS
from reprocessing.store.ordering.lanes import database_now

#: Max DLQs that one request adds: each takes some calls to AWS.
MOST: Final = 25
_LIST: Final = "admin:reprocessing_discoveredqueue_changelist"
_STATUSES: Final = ("new", "watched", "ignored")


@dataclass(frozen=True, slots=True)
class DlqRow:
    """A row of the page."""

    dlq: DiscoveredDlq
    risk: Risk
    sources: list[str]

    @property
    def oldest(self) -> str:
        """Return the age of the oldest message when the queue was read."""
        return "unknown" if self.dlq.oldest_age is None else duration(self.dlq.oldest_age)

    @property
    def retention(self) -> str:
        """Return the retention period."""
        return "unknown" if self.dlq.retention is None else duration(self.dlq.retention)


@admin.register(DiscoveredQueue)
class DiscoverAdmin(ReadOnlyAdmin):
    """The list of discovered DLQs, and the pages that act on them."""

    def has_view_permission(self, request: HttpRequest, obj: DiscoveredQueue | None = None) -> bool:
        """Return whether this person sees the queues of all teams."""
        return request.user.has_perm(ALL_DLQS) and super().has_view_permission(request, obj)

    @method_decorator(require_safe)
    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show all DLQs that discovery found, the most urgent first."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        found, now, status = discovered_queues.list_dlqs(), database_now(), request.GET.get("status", "")
        rows = [DlqRow(dlq, dlq.risk(now), [_source(dlq, source) for source in dlq.sources]) for dlq in found]
        shown = [row for row in rows if status not in _STATUSES or row.dlq.status == status]
        context = self.admin_site.each_context(request) | {
            "title": "Discover",
            "rows": sorted(shown, key=lambda row: (row.dlq.status != "new", row.risk.rank, row.dlq.arn)),
            "counts": [(name, sum(row.dlq.status == name for row in rows)) for name in _STATUSES],
            "status": status,
            "scopes": [(row, row.scope.words) for row in discovery_scopes.all_scopes()],
            "may_add": request.user.has_perm(ADD),
            "most": MOST,
        }
        return TemplateResponse(request, "reprocessing/admin/discover.html", context)

    def pages(self) -> Iterable[Page]:
        """Return the pages that add or ignore DLQs, and the page that starts the next look."""
        yield "add-ticked", _page, "adopt", {"deed": "adopt"}
        yield "ignore-ticked", _page, "ignore", {"deed": "ignore"}
        yield "unignore-ticked", _page, "unignore", {"deed": "unignore"}
        yield "look", _look_page, "look", {}


def _page(request: HttpRequest, deed: str) -> HttpResponse:
    require_all(request)
    queues = _ticked(request)
    asks, does = (_ask_adopt, _adopt) if deed == "adopt" else (partial(_ask_ignore, deed), partial(_ignore, deed))
    return confirmed_action.page(request, permission=ADD, question=partial(asks, queues), act=partial(does, queues))


def _ticked(request: HttpRequest) -> list[DiscoveredDlq]:
    ids = request.GET.getlist("queue")
    if len(ids) > MOST or not all(map(is_id, ids)):
        raise Http404
    return [dlq for dlq in discovered_queues.list_dlqs() if str(dlq.id) in ids]


def _question(title: str, button: str, says: Sequence[str], seen: object, idle: str = "") -> Question:
    back = reverse(_LIST)
    return Question(title, button, tuple(says), seen=digest(seen), back=back, about="Discover", idle=idle)


def _ask_adopt(queues: Sequence[DiscoveredDlq]) -> Question:
    found = list(adopt.examine_adoptions(queues, conf.current()))
    addable = [one for one in found if not one.trouble]
    says = [f"{one.queue.name} ({one.queue.account}, {one.queue.region}): {_effect(one)}" for one in found]
    idle = "" if addable else " ".join(says) or "Tick at least one DLQ."
    return _question(f"Add {len(addable)} DLQs in mode observe", "Add", says, _seen(found), idle)


def _effect(one: Adoption) -> str:
    if one.trouble:
        return f"cannot be added. {one.trouble}"
    findings = [finding.what for finding in one.examination.findings] if one.examination else []
    return " ".join([f"is added as {one.name}. Nothing is received or sent.", *findings])


def _seen(found: Sequence[Adoption]) -> object:
    return [[one.queue.arn, one.name, [[it.field, it.after] for it in one.changes], one.trouble] for one in found]


def _adopt(queues: Sequence[DiscoveredDlq], given: Mapping[str, Any], by: str) -> Answer:
    found = list(adopt.examine_adoptions(queues, conf.current()))
    if digest(_seen(found)) != given["seen"]:
        return NotDone("The effect is no longer what you saw. Read it again below.")
    added: list[str] = []
    try:
        for one in found:
            if not one.trouble:
                adopt.adopt(one, by=by, reason=given["reason"])
                added.append(one.name)
    except RedriveError as error:
        return NotDone(f"{error} Added before: {', '.join(added) or 'none'}.")
    return Done(reverse(_LIST), f"Added in mode observe: {', '.join(added)}.")


def _ask_ignore(deed: str, queues: Sequence[DiscoveredDlq]) -> Question:
    ignores = deed == "ignore"
    some = [dlq for dlq in queues if (dlq.ignored_at is None) == ignores]
    words = "is not reported again as new." if ignores else "is reported as new again."
    idle = "" if some else f"None of the ticked DLQs is {'not ' if ignores else ''}ignored."
    title = f"{'Ignore' if ignores else 'Stop ignoring'} {len(some)} DLQs"
    says = [f"{dlq.name} ({dlq.account}, {dlq.region}) {words}" for dlq in some]
    return _question(title, "Ignore" if ignores else "Stop ignoring", says, [dlq.arn for dlq in some], idle)


def _ignore(deed: str, queues: Sequence[DiscoveredDlq], given: Mapping[str, Any], by: str) -> Answer:
    ignores = deed == "ignore"
    some = [dlq.arn for dlq in queues if (dlq.ignored_at is None) == ignores]
    if digest(some) != given["seen"]:
        return NotDone("Somebody else has changed these DLQs. Read the effect again below.")
    changed = discovered_queues.set_ignored(some, ignored=ignores, by=by, reason=given["reason"])
    return Done(reverse(_LIST), f"{changed} DLQs are {'ignored' if ignores else 'no longer ignored'}.")


def _look_page(request: HttpRequest) -> HttpResponse:
    require_all(request)
    words = sorted(row.scope.words for row in discovery_scopes.all_scopes())

    def question() -> Question:
        idle = "" if words else "Nothing is discovered yet: manage.py discover_dlqs looks at a region of an account."
        says = ("A worker reads the queues of these accounts and regions. It receives and sends no messages.", *words)
        return _question("Look again", "Look again", says, words, idle)

    def act(given: Mapping[str, Any], by: str) -> Answer:
        many = discovery_scopes.look_soon(by=by, reason=str(given["reason"]))
        return Done(reverse(_LIST), f"A worker looks at {many} accounts and regions. Reload this page in a minute.")

    return confirmed_action.page(request, permission=ADD, question=question, act=act)


def _source(dlq: DiscoveredDlq, source: FailureSource) -> str:
    if source.source_arn == dlq.arn:
        return "itself"
    name = resource_name(source.source_arn)
    through = f" (rule {resource_name(source.through)})" if source.through else ""
    return name if source.kind == "queue" else f"{source.kind} {name}{through}"
