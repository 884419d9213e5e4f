"""Operations: what people asked for of many letters at once, how far it is, and its end before its time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_POST, require_safe

from reprocessing.admin.messages.message_page import may_see_payloads
from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.admin.parking_lot import message_list
from reprocessing.admin.parking_lot.decision import Deed
from reprocessing.admin.site.readonly_admin import History
from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.parking_lot.message_filter import Sieve
from reprocessing.models import DeadLetter, Operation, OperationState, Target
from reprocessing.store.ordering import lanes
from reprocessing.store.parking_lot import bulk_actions
from reprocessing.store.runs import released_into_runs

#: Operations of one page.
SHOWN: Final = 50
#: After so long without a worker it is said that there may be none.
_UNUSUAL: Final = timedelta(seconds=15)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an operation is.

    Attributes:
        passed: letters that were looked at, done or not; `most`: of how many, never fewer.
        to_go: letters that may follow; `gone`: that were no longer meant when their turn came.
        refusals: why letters were left alone, how many of those that are kept, and one of them.
        late: letters that the filter means by now, and that came too late.
        waits: nobody has begun, for long.
    """

    one: Operation
    passed: int
    most: int
    to_go: int
    gone: int
    refusals: tuple[tuple[str, int, str], ...]
    late: str
    waits: bool
    runs: bool


class Why(forms.Form):
    """Why it is ended."""

    reason = forms.CharField(max_length=2_000, widget=forms.Textarea(attrs={"rows": 2}))


@admin.register(Operation)
class Operations(History):
    """What was asked for, and how far it is."""

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, the newest first."""
        return require_safe(self._list)(request)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The page of one; it is ended at an address of its own."""
        if request.method not in {"GET", "HEAD"}:
            raise PermissionDenied
        return self._page(request, object_id)

    def get_urls(self) -> list[URLPattern]:
        """Django's, the figures by themselves, and the end."""
        ours = self.admin_site.admin_view
        return [
            path("<int:operation>/progress", ours(self.progress), name="operation_progress"),
            path("<int:operation>/abort", ours(self.abort), name="operation_abort"),
            *super().get_urls(),
        ]

    def progress(self, request: HttpRequest, operation: int) -> HttpResponse:
        """The figures alone, for a page that is open."""
        return require_safe(self._progress)(request, operation)

    def abort(self, request: HttpRequest, operation: int) -> HttpResponse:
        """End it, with a reason; whoever comes second is told."""
        return require_POST(self._abort)(request, operation)

    def _list(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        after = request.GET.get("after", "")
        found = Operation.objects.order_by("-pk")
        if after.isascii() and after.isdecimal() and len(after) < 18:  # noqa: PLR2004  an id of Postgres has no more
            found = found.filter(pk__lt=int(after))
        rows = list(found[: SHOWN + 1])
        context = self.admin_site.each_context(request) | {
            "title": "Operations",
            "operations": [(one, gone_of(one)) for one in rows[:SHOWN]],
            "next": rows[SHOWN - 1].pk if len(rows) > SHOWN else None,
        }
        return TemplateResponse(request, "reprocessing/admin/operations.html", context)

    def _page(self, request: HttpRequest, object_id: str, form: Why | None = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        one = self._found(object_id)
        sieve = Sieve.read(one.filter)
        deed = Deed(one.act)
        context = self.admin_site.each_context(request) | {
            "title": f"{deed.label} many letters",
            "progress": progress_of(one),
            "sentence": visible(
                sieve.sentence(
                    message_list.names_of(sieve), covered=not may_see_payloads(request.user), single=one.asked == 1
                )
            ),
            "arguments": list(_arguments(one)),
            "letters": message_list.address_of(sieve) if sieve.text is None or may_see_payloads(request.user) else "",
            "into": _into(one),
            "form": form or Why(),
            "closed": "" if request.user.has_perm(deed.permission) else deed.takes,
        }
        return TemplateResponse(request, "reprocessing/admin/operation.html", context)

    def _progress(self, request: HttpRequest, operation: int) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        one = self._found(str(operation))
        ours = {"progress": progress_of(one), "into": _into(one), "is_part": True}
        context = self.admin_site.each_context(request) | ours
        return TemplateResponse(request, "reprocessing/admin/progress.html", context)

    def _abort(self, request: HttpRequest, operation: int) -> HttpResponse:
        one = self._found(str(operation))
        if not (self.has_view_permission(request) and request.user.has_perm(Deed(one.act).permission)):
            raise PermissionDenied
        form = Why(request.POST)
        if not form.is_valid():
            return self._page(request, str(operation), form)
        if bulk_actions.abort(one.pk, by=request.user.get_username(), why=form.cleaned_data["reason"]):
            messages.success(request, "It is aborted: what was done stays done, the rest is left alone.")
        else:
            one.refresh_from_db()
            how = f"{one.ended_by} aborted it ({one.why})" if one.ended_by else "it was done"
            messages.warning(request, f"Nothing was changed: before you, {how}.")
        return HttpResponseRedirect(reverse("admin:reprocessing_operation_change", args=[one.pk]))

    def _found(self, pk: str) -> Operation:
        one = Operation.objects.filter(pk=pk).first() if pk.isascii() and pk.isdecimal() and len(pk) < 19 else None  # noqa: PLR2004  as above
        if one is None:
            raise Http404
        return one


def gone_of(one: Operation) -> int:
    """Letters that were no longer meant when their turn came; nobody knows before it is done."""
    return max(0, one.asked - one.done - one.left_alone) if one.state == OperationState.DONE else 0


def progress_of(one: Operation) -> Progress:
    """How far it is, by now."""
    passed = one.done + one.left_alone
    runs = one.state == OperationState.RUNNING
    return Progress(
        one=one,
        passed=passed,
        most=max(one.asked, passed, 1),
        to_go=max(0, one.asked - passed) if runs else 0,
        gone=gone_of(one),
        refusals=tuple(_refusals(one)),
        late=_late(one),
        waits=runs and one.cursor == 0 and _waits(one),
        runs=runs,
    )


def _waits(one: Operation) -> bool:
    """Whether it was asked for long ago; `asked_at` is when its page was made."""
    begun = one.reviews.filter(letter=None).order_by("pk").values_list("at", flat=True).first()
    return lanes.clock() - (begun or one.asked_at) > _UNUSUAL


def _into(one: Operation) -> list[released_into_runs.Into]:
    """The runs that replay what was released."""
    released = Deed(one.act) is Deed.RELEASE
    return released_into_runs.of_operation(one.pk, since=one.asked_at, most=SHOWN) if released else []


def _refusals(one: Operation) -> list[tuple[str, int, str]]:
    """Why, how many of those that are kept, and the message id of one."""
    counts = Counter(one.refusals.values())
    first = {why: int(letter) for letter, why in reversed(one.refusals.items())}
    names = dict(DeadLetter.objects.filter(pk__in=first.values()).values_list("pk", "message_id"))
    return [(why, n, visible(names.get(first[why], ""))) for why, n in counts.most_common()]


def _late(one: Operation) -> str:
    """How many of what it was about came after it was asked for; where no index says, nothing is said."""
    sieve = Sieve.read(one.filter)
    if sieve.states != (LetterState.PARKED.value,) or sieve.text is not None:
        return ""
    n = bulk_actions.later(sieve, asked_at=one.asked_at)
    return f"{min(n, bulk_actions.LATE):,}{'+' if n > bulk_actions.LATE else ''}" if n else ""


def _arguments(one: Operation) -> list[tuple[str, str]]:
    """When, where to and to whom, in words."""
    said = []
    if due := one.arguments.get("due"):
        said.append(("Not before", f"{due} (UTC)"))
    if target := one.arguments.get("target"):
        said.append(("To", visible(str(Target.objects.filter(pk=target).first() or f"target {target}"))))
    if "to" in one.arguments:
        said.append(("To", visible(one.arguments["to"] or "nobody")))
    return said
