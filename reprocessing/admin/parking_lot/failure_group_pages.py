"""Groups: what letters died of, how many of each, and what people make of it."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_safe

from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.admin.parking_lot import failure_group_cards as shown
from reprocessing.admin.site.readonly_admin import History
from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.models import Act, DeadLetter, DeadLetterQueue, LetterGroup, Review
from reprocessing.models.parking_lot import GroupStatus
from reprocessing.store.ordering import lanes
from reprocessing.store.parking_lot import failure_group_pages, failure_groups
from reprocessing.store.parking_lot.failure_group_pages import Told

#: Groups, letters and reviews that one page shows.
CARDS, LETTERS, REVIEWS = 20, 50, 20
_LONGEST_NOTE: Final = 4_000
#: What changes a group: an export by it, say, leaves it as it was.
_CHANGES: Final = (Act.CHANGED, Act.NOTED)


class Settlement(forms.Form):
    """What becomes of a group, as it was seen, and why."""

    status = forms.ChoiceField(choices=GroupStatus.choices, label="Status")
    note = forms.CharField(
        required=False,
        max_length=_LONGEST_NOTE,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Stays on the group: a ticket, who is on it, what was tried.",
    )
    reason = forms.CharField(
        max_length=2_000,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Recorded with your name, for whoever asks later.",
    )
    seen_status = forms.ChoiceField(choices=GroupStatus.choices, widget=forms.HiddenInput)
    seen_note = forms.CharField(
        required=False, strip=False, max_length=_LONGEST_NOTE, widget=forms.HiddenInput(attrs={"autocomplete": "off"})
    )

    def clean_note(self) -> str:
        """The note with line ends as they are kept: browsers send others."""
        return _lines(self.cleaned_data["note"])

    def clean_seen_note(self) -> str:
        """Likewise."""
        return _lines(self.cleaned_data["seen_note"])

    def clean(self) -> dict[str, Any]:
        """Refused where nothing would be another."""
        given: dict[str, Any] = self.cleaned_data
        if {"status", "note", "seen_status", "seen_note"} <= given.keys() and (
            (given["status"], given["note"]) == (given["seen_status"], given["seen_note"])
        ):
            raise forms.ValidationError("Nothing was changed: status and note are what they were.")
        return given


@admin.register(LetterGroup)
class Groups(History):
    """Causes, the open ones first; a group's page says what becomes of it."""

    ordering = ("-last_at", "-id")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """A page of groups."""
        return require_safe(self._list)(request, extra_context or {})

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The group's page; sent back, the decision."""
        return require_http_methods(["GET", "HEAD", "POST"])(self._group)(request, object_id, extra_context or {})

    def may_settle(self, request: HttpRequest) -> bool:
        """Who may say what becomes of a group."""
        return request.user.has_perm("reprocessing.change_lettergroup")

    def _list(self, request: HttpRequest, extra: dict[str, Any]) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        dlq, status = shown.number(request.GET, "dlq"), request.GET.get("status", "")
        asked = status if status in set(GroupStatus) else None
        after = shown.unpacked(request.GET.get("after", ""))
        found = failure_group_pages.page(limit=CARDS + 1, dlq=dlq, status=asked, after=after)
        filters = {"dlq": dlq, "status": asked}
        context = self._context(request, "Groups") | {
            "cards": shown.cards(found[:CARDS], now=lanes.clock()),
            "dlqs": list(DeadLetterQueue.objects.order_by("name").values_list("pk", "name")),
            "statuses": GroupStatus.choices,
            "dlq": dlq,
            "status": asked,
            "is_first": after is None,
            "first": _query(filters),
            "next": _query({**filters, "after": shown.packed(found[CARDS - 1])}) if len(found) > CARDS else "",
        }
        return TemplateResponse(request, "reprocessing/admin/groups.html", context | extra)

    def _group(self, request: HttpRequest, object_id: str, extra: dict[str, Any]) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        pk = shown.number({"id": object_id}, "id")
        group = failure_group_pages.one(pk) if pk is not None else None
        if request.method == "POST" and not self.may_settle(request):
            raise PermissionDenied
        if group is None:
            raise Http404
        if request.method != "POST":
            return self._page(request, group, Settlement(initial=_as_it_is(group)), extra)
        form = Settlement(request.POST)
        if not form.is_valid():
            return self._page(request, group, form, extra)
        if _settle(group, form.cleaned_data, by=request.user.get_username()):
            messages.success(request, f"Recorded: {GroupStatus(form.cleaned_data['status']).label}.")
            return HttpResponseRedirect(reverse("admin:reprocessing_lettergroup_change", args=[group.id]))
        return self._overtaken(request, group, extra)

    def _overtaken(self, request: HttpRequest, group: Told, extra: dict[str, Any]) -> HttpResponse:
        """Somebody else was first: what they did, and this person's words, to be sent again against what is now."""
        now = failure_group_pages.one(group.id)
        if now is None:
            raise Http404
        given = request.POST.copy()
        given["seen_status"], given["seen_note"] = now.status, now.note
        form = Settlement(given)
        form.is_valid()
        last = Review.objects.filter(group=group.id, act__in=_CHANGES).order_by("-id").first()
        who = f'{last.by} {last.get_act_display()} it ("{last.reason}")' if last else "somebody changed it"
        form.add_error(
            None,
            f"Nothing was changed: since you opened this page, {visible(who)}. It is {now.status} now. "
            "Look again; what you wrote is kept below, and sending it once more puts it in place of that.",
        )
        return self._page(request, now, form, extra)

    def _page(self, request: HttpRequest, group: Told, form: Settlement, extra: dict[str, Any]) -> HttpResponse:
        card = shown.cards([group], now=lanes.clock())[0]
        after, behind = shown.number(request.GET, "after"), "behind" in request.GET
        letters = self._letters(request, group, after, behind=behind)
        context = self._context(request, card.title) | {
            "card": card,
            "form": form,
            "may_settle": self.may_settle(request),
            "may_act": request.user.has_perm("reprocessing.release_parkedletter"),
            "may_see_letters": request.user.has_perm("reprocessing.view_deadletter"),
            "letters": [(one, _why(one)) for one in letters[:LETTERS]],
            "after": after,
            "behind": behind,
            "first": "?behind=1" if behind else "?",
            "next": f"?{'behind=1&' if behind else ''}after={letters[LETTERS - 1].pk}"
            if len(letters) > LETTERS
            else "",
            "reviews": [_readable(one) for one in Review.objects.filter(group=group.id).order_by("-id")[:REVIEWS]],
            "original": group.id,
        }
        return TemplateResponse(request, "reprocessing/admin/group.html", context | extra)

    def _letters(self, request: HttpRequest, group: Told, after: int | None, *, behind: bool) -> list[DeadLetter]:
        """The newest letters of the group, or those behind them in their lanes, one more than a page shows."""
        if not request.user.has_perm("reprocessing.view_deadletter"):
            return []
        meant = {"pk__in": failure_group_pages.behind(group.id)} if behind else {"group": group.id}
        letters = DeadLetter.objects.filter(**meant)
        letters = letters if after is None else letters.filter(pk__lt=after)
        return list(letters.order_by("-pk")[: LETTERS + 1])

    def _context(self, request: HttpRequest, title: str) -> dict[str, Any]:
        return {**self.admin_site.each_context(request), "title": title, "opts": self.opts, "media": self.media}


def _settle(group: Told, given: dict[str, Any], *, by: str) -> bool:
    return failure_groups.settle(
        group.id,
        status=GroupStatus(given["status"]),
        note=given["note"],
        seen_status=given["seen_status"],
        seen_note=given["seen_note"],
        by=by,
        reason=given["reason"],
    )


def _as_it_is(group: Told) -> dict[str, str]:
    return {"status": group.status, "note": group.note, "seen_status": group.status, "seen_note": group.note}


def _why(letter: DeadLetter) -> str:
    return ParkedReason(letter.reason).sentence if letter.reason else letter.state


def _readable(review: Review) -> dict[str, Any]:
    """A review as the page shows it: which of status and note became what."""
    changes = [
        (name, visible(str(review.before.get(name, ""))), visible(str(value)))
        for name, value in sorted(review.after.items())
        if value != review.before.get(name, "")
    ]
    return {
        "at": review.at,
        "by": visible(review.by),
        "act": review.get_act_display(),
        "reason": visible(review.reason),
        "changes": changes,
    }


def _query(asked: dict[str, Any]) -> str:
    return f"?{urlencode({name: value for name, value in asked.items() if value is not None})}"


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
