"""The parking lot: letters that wait for a person, and what the person can do about them."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_POST

from reprocessing.admin.decision import MOST, Decision, Deed, decide, packed
from reprocessing.admin.letters import Letters, redrive_id
from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.models import DeadLetter
from reprocessing.models.letter import ParkedLetter
from reprocessing.pipeline.park import Reviewed

_SAMPLE = 20
_DONE: Final = {Deed.RELEASE: "released: back to their lanes, to be replayed", Deed.DISCARD: "discarded: given up"}


@admin.register(ParkedLetter)
class ParkingLot(Letters):
    """Parked letters; replaying or discarding them takes a permission, a reason and a second page."""

    list_display = ("message_id", "dlq", "why", "key", "age", "attempts", "time_left", "finished_at")
    list_filter = ("dlq", "reason")
    ordering = ("-finished_at", "-id")
    sortable_by = ("age", "attempts", "time_left", "finished_at")
    actions = ("release_selected", "discard_selected")

    @admin.display(description="reason")
    def why(self, letter: DeadLetter) -> str:
        """Why it was parked, in words."""
        return ParkedReason(letter.reason).sentence

    def named(self, text: str) -> Q:
        """Those that go by this text; what is parked is few enough to be read through."""
        return Q(message_id=text) | Q(ordering_key=text) | redrive_id(text)

    def has_release_permission(self, request: HttpRequest) -> bool:
        """Who may replay them."""
        return request.user.has_perm("reprocessing.release_parkedletter")

    def has_discard_permission(self, request: HttpRequest) -> bool:
        """Who may give them up."""
        return request.user.has_perm("reprocessing.discard_parkedletter")

    @admin.action(permissions=["release"], description="Replay selected letters…")
    def release_selected(self, request: HttpRequest, letters: QuerySet[DeadLetter]) -> HttpResponse | None:
        """Ask why, then put them back onto their lanes."""
        return self._ask(request, Deed.RELEASE, letters)

    @admin.action(permissions=["discard"], description="Discard selected letters…")
    def discard_selected(self, request: HttpRequest, letters: QuerySet[DeadLetter]) -> HttpResponse | None:
        """Ask why, then give them up."""
        return self._ask(request, Deed.DISCARD, letters)

    def get_urls(self) -> list[URLPattern]:
        """Django's, and the deeds."""
        deeds = [
            path(deed.value, self.admin_site.admin_view(self.deed), {"deed": deed}, name=f"parkedletter_{deed}")
            for deed in Deed
        ]
        return [*deeds, *super().get_urls()]

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
        """The deeds that this person may do to it."""
        allowed = [deed for deed in Deed if self._may(request, deed)]
        return super().page_of(request, letter) | {
            "deeds": [(deed.value, f"admin:parkedletter_{deed}") for deed in allowed],
            "letters": packed([letter]),
        }

    def _may(self, request: HttpRequest, deed: Deed) -> bool:
        able = self.has_release_permission(request) if deed is Deed.RELEASE else self.has_discard_permission(request)
        return able and self.has_view_permission(request)

    def _deed(self, request: HttpRequest, deed: Deed) -> HttpResponse:
        if not self._may(request, deed):
            raise PermissionDenied
        if "reason" not in request.POST:
            return self._page(request, deed, Decision(initial={"letters": request.POST.get("letters", "")}))
        form = Decision(request.POST)
        if not form.is_valid():
            return self._page(request, deed, form)
        reviewed = decide(
            deed, form.cleaned_data["letters"], by=request.user.get_username(), reason=form.cleaned_data["reason"]
        )
        _tell(request, deed, reviewed)
        return HttpResponseRedirect(reverse("admin:reprocessing_parkedletter_changelist"))

    def _ask(self, request: HttpRequest, deed: Deed, letters: QuerySet[DeadLetter]) -> HttpResponse | None:
        asked = list(letters.order_by("pk")[: MOST + 1])
        if len(asked) > MOST:
            messages.error(
                request,
                f"Nothing was done: these are more than {MOST:,} letters. Select fewer, "
                f"or use manage.py {deed}_parked with its filters.",
            )
            return None
        if not asked:
            messages.warning(request, "Nothing was done: none of the letters you selected is parked any longer.")
            return None
        return self._page(request, deed, Decision(initial={"letters": packed(asked)}), asked)

    def _page(
        self, request: HttpRequest, deed: Deed, form: Decision, letters: list[DeadLetter] | None = None
    ) -> HttpResponse:
        """The page that asks why, and shows what it is about as far as it is still parked."""
        asked = self._carried(request, form) if letters is None else letters
        context = self.admin_site.each_context(request) | {
            "title": f"{deed.value.capitalize()} parked letters",
            "deed": deed.value,
            "deed_url": f"admin:parkedletter_{deed}",
            "form": form,
            "opts": self.opts,
            "media": self.media,
            "count": len(asked),
            "kinds": sorted(Counter((one.dlq.name, ParkedReason(one.reason).sentence) for one in asked).items()),
            "sample": [(one, self.key(one)) for one in asked[:_SAMPLE]],
            "unshown": max(0, len(asked) - _SAMPLE),
        }
        return TemplateResponse(request, "reprocessing/admin/decision.html", context)

    def _carried(self, request: HttpRequest, form: Decision) -> list[DeadLetter]:
        text = str(form["letters"].value() or "")
        ids = [int(one.partition("@")[0]) for one in text.split(",") if one.partition("@")[0].isdecimal()]
        return list(self.get_queryset(request).select_related("dlq").filter(pk__in=ids[:MOST]).order_by("pk"))


def _tell(request: HttpRequest, deed: Deed, reviewed: Reviewed) -> None:
    """What was done, and which letters were left alone for what they had become."""
    if reviewed.done:
        messages.success(request, f"{len(reviewed.done):,} {_DONE[deed]}.")
    names = dict(DeadLetter.objects.filter(pk__in=list(reviewed.refused)).values_list("pk", "message_id"))
    for letter, why in list(reviewed.refused.items())[:_SAMPLE]:
        messages.warning(request, f"Letter {names.get(letter, letter)} was left alone: {why}.")
    if len(reviewed.refused) > _SAMPLE:
        messages.warning(request, f"{len(reviewed.refused) - _SAMPLE:,} more were left alone.")
