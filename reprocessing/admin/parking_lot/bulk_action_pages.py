"""The list of bulk actions, and the page of a bulk action: progress, skipped messages, and abort."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any, Final

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_safe

from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.admin.parking_lot import message_list
from reprocessing.admin.parking_lot.decision import DecisionKind
from reprocessing.admin.search.search_rights import may_read_filter
from reprocessing.admin.site import visible_rows
from reprocessing.admin.site.confirmed_action import reason_field
from reprocessing.admin.site.keyset_list import keyset_page
from reprocessing.admin.site.readonly_admin import ReadOnlyAdmin
from reprocessing.admin.site.session_end import post_only
from reprocessing.domain.lifecycle import OPEN_STATES, LetterState
from reprocessing.models import BulkAction, BulkActionKind, BulkActionState, Letter, Target
from reprocessing.models.safety import BreakerState
from reprocessing.store.ordering import lanes
from reprocessing.store.parking_lot import bulk_actions
from reprocessing.store.runs import released_into_runs
from reprocessing.store.safety.breaker_status import breaker_statuses
from reprocessing.store.search import late_letters, stored_filters

#: Max bulk actions on one page.
SHOWN: Final = 50
#: Of a release, the states of so many messages are read, the last ones.
_FOLLOWED: Final = 10_000
#: What people read about released messages, by their states, in this order.
_AFTERWARDS: Final = {
    LetterState.CAPTURED: "Captured, in no run", LetterState.WAITING: "Queued", LetterState.SENDING: "Sending",
    LetterState.AWAITING: "Awaiting outcome", LetterState.DELIVERED: "Delivered",
    LetterState.PARKED: "Parked again", LetterState.DUPLICATE: "Duplicate", LetterState.DISCARDED: "Discarded",
}  # fmt: skip
#: If no worker has started a bulk action after this time, its page says that workers may be missing.
_UNUSUAL: Final = timedelta(seconds=15)
#: What a bulk action did to the messages that it changed.
_DID: Final = {
    BulkActionKind.RELEASE: "Released", BulkActionKind.DISCARD: "Discarded", BulkActionKind.RESTORE: "Restored",
    BulkActionKind.ASSIGN: "Assigned", BulkActionKind.NOTE: "Got the note", BulkActionKind.EDIT: "Edited",
}  # fmt: skip


class AbortBulkActionForm(forms.Form):
    """The form that asks for the reason of aborting a bulk action."""

    reason = reason_field(rows=2)


@admin.register(BulkAction)
class BulkActions(ReadOnlyAdmin):
    """The list and the pages of bulk actions, with their progress."""

    @method_decorator(require_safe)
    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the list of bulk actions, the newest first."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        rows, after = keyset_page(visible_rows.rows(request, BulkAction.objects), request.GET.get("after", ""), SHOWN)
        context = self.admin_site.each_context(request) | {
            "title": "Bulk actions",
            "operations": [(operation, no_longer_matching(operation)) for operation in rows],
            "next": after,
        }
        return TemplateResponse(request, "reprocessing/admin/bulk_actions.html", context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the page of one bulk action."""
        if request.method not in {"GET", "HEAD"}:
            raise PermissionDenied
        return self._page(request, object_id)

    def get_urls(self) -> list[URLPattern]:
        """Return Django's URLs, the URL that aborts a bulk action, and the URL from which an open page refreshes."""
        own = (("progress", require_safe(self._progress)), ("abort", post_only(self._abort)))
        paths = [
            path(f"<int:operation>/{name}", self.admin_site.admin_view(view), name=f"operation_{name}")
            for name, view in own
        ]
        return [*paths, *super().get_urls()]

    def _page(self, request: HttpRequest, object_id: str, form: AbortBulkActionForm | None = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        action = visible_rows.row_or_404(request, BulkAction.objects, object_id)
        criteria = stored_filters.read_filter(action.filter)
        takes, missing = _takes(action)
        shows_text = may_read_filter(request, criteria)
        context = self.admin_site.each_context(request) | {
            "title": f"{_label(action)} messages",
            "progress": progress_of(action),
            "sentence": visible(
                criteria.sentence(
                    message_list.names_of(request, criteria),
                    covered=not shows_text,
                    single=action.asked == 1,
                )
            ),
            "arguments": list(_arguments(request, action)),
            "letters": message_list.address_of(criteria) if shows_text else "",
            "into": _into(action),
            "afterwards": afterwards(action),
            "form": form or AbortBulkActionForm(),
            "closed": "" if request.user.has_perm(takes) else missing,
        }
        return TemplateResponse(request, "reprocessing/admin/bulk_action.html", context)

    def _progress(self, request: HttpRequest, operation: int) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        action = visible_rows.row_or_404(request, BulkAction.objects, operation)
        ours = {
            "progress": progress_of(action), "into": _into(action), "afterwards": afterwards(action), "is_part": True,
        }  # fmt: skip
        context = self.admin_site.each_context(request) | ours
        return TemplateResponse(request, "reprocessing/admin/bulk_action_progress.html", context)

    def _abort(self, request: HttpRequest, operation: int) -> HttpResponse:
        action = visible_rows.row_or_404(request, BulkAction.objects, operation)
        if not (self.has_view_permission(request) and request.user.has_perm(_takes(action)[0])):
            raise PermissionDenied
        form = AbortBulkActionForm(request.POST)
        if not form.is_valid():
            return self._page(request, str(operation), form)
        if bulk_actions.abort(action.pk, by=request.user.get_username(), why=form.cleaned_data["reason"]):
            messages.success(
                request, "Aborted. Messages that were changed already stay changed. All others stay as they are."
            )
        else:
            action.refresh_from_db()
            how = (
                f"{action.aborted_by} aborted it before you ({action.why})"
                if action.aborted_by
                else "it is done already"
            )
            messages.warning(request, f"Nothing was changed: {how}.")
        return HttpResponseRedirect(reverse("admin:reprocessing_bulkaction_change", args=[action.pk]))


def _takes(action: BulkAction) -> tuple[str, str]:
    """Return the permission that the bulk action needs, and a text for people who lack the permission."""
    if action.act == BulkActionKind.EDIT:
        return "reprocessing.edit_parkedletter", "it needs the permission to edit messages"
    kind = DecisionKind(action.act)
    return kind.permission, kind.takes


def _label(action: BulkAction) -> str:
    return "Edit" if action.act == BulkActionKind.EDIT else DecisionKind(action.act).label


def no_longer_matching(action: BulkAction) -> int:
    """Return how many messages no longer matched the filter when a worker came to them; 0 until the action ends."""
    return max(0, action.asked - action.done - action.letters_skipped) if action.state == BulkActionState.DONE else 0


def progress_of(action: BulkAction) -> dict[str, Any]:
    """Return the progress of a bulk action as template context.

    Two numbers are about messages that the bulk action does not change. `gone`: messages that no longer matched the
    filter. `late`: messages that match the filter, but were parked after the bulk action began.
    """
    passed, runs = action.done + action.letters_skipped, action.state == BulkActionState.RUNNING
    return {
        "did": _DID[BulkActionKind(action.act)],
        "one": action, "passed": passed, "most": max(action.asked, passed, 1),
        "to_go": max(0, action.asked - passed) if runs else 0, "gone": no_longer_matching(action),
        "refusals": _refusals(action), "late": _late(action), "waits": runs and action.cursor == 0 and _waits(action),
        "runs": runs,
    }  # fmt: skip


def _waits(action: BulkAction) -> bool:
    """Return whether the bulk action began over 15 s ago. If it has no progress by then, workers may be missing."""
    return lanes.database_now() - action.started_at > _UNUSUAL


def _releases(action: BulkAction) -> bool:
    return action.act == BulkActionKind.RELEASE or bool(action.arguments.get("release"))


def _into(action: BulkAction) -> list[released_into_runs.RunReleasedInto]:
    if not _releases(action):
        return []
    return released_into_runs.runs_of_bulk_action(action.pk, since=action.asked_at, most=SHOWN)


def afterwards(action: BulkAction) -> dict[str, Any]:
    """Return, as template context, the present states of the messages that a bulk action released.

    The result is empty if the bulk action releases no messages. `breakers`: the circuit breakers that keep the messages
    from being sent, with the time of their next canary. `failed`: how many messages
    were sent after the release, and are not delivered.
    """
    if not _releases(action) or not action.done:
        return {}
    found = {row.state: row for row in released_into_runs.states_of_released(action.pk, most=_FOLLOWED)}
    targets = {target for row in found.values() for target in row.targets or ()}
    now = lanes.database_now()
    return {
        "states": [(label, found[state].letters) for state, label in _AFTERWARDS.items() if state in found],
        "failed": sum(row.failed for row in found.values()),
        "is_open": not found.keys().isdisjoint(OPEN_STATES),
        "breakers": [
            (visible(breaker.name), breaker.state.replace("_", "-"), visible(breaker.why), breaker.next_canary(now))
            for breaker in (breaker_statuses(targets) if targets else ())
            if breaker.state != BreakerState.CLOSED
        ],
        "most": _FOLLOWED if action.done > _FOLLOWED else 0,
    }


def _refusals(action: BulkAction) -> list[tuple[str, int, str]]:
    """Return each reason why messages were skipped, the number of messages with this reason, and one message id."""
    counts = Counter(action.refusals.values())
    first = {why: int(letter) for letter, why in reversed(action.refusals.items())}
    names = dict(Letter.objects.filter(pk__in=first.values()).values_list("pk", "message_id"))
    return [(why, n, visible(names.get(first[why], ""))) for why, n in counts.most_common()]


def _late(action: BulkAction) -> str:
    """Return, as text, how many messages match the filter, but were parked after the bulk action began.

    The bulk action does not change these messages. Messages that it released, and that were parked again, are not
    counted. Empty: there is no such message, or counting would be slow.
    """
    criteria = stored_filters.read_filter(action.filter)
    if criteria.states != (LetterState.PARKED.value,) or criteria.reads_bodies:
        return ""
    late = late_letters.count_late(action.pk, criteria, asked_at=action.asked_at)
    n = min(late.n, late_letters.MAX_LATE_COUNT)
    return f"{n:,}{'+' if late.is_lower_bound else ''}" if n else ""


def _arguments(request: HttpRequest, action: BulkAction) -> list[tuple[str, str]]:
    """Return the options of the bulk action for display, as labels and values: due time, target, assignee, changes."""
    pairs = []
    if due := action.arguments.get("due"):
        pairs.append(("Not before", f"{due} (UTC)"))
    if target := action.arguments.get("target"):
        row = visible_rows.rows(request, Target.objects).filter(pk=target).first()
        pairs.append(("Target", visible(str(row or f"target {target}"))))
    if "to" in action.arguments:
        pairs.append(("Assigned to", visible(action.arguments["to"] or "nobody")))
    if "operations" in action.arguments:
        pairs.append(("Changes in each body", visible("; ".join(action.arguments["operations"]))))
        pairs.append(("Afterwards", "released" if action.arguments.get("release") else "parked"))
    return pairs
