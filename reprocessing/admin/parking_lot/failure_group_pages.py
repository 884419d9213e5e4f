"""The list of failure groups, and the page of a group, on which a person sets its status, assignee and note."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_http_methods, require_safe

from reprocessing.admin.messages.message_page import may_see_payloads
from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.admin.messages.uncounted_attempts import attempts_of
from reprocessing.admin.parking_lot import failure_group_cards as shown
from reprocessing.admin.parking_lot import failure_group_merging, failure_group_table
from reprocessing.admin.parking_lot.decision import DecisionKind
from reprocessing.admin.parking_lot.failure_group_table import GroupQuery
from reprocessing.admin.site import visible_rows
from reprocessing.admin.site.confirmed_action import reason_field
from reprocessing.admin.site.readonly_admin import Page, ReadOnlyAdmin
from reprocessing.domain.lifecycle import LetterState, ParkedReason
from reprocessing.models import AuditAct, AuditEntry, DeadLetterQueue, FailureGroup, Letter
from reprocessing.models.parking_lot import FailureGroupStatus
from reprocessing.store.ordering import lanes
from reprocessing.store.parking_lot import failure_group_pages, failure_group_review, merged_groups
from reprocessing.store.parking_lot.failure_group_pages import GroupRow

#: Max messages and max audit entries on the page of a group.
LETTERS, REVIEWS = 50, 20
_LONGEST_NOTE: Final = 4_000
#: Actions in the audit log that changed the status, assignee or note of a group.
_CHANGES: Final = (AuditAct.CHANGED, AuditAct.NOTED)


class StatusForm(forms.Form):
    """The form of a group's new status, assignee and note, and the reason.

    Hidden fields have the values that the page showed. If a value differs now, somebody else changed it.
    """

    status = forms.ChoiceField(choices=FailureGroupStatus.choices, label="Status")
    to = forms.CharField(required=False, max_length=150, label="Assigned to", help_text="A user name. Empty: nobody.")
    note = forms.CharField(
        required=False,
        max_length=_LONGEST_NOTE,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="For example a ticket, who works on the group, what was tried.",
    )
    reason = reason_field(rows=2)
    seen_status = forms.ChoiceField(choices=FailureGroupStatus.choices, widget=forms.HiddenInput)
    seen_to = forms.CharField(required=False, max_length=150, widget=forms.HiddenInput)
    seen_note = forms.CharField(
        required=False, strip=False, max_length=_LONGEST_NOTE, widget=forms.HiddenInput(attrs={"autocomplete": "off"})
    )

    def clean_to(self) -> str:
        """Return the new assignee. Refuse a name that no user has."""
        to: str = self.cleaned_data["to"]
        if to and to != self.data.get("seen_to") and not User.objects.filter(username=to, is_active=True).exists():
            raise forms.ValidationError(f'There is no active user "{visible(to)}". Write a user name, or nothing.')
        return to

    def clean_note(self) -> str:
        """Return the note with line feeds (LF) as line ends; browsers send CRLF."""
        return _lines(self.cleaned_data["note"])

    def clean_seen_note(self) -> str:
        """Return the note that the page showed, with line feeds (LF) as line ends."""
        return _lines(self.cleaned_data["seen_note"])

    def clean(self) -> dict[str, Any]:
        """Return the entered values. Refuse a form that changes neither status, assignee nor note."""
        given: dict[str, Any] = self.cleaned_data
        if all(name in given and given[name] == given.get(f"seen_{name}") for name in ("status", "note", "to")):
            raise forms.ValidationError("Nothing was changed: status, assignee and note are the same as before.")
        return given


@admin.register(FailureGroup)
class FailureGroups(ReadOnlyAdmin):
    """The list of failure groups, open groups first, and their pages."""

    ordering = ("-last_at", "-id")

    def pages(self) -> Iterable[Page]:
        """Return the pages that merge, split and rename groups."""
        yield "merge", self._merge, "merge", {}
        yield "<int:group>/split", self._split, "split", {}
        yield "<int:group>/rename", self._rename, "rename", {}

    @method_decorator(require_safe)
    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show a page of the list of groups."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        asked = GroupQuery.read(request.GET)
        found = failure_group_pages.group_page(
            limit=failure_group_table.ROWS, offset=(asked.page - 1) * failure_group_table.ROWS,
            seen=visible_rows.of(request), dlq=asked.dlq, status=asked.status, text=asked.text or None,
            order=asked.order,
        )  # fmt: skip
        user = request.user
        context = self._context(request, "Failure groups") | _pages(asked, found) | {
            "lines": failure_group_table.table_rows(
                found, days=asked.days, now=lanes.database_now(), sees_letters=user.has_perm("reprocessing.view_letter")
            ),
            "columns": failure_group_table.columns(asked),
            "some_unknown": any(shown.is_unknown(group.cause) for group in found),
            "dlqs": list(
                visible_rows.rows(request, DeadLetterQueue.objects.order_by("name")).values_list("pk", "name")
            ),
            "statuses": FailureGroupStatus.choices,
            "asked": asked,
            "hours": replace(asked, days=False).address,
            "days": replace(asked, days=True).address,
            "may_settle": self.may_settle(request),
            "may_release": _may_decide(request, DecisionKind.RELEASE),
            "may_discard": _may_decide(request, DecisionKind.DISCARD),
            "may_add_rule": user.has_perms(("reprocessing.add_rule", "reprocessing.view_letter")),
        }  # fmt: skip
        return TemplateResponse(request, "reprocessing/admin/failure_groups.html", context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the page of a group; after its form is submitted, set status, assignee and note."""
        return require_http_methods(["GET", "HEAD", "POST"])(self._group)(request, object_id)

    def may_settle(self, request: HttpRequest) -> bool:
        """Return whether this person may change the status, assignee and note of failure groups."""
        return request.user.has_perm("reprocessing.change_failuregroup")

    def _merge(self, request: HttpRequest) -> HttpResponse:
        return failure_group_merging.merge(request)

    def _split(self, request: HttpRequest, group: int) -> HttpResponse:
        return failure_group_merging.split(request, group)

    def _rename(self, request: HttpRequest, group: int) -> HttpResponse:
        return failure_group_merging.rename(request, group)

    def _group(self, request: HttpRequest, object_id: str) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        pk = shown.id_parameter({"id": object_id}, "id")
        group = failure_group_pages.find_group(pk, seen=visible_rows.of(request)) if pk is not None else None
        if request.method == "POST" and not self.may_settle(request):
            raise PermissionDenied
        if group is None:
            raise Http404
        if group.id != pk and request.method != "POST":  # the link names a group that was merged into this group
            return HttpResponseRedirect(reverse("admin:reprocessing_failuregroup_change", args=[group.id]))
        if request.method != "POST":
            begin = _initial(group)
            asked = request.GET.get("status", "")
            begin |= {"status": asked} if asked in set(FailureGroupStatus) else {}
            return self._page(request, group, StatusForm(initial=begin))
        form = StatusForm(request.POST)
        if not form.is_valid():
            return self._page(request, group, form)
        if _settle(group, form.cleaned_data, by=request.user.get_username()):
            messages.success(request, f"Saved: {form.cleaned_data['status']}.")
            return HttpResponseRedirect(reverse("admin:reprocessing_failuregroup_change", args=[group.id]))
        return self._show_conflict(request, group)

    def _show_conflict(self, request: HttpRequest, group: GroupRow) -> HttpResponse:
        """Show the form again with the entered values, and say who changed the group after the page was opened."""
        now = failure_group_pages.find_group(group.id, seen=visible_rows.of(request))
        if now is None:
            raise Http404
        given = request.POST.copy()
        given["seen_status"], given["seen_note"], given["seen_to"] = now.status, now.note, now.assigned_to
        form = StatusForm(given)
        form.is_valid()
        last = AuditEntry.objects.filter(group=group.id, act__in=_CHANGES).order_by("-id").first()
        who = f'{last.by} {last.get_act_display()} it ("{last.reason}")' if last else "somebody changed it"
        form.add_error(
            None,
            f"Nothing was changed: after you opened this page, {visible(who)}. Its status is {now.status}. "
            "Your values are kept below; submit them again to replace that change.",
        )
        return self._page(request, now, form)

    def _page(self, request: HttpRequest, group: GroupRow, form: StatusForm) -> HttpResponse:
        parts = merged_groups.merged_groups(group.id, limit=failure_group_merging.MOST)
        card = shown.card(group, now=lanes.database_now())
        after, behind = shown.id_parameter(request.GET, "after"), "behind" in request.GET
        letters = self._letters(request, group, after, behind=behind)
        reviews = AuditEntry.objects.filter(group=group.id).order_by("-id")[:REVIEWS]
        context = self._context(request, card["title"]) | {
            "card": card,
            "parts": parts,
            "unshown": group.merged - len(parts),
            "form": form,
            "may_settle": self.may_settle(request),
            "may_act": request.user.has_perm("reprocessing.release_parkedletter"),
            "may_see_letters": request.user.has_perm("reprocessing.view_letter"),
            "may_add_rule": request.user.has_perm("reprocessing.add_rule"),
            "letters": [(letter, _why(letter), attempts_of(letter)) for letter in letters[:LETTERS]],
            "compared": _compared(letters) if not behind and may_see_payloads(request.user) else None,
            "after": after,
            "behind": behind,
            "first": "?behind=1" if behind else "?",
            "next": f"?{'behind=1&' if behind else ''}after={letters[LETTERS - 1].pk}"
            if len(letters) > LETTERS
            else "",
            "reviews": [_readable(review) for review in reviews],
            "original": group.id,
        }
        return TemplateResponse(request, "reprocessing/admin/failure_group.html", context)

    def _letters(self, request: HttpRequest, group: GroupRow, after: int | None, *, behind: bool) -> list[Letter]:
        """Return the group's newest messages or, if `behind`, the later messages of their keys, which wait for them.

        `after`: only messages with smaller ids. If there is a next page, the list has one message more than a page.
        """
        if not request.user.has_perm("reprocessing.view_letter"):
            return []
        if behind:
            ids = [letter for letter in failure_group_pages.letters_behind(group.id) if after is None or letter < after]
        else:
            ids = failure_group_pages.letter_ids(group.id, below=after, limit=LETTERS + 1)
        return list(Letter.objects.filter(pk__in=ids).select_related("dlq").order_by("-pk")[: LETTERS + 1])

    def _context(self, request: HttpRequest, title: str) -> dict[str, Any]:
        may_see_reporters = request.user.has_perm("reprocessing.view_reporter")
        return {
            **self.admin_site.each_context(request), "title": title, "opts": self.opts, "media": self.media,
            "may_see_reporters": may_see_reporters,
        }  # fmt: skip


def _settle(group: GroupRow, given: dict[str, Any], *, by: str) -> bool:
    fields = {name: given[name] for name in ("note", "to", "seen_status", "seen_note", "seen_to", "reason")}
    return failure_group_review.set_status(group.id, status=FailureGroupStatus(given["status"]), by=by, **fields)


def _initial(group: GroupRow) -> dict[str, str]:
    now = {"status": group.status, "note": group.note, "to": group.assigned_to}
    return now | {f"seen_{name}": value for name, value in now.items()}


def _may_decide(request: HttpRequest, decision: DecisionKind) -> bool:
    return request.user.has_perms((decision.permission, "reprocessing.view_parkedletter"))


def _pages(asked: GroupQuery, found: list[GroupRow]) -> dict[str, Any]:
    """Return template values for paging: numbers of groups and pages, and links to other pages (empty: no page)."""
    total, size = found[0].total if found else 0, failure_group_table.ROWS
    last = max(1, -(-total // size))
    return {
        "total": total,
        "last": last,
        "first": replace(asked, page=1).address if asked.page > 1 else "",
        "previous": replace(asked, page=asked.page - 1).address if asked.page > 1 else "",
        "next": replace(asked, page=asked.page + 1).address if asked.page < last else "",
    }


def _compared(letters: list[Letter]) -> Letter | None:
    """Return the newest parked message whose body still exists; None: there is none."""
    parked = (letter for letter in letters if letter.state == LetterState.PARKED and letter.body_deleted_at is None)
    return next(parked, None)


def _why(letter: Letter) -> str:
    return ParkedReason(letter.reason).label if letter.reason else letter.state


def _readable(review: AuditEntry) -> dict[str, Any]:
    """Return an audit entry as values for the template, with each changed value before and after."""
    changes = [
        (name, visible(str(review.before.get(name, ""))), visible(str(value)))
        for name, value in sorted(review.after.items())
        if value != review.before.get(name, "")
    ]
    return {"review": review, "changes": changes}


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
