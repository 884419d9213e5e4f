"""The pages of the parking lot: the messages that need a person, and the pages that confirm decisions about them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from uuid import uuid4

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from reprocessing.admin.approvals import requested
from reprocessing.admin.messages.listed_messages import Neighbours
from reprocessing.admin.messages.messages import MessagesAdmin, action_of
from reprocessing.admin.parking_lot import (
    affected_messages,
    bulk_edit,
    export_page,
    group_by,
    message_list,
)
from reprocessing.admin.parking_lot.confirm_forms import DecisionForm, filter_of_query
from reprocessing.admin.parking_lot.decision import DecisionKind, assignees, decide, pack_messages
from reprocessing.admin.runs import run_links
from reprocessing.admin.search import saved_filter_pages
from reprocessing.admin.search.saved_filter_pages import SavingPage
from reprocessing.admin.site import labels, visible_rows
from reprocessing.admin.site.session_end import post_only
from reprocessing.domain.approvals.requested_action import ApprovalNeeded
from reprocessing.domain.errors import InvalidFilter, SelectionChanged
from reprocessing.models import AuditAct, AuditEntry, BulkAction, DeadLetterQueue, Letter
from reprocessing.models.dlq import Mode
from reprocessing.models.letter import ParkedLetter
from reprocessing.models.parking_lot import BulkActionKind
from reprocessing.pipeline.parking_lot import start_bulk_action
from reprocessing.pipeline.parking_lot.act_on_parked import Reviewed
from reprocessing.store.ordering import lanes
from reprocessing.store.parking_lot import bulk_actions, filtered_letters
from reprocessing.store.safety import stops

_NAMED: Final = 20  #: after a decision, max skipped messages that the page names
_DONE: Final = {
    DecisionKind.RELEASE: "released", DecisionKind.DISCARD: "discarded",
    DecisionKind.RESTORE: "restored to the parking lot", DecisionKind.NOTE: "got the note",
}  # fmt: skip
#: Actions that leave a message's state unchanged, so that they never explain why another action skipped the message.
_NO_STATE_CHANGE: Final = frozenset({AuditAct.REVEALED, AuditAct.EXPORTED, AuditAct.NOTED, AuditAct.ASSIGNED})
#: Actions of `_NO_STATE_CHANGE` that do explain why a decision of the same kind skipped the message.
_OWN_ACTION: Final = {DecisionKind.NOTE: AuditAct.NOTED, DecisionKind.ASSIGN: AuditAct.ASSIGNED}


@admin.register(ParkedLetter)
class ParkingLot(MessagesAdmin):
    """The list and the pages of parked messages. Each decision needs a permission, a reason and a confirmation."""

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the list of parked messages, below the saved filters."""
        answer = message_list.page(request)
        if isinstance(answer, TemplateResponse) and answer.context_data is not None:
            found = answer.context_data
            criteria = None if found["refusal"] else found["criteria"]
            found |= saved_filter_pages.section_values(request, SavingPage.PARKING_LOT, found["query"], criteria)
        return answer

    def get_urls(self) -> list[URLPattern]:
        """Return the URLs of Django's pages, of the decisions, of the export, and of saved filters."""
        wrap = self.admin_site.admin_view
        view = wrap(post_only(self._decide))
        decisions = [path(kind, view, {"decision": kind}, f"parkedletter_{kind}") for kind in DecisionKind]
        saved = [
            path("save", wrap(saved_filter_pages.save), name="parkedletter_save"),
            path("unsave", wrap(saved_filter_pages.delete), name="parkedletter_unsave"),
        ]
        return [
            *decisions, *saved, path("export", wrap(export_page.page), name="parkedletter_export"),
            path("edit-all", wrap(bulk_edit.page), name="parkedletter_edit_all"),
            path("group-by", wrap(group_by.page), name="parkedletter_group_by"), *super().get_urls(),
        ]  # fmt: skip

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the page of a parked message. If the message is no longer parked, redirect to its general page."""
        if self.get_object(request, object_id) is None and object_id.isdecimal():
            left = visible_rows.rows(request, Letter.objects).filter(pk=object_id).first()
            if left is not None and self.has_view_permission(request):
                messages.info(
                    request, f"This message is no longer parked: it is {labels.state(left.state, left.presumed)}."
                )
                return HttpResponseRedirect(reverse("admin:reprocessing_letter_change", args=[left.pk]))
        return super().change_view(request, object_id, form_url, extra_context)

    def page_context(self, request: HttpRequest, letter: Letter) -> dict[str, Any]:
        """Return template values for the page of a message, with the actions that its state allows."""
        offered = [action_of(request, decision) for decision in DecisionKind if decision.state == letter.state]
        return super().page_context(request, letter) | {"actions": offered, "letters": pack_messages([letter])}

    def neighbours(self, request: HttpRequest, letter: Letter, query: QueryDict) -> Neighbours:
        """Return the ids of the messages before and after a message in the parking lot with this query."""
        return message_list.neighbours(request, letter, query)

    def _may(self, request: HttpRequest, decision: DecisionKind) -> bool:
        return request.user.has_perm(decision.permission) and self.has_view_permission(request)

    def _decide(self, request: HttpRequest, decision: DecisionKind) -> HttpResponse:
        if not self._may(request, decision):
            raise PermissionDenied
        how = request.POST.get("how", "")
        if "reason" not in request.POST:
            return self._first_page(request, decision, how)
        form = DecisionForm(request, decision, how, request.POST)
        if not form.is_valid():
            return self._page(request, decision, form)
        try:
            return (
                self._do(request, decision, form)
                if form.cleaned_data["letters"]
                else self._begin(request, decision, form)
            )
        except ApprovalNeeded as needed:
            address, sentence = requested.request_approval(request, needed, form.cleaned_data["reason"])
            messages.success(request, sentence)
            return HttpResponseRedirect(address)

    def _first_page(self, request: HttpRequest, decision: DecisionKind, how: str) -> HttpResponse:
        """Show the confirmation page, for the selected messages or for all that match the filter."""
        query = request.POST.get("query", "")
        asked: dict[str, Any] = {"query": query, "how": how}
        if request.POST.get("scope") == "all":
            asked["token"] = uuid4()
        else:
            asked["letters"] = request.POST.get("letters") or ",".join(request.POST.getlist("pick"))
            if not asked["letters"] and "scope" in request.POST:
                messages.warning(request, "Nothing was done: select messages, or choose all that match the filter.")
                return HttpResponseRedirect(_back(query))
            asked["assigned"] = assignees(affected_messages.seen_or_404(request, asked["letters"]))
        asked["opened"] = lanes.database_now().isoformat()
        return self._page(request, decision, DecisionForm(request, decision, how, initial=asked))

    def _do(self, request: HttpRequest, decision: DecisionKind, form: DecisionForm) -> HttpResponse:
        """Execute the decision for the messages in the form, except those that changed after the page was made."""
        found = form.cleaned_data
        affected_messages.require_visible(request, found["letters"])
        by = request.user.get_username()
        reviewed = decide(
            decision,
            found["letters"],
            by=by,
            reason=found["reason"],
            arguments=form.arguments,
            page_state=form.page_state,
        )
        done = _done(decision, form, len(reviewed.done))
        if decision is DecisionKind.RELEASE:
            done = run_links.with_runs(request, done, reviewed.done)
        _show_result(request, decision, done, reviewed)
        if decision is DecisionKind.RELEASE:
            _warn(request, Letter.objects.filter(pk__in=reviewed.done).values_list("dlq__name", flat=True))
        return HttpResponseRedirect(message_list.address_of(found["query"]))

    def _begin(self, request: HttpRequest, decision: DecisionKind, form: DecisionForm) -> HttpResponse:
        """Start a bulk action, which executes the decision for all messages that match the filter now."""
        found = form.cleaned_data
        token = found["token"]
        try:
            criteria = affected_messages.decidable(request, decision, found["query"])
            is_new = bulk_actions.create(
                token, BulkActionKind(decision.value), criteria, form.arguments, by=request.user.get_username(),
                reason=found["reason"], opened=found["opened"], previewed=found["previewed"] or 0,
            )  # fmt: skip
        except SelectionChanged as changed:
            return self._page(request, decision, form, changed=_why_changed(request, decision, form, changed.matching))
        except InvalidFilter as error:
            form.add_error("query", str(error))
            return self._page(request, decision, form)
        began = visible_rows.rows(request, BulkAction.objects).filter(token=token).first()
        if began is None:  # the token of another team's page
            raise Http404
        if not is_new:
            messages.warning(
                request,
                "No new bulk action was started: this page was submitted before, and started the bulk action below.",
            )
        elif decision is DecisionKind.RELEASE:
            _warn(request, {kind.dlq for kind in filtered_letters.counts_by_reason(criteria)})
        return HttpResponseRedirect(reverse("admin:reprocessing_bulkaction_change", args=[began.pk]))

    def _page(
        self, request: HttpRequest, decision: DecisionKind, form: DecisionForm, changed: str = ""
    ) -> HttpResponse:
        whole = bool(form["token"].value())
        kind = decision.state.value
        if whole and form.is_bound:
            form.reopen()
        about = (
            affected_messages.of_filter(request, decision, form)
            if whole
            else affected_messages.of_letters(request, decision, form)
        )
        form.preview(about["count"])
        notice = requested.notice(request, about.pop("about", {})) if decision.needs_approval else ""
        context = self.admin_site.each_context(request) | {
            "action": decision.value,
            "button": requested.BUTTON if notice else decision.label,
            "notice": notice,
            "action_url": f"admin:parkedletter_{decision}",
            "form": form,
            "opts": self.opts,
            "whole": whole,
            "changed": changed,
            "back": _back(str(form["query"].value() or "")),
            "title": f"{decision.label} a {kind} message"
            if about["count"] == 1
            else f"{decision.label} {kind} messages",
            "stopped": list(_stopped(dlq for dlq, _, _ in about.get("kinds", ())))
            if decision is DecisionKind.RELEASE
            else [],
            "automatic": _automatic(dlq for dlq, _, _ in about.get("kinds", ())),
            **about,
        }
        return TemplateResponse(request, "reprocessing/admin/decision.html", context)


def _back(query: str) -> str:
    """Return the URL of the list with the filter in `query`, or of the whole list if `query` is not valid."""
    try:
        return message_list.address_of(filter_of_query(query))
    except InvalidFilter:
        return reverse("admin:reprocessing_parkedletter_changelist")


def _why_changed(request: HttpRequest, decision: DecisionKind, form: DecisionForm, matching: int) -> str:
    found = form.cleaned_data
    criteria = affected_messages.decidable(request, decision, found["query"])
    return start_bulk_action.why_changed(
        BulkActionKind(decision.value),
        criteria,
        previewed=found["previewed"] or 0,
        matching=matching,
        since=found["opened"],
    )


def _stopped(dlqs: Iterable[str]) -> Iterable[str]:
    ends = "released messages stay queued until somebody resumes it."
    names = set(dlqs)
    if names and (all_ := stops.stop_of(None)):
        yield f'Everything is stopped by {all_.by} ("{all_.reason}"): {ends}'
    for dlq in DeadLetterQueue.objects.filter(name__in=names, stopped_at__isnull=False).order_by("name"):
        yield f'{dlq.name} is stopped by {dlq.stopped_by} ("{dlq.stop_reason}"): {ends}'


def _automatic(dlqs: Iterable[str]) -> bool:
    return DeadLetterQueue.objects.filter(name__in=set(dlqs), mode=Mode.AUTOMATIC).exists()


def _warn(request: HttpRequest, dlqs: Iterable[str]) -> None:
    for sentence in _stopped(dlqs):
        messages.warning(request, sentence)


def _done(decision: DecisionKind, form: DecisionForm, n: int) -> str:
    done = f"assigned to {form.cleaned_data['to'] or 'nobody'}" if decision is DecisionKind.ASSIGN else _DONE[decision]
    return f"{n:,} message{'' if n == 1 else 's'} {done}."


def _show_result(request: HttpRequest, decision: DecisionKind, done: str, reviewed: Reviewed) -> None:
    """Show what was done, and for each of the first 20 skipped messages the reason and the last action on it."""
    if reviewed.done:
        messages.success(request, done)
    else:
        messages.warning(request, "Nothing was done.")
    refused = dict(list(reviewed.refused.items())[:_NAMED])
    names = dict(Letter.objects.filter(pk__in=list(refused)).values_list("pk", "message_id"))
    moves = AuditEntry.objects.filter(letter__in=list(refused)).exclude(
        act__in=_NO_STATE_CHANGE - {_OWN_ACTION.get(decision)}
    )
    last = {move.letter_id: move for move in moves.order_by("at", "id")}
    for letter, why in refused.items():
        who = (
            f" Last action: {move.act} by {move.by}, {move.at:%H:%M:%S} UTC ({move.reason})."
            if (move := last.get(letter))
            else ""
        )
        messages.warning(request, f"Message {names.get(letter, letter)} was skipped: {why.removesuffix('.')}.{who}")
    if len(reviewed.refused) > _NAMED:
        messages.warning(request, f"{len(reviewed.refused) - _NAMED:,} more messages were skipped.")
