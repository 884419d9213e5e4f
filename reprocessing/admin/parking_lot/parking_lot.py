"""The parking lot: letters that wait for a person, and what the person can do about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final
from uuid import uuid4

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_POST

from reprocessing.admin.messages.messages import Letters, deed_of
from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.admin.parking_lot import export_page, message_list
from reprocessing.admin.parking_lot.confirm_forms import Decision, read
from reprocessing.admin.parking_lot.decision import Deed, assignees, decide, packed, unpacked
from reprocessing.domain.errors import FilterIsUnclear
from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.parking_lot.message_filter import Sieve
from reprocessing.models import Act, DeadLetter, DeadLetterQueue, Operation, Review
from reprocessing.models.letter import ParkedLetter
from reprocessing.models.parking_lot import OperationAct
from reprocessing.pipeline.parking_lot.act_on_parked import Reviewed
from reprocessing.store.ordering import lanes
from reprocessing.store.parking_lot import bulk_actions, message_filters
from reprocessing.store.parking_lot.message_filters import Kind
from reprocessing.store.safety import stops

_SAMPLE = 20
_DONE: Final = {
    Deed.RELEASE: "released, to be replayed", Deed.DISCARD: "discarded: given up",
    Deed.RESTORE: "restored: parked again", Deed.NOTE: "noted",
}  # fmt: skip
#: What leaves a letter as it is; whoever comes second is told of it where they wanted the same.
_BESIDE: Final = frozenset({Act.REVEALED, Act.EXPORTED, Act.NOTED, Act.ASSIGNED})
_ITS_OWN: Final = {Deed.NOTE: Act.NOTED, Deed.ASSIGN: Act.ASSIGNED}


@admin.register(ParkedLetter)
class ParkingLot(Letters):
    """Parked letters; whatever is done to them takes a permission, a reason and a second page."""

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, by a filter."""
        return message_list.page(request)

    def get_urls(self) -> list[URLPattern]:
        """Django's, the deeds, and the export."""
        deeds = [
            path(deed.value, self.admin_site.admin_view(self.deed), {"deed": deed}, name=f"parkedletter_{deed}")
            for deed in Deed
        ]
        export = path("export", self.admin_site.admin_view(export_page.page), name="parkedletter_export")
        return [*deeds, export, *super().get_urls()]

    def deed(self, request: HttpRequest, deed: Deed) -> HttpResponse:
        """What a page asked for: with a reason it is done, without one the reason is asked for."""
        return require_POST(self._deed)(request, deed)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The letter's page; of one that has left the lot, its page among all letters."""
        if self.get_object(request, object_id) is None and object_id.isdecimal():
            left = DeadLetter.objects.filter(pk=object_id).first()
            if left is not None and self.has_view_permission(request):
                messages.info(request, f"This letter is no longer parked: it is {left.state}.")
                return HttpResponseRedirect(reverse("admin:reprocessing_deadletter_change", args=[left.pk]))
        return super().change_view(request, object_id, form_url, extra_context)

    def page_of(self, request: HttpRequest, letter: DeadLetter) -> dict[str, Any]:
        """What can be done with it."""
        offered = [deed_of(request, deed) for deed in Deed if deed.state == letter.state]
        return super().page_of(request, letter) | {"deeds": offered, "letters": packed([letter])}

    def _may(self, request: HttpRequest, deed: Deed) -> bool:
        return request.user.has_perm(deed.permission) and self.has_view_permission(request)

    def _deed(self, request: HttpRequest, deed: Deed) -> HttpResponse:
        if not self._may(request, deed):
            raise PermissionDenied
        how = request.POST.get("how", "")
        if "reason" not in request.POST:
            return self._first_page(request, deed, how)
        form = Decision(deed, how, request.POST)
        if not form.is_valid():
            return self._page(request, deed, form)
        if form.cleaned_data["letters"]:
            return self._do(request, deed, form)
        return self._begin(request, deed, form)

    def _first_page(self, request: HttpRequest, deed: Deed, how: str) -> HttpResponse:
        """The page that asks why: of the ticked letters, or of all that a filter means."""
        query = request.POST.get("query", "")
        asked: dict[str, Any] = {"query": query, "how": how}
        if request.POST.get("scope") == "all":
            asked["token"] = uuid4()
        else:
            asked["letters"] = request.POST.get("letters") or ",".join(request.POST.getlist("pick"))
            if not asked["letters"] and "scope" in request.POST:
                messages.warning(request, "Nothing was done: tick letters first, or choose all that match.")
                return HttpResponseRedirect(_back(query))
            asked["assigned"] = assignees(_seen(asked["letters"]))
        asked["opened"] = lanes.clock().isoformat()
        return self._page(request, deed, Decision(deed, how, initial=asked))

    def _do(self, request: HttpRequest, deed: Deed, form: Decision) -> HttpResponse:
        """At once: these letters, as they were seen."""
        found = form.cleaned_data
        by = request.user.get_username()
        reviewed = decide(
            deed, found["letters"], by=by, reason=found["reason"], arguments=form.arguments, stood=form.stood
        )
        _tell(request, deed, _done(deed, form, len(reviewed.done)), reviewed)
        if deed is Deed.RELEASE:
            _warn(request, DeadLetter.objects.filter(pk__in=reviewed.done).values_list("dlq__name", flat=True))
        return HttpResponseRedirect(message_list.address_of(found["query"]))

    def _begin(self, request: HttpRequest, deed: Deed, form: Decision) -> HttpResponse:
        """An operation: all that the filter means now, batch by batch."""
        found = form.cleaned_data
        sieve, token = found["query"], found["token"]
        try:
            _insist(request, deed, sieve)
            is_new = bulk_actions.begin(
                token, OperationAct(deed.value), sieve, form.arguments, by=request.user.get_username(),
                reason=found["reason"], opened=found["opened"],
            )  # fmt: skip
        except FilterIsUnclear as error:
            form.add_error("query", str(error))
            return self._page(request, deed, form)
        began = Operation.objects.get(token=token)
        if not is_new:
            messages.warning(
                request,
                "Nothing new was begun: this page was sent before. This is what was asked for then; for something "
                "else, begin at the parking lot.",
            )
        elif deed is Deed.RELEASE:
            _warn(request, {one.dlq for one in message_filters.kinds(sieve)})
        return HttpResponseRedirect(reverse("admin:reprocessing_operation_change", args=[began.pk]))

    def _page(self, request: HttpRequest, deed: Deed, form: Decision) -> HttpResponse:
        """The page that asks why, and shows what it is about as far as it is still so."""
        whole = bool(form["token"].value())
        kind = deed.state.value
        if whole and form.is_bound:
            form.reopen()
        about = _of_a_filter(request, deed, form) if whole else _of_letters(deed, form)
        context = self.admin_site.each_context(request) | {
            "deed": deed.value,
            "button": deed.label,
            "deed_url": f"admin:parkedletter_{deed}",
            "form": form,
            "opts": self.opts,
            "whole": whole,
            "back": _back(str(form["query"].value() or "")),
            "title": f"{deed.label} a {kind} letter" if about["count"] == 1 else f"{deed.label} {kind} letters",
            "stopped": list(_stopped(dlq for dlq, _, _ in about.get("kinds", ()))) if deed is Deed.RELEASE else [],
            **about,
        }
        return TemplateResponse(request, "reprocessing/admin/decision.html", context)


def _of_letters(deed: Deed, form: Decision) -> dict[str, Any]:
    """The letters that a page carries, as far as they are still where it saw them."""
    seen = _seen(str(form["letters"].value() or ""))
    found = DeadLetter.objects.filter(pk__in=seen, state=deed.state.value).select_related("dlq")
    there = list(found.order_by("pk"))
    kinds = Counter((one.dlq.name, _why(one.state, one.reason)) for one in there)
    return {
        "counted": f"{len(there):,}",
        "count": len(there),
        "kinds": [(dlq, why, n) for (dlq, why), n in sorted(kinds.items())],
        "strays": sum(one.lane_id is None and one.key_hash is None and one.origin_id is not None for one in there),
        "sample": [(visible(one.message_id), visible(one.ordering_key or "")) for one in there[:_SAMPLE]],
        "unshown": max(0, len(there) - _SAMPLE),
    }


def _seen(letters: str) -> list[int]:
    """The letters that a page carries; none where it cannot be read."""
    try:
        return list(unpacked(letters))
    except ValidationError:
        return []


def _of_a_filter(request: HttpRequest, deed: Deed, form: Decision) -> dict[str, Any]:
    """What a filter means now, as far as it is counted."""
    try:
        sieve = read(str(form["query"].value() or ""))
        _insist(request, deed, sieve)
        kinds, sample = message_filters.kinds(sieve), message_filters.newest(sieve, limit=_SAMPLE)
    except FilterIsUnclear as error:
        return {"refusal": str(error), "count": 0, "counted": "0"}
    n = sum(one.n for one in kinds)
    more = n > message_filters.COUNTED
    return {
        "count": n,
        "counted": f"{min(n, message_filters.COUNTED):,}{'+' if more else ''}",
        "bounded": message_filters.COUNTED if more else 0,
        "sentence": sieve.sentence(message_list.names_of(sieve), single=n == 1),
        "kinds": [_told(one) for one in kinds],
        "strays": sum(one.strays for one in kinds),
        "sample": [(visible(one.message_id), visible(one.key or "")) for one in sample],
        "unshown": max(0, n - len(sample)),
    }


def _insist(request: HttpRequest, deed: Deed, sieve: Sieve) -> None:
    """See that a filter means letters that the deed is for, all of which were looked at.

    Raises:
        FilterIsUnclear: it does not.
        PermissionDenied: it asks what this person may not see.
    """
    message_list.allow(sieve, request.user)
    if sieve.states != (deed.state.value,):
        raise FilterIsUnclear(f"This is for {deed.state.value} letters alone. Open their list, and select them there.")
    message_filters.insist_on_all(sieve)


def _told(one: Kind) -> tuple[str, str, int]:
    return one.dlq, _why(one.state, one.reason), one.n


def _why(state: str, reason: str) -> str:
    return ParkedReason(reason).sentence if reason else state


def _back(query: str) -> str:
    """The list that a page came from; where its filter cannot be read, the whole lot."""
    try:
        return message_list.address_of(read(query))
    except FilterIsUnclear:
        return reverse("admin:reprocessing_parkedletter_changelist")


def _stopped(dlqs: Iterable[str]) -> Iterable[str]:
    """What holds letters of these dlqs that are replayed now, by whom and why, in sentences."""
    ends = "what is replayed waits until somebody lets it go on."
    names = set(dlqs)
    if names and (all_ := stops.stopped(None)):
        yield f'Everything is stopped by {all_.by} ("{all_.reason}"): {ends}'
    for one in DeadLetterQueue.objects.filter(name__in=names, stopped_at__isnull=False).order_by("name"):
        yield f'{one.name} is stopped by {one.stopped_by} ("{one.stop_reason}"): {ends}'


def _warn(request: HttpRequest, dlqs: Iterable[str]) -> None:
    for one in _stopped(dlqs):
        messages.warning(request, one)


def _done(deed: Deed, form: Decision, n: int) -> str:
    """What was done to so many letters."""
    if deed is not Deed.ASSIGN:
        return f"{n:,} {_DONE[deed]}."
    to = form.cleaned_data["to"]
    return f"{n:,} assigned to {to}." if to else f"{n:,} {'is' if n == 1 else 'are'} nobody's now."


def _tell(request: HttpRequest, deed: Deed, done: str, reviewed: Reviewed) -> None:
    """What was done, and which letters were left alone for what they had become, and by whom."""
    if reviewed.done:
        messages.success(request, done)
    else:
        messages.warning(request, "Nothing was done.")
    refused = dict(list(reviewed.refused.items())[:_SAMPLE])
    names = dict(DeadLetter.objects.filter(pk__in=list(refused)).values_list("pk", "message_id"))
    moves = Review.objects.filter(letter__in=list(refused)).exclude(act__in=_BESIDE - {_ITS_OWN.get(deed)})
    last = {one.letter_id: one for one in moves.order_by("at", "id")}
    for letter, why in refused.items():
        who = (
            f" Last: {one.act} by {one.by}, {one.at:%H:%M:%S} UTC ({one.reason})." if (one := last.get(letter)) else ""
        )
        messages.warning(request, f"Letter {names.get(letter, letter)} was left alone: {why.removesuffix('.')}.{who}")
    if len(reviewed.refused) > _SAMPLE:
        messages.warning(request, f"{len(reviewed.refused) - _SAMPLE:,} more were left alone.")
