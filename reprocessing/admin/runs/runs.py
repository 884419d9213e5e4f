"""The list and the pages of runs, and the page that plans a run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_http_methods, require_safe

from reprocessing.admin.runs import choose_plan, plan_run, run_actions, run_page, run_rows
from reprocessing.admin.runs.plan_run import RunForm
from reprocessing.admin.site import visible_rows
from reprocessing.admin.site.keyset_list import keyset_page
from reprocessing.admin.site.readonly_admin import Page, ReadOnlyAdmin
from reprocessing.admin.site.session_end import post_only
from reprocessing.domain.errors import RunIdInUse
from reprocessing.models import DeadLetterQueue, Run
from reprocessing.models.run import RunState
from reprocessing.pipeline.runs import request_plan
from reprocessing.pipeline.runs.run_actions import RUN_ACTIONS

#: Max runs on one page.
_PAGE: Final = 50


@admin.register(Run)
class Runs(ReadOnlyAdmin):
    """The list and the pages of runs, with their selection, author and progress."""

    add_permission = run_actions.PERMISSION

    def pages(self) -> Iterable[Page]:
        """Return the pages that change a run, and the URL from which an open page of a run refreshes its progress."""
        return (
            ("<int:run>/progress", require_safe(self._progress), "progress", {}),
            ("<int:run>/choose", post_only(choose_plan.page), "choose", {}),
            ("<int:run>/<slug:action>/now", _action, "action", {}),
        )

    @method_decorator(require_safe)
    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the list of runs, the newest first, filtered by DLQ, state and person."""
        self._require_view(request)
        found = visible_rows.rows(request, Run.objects.select_related("dlq"))
        asked = {name: request.GET.get(name, "") for name in ("dlq", "state", "by")}
        if asked["dlq"].isdecimal():
            found = found.filter(dlq=int(asked["dlq"][:9]))
        if asked["state"] in RunState.values:
            found = found.filter(state=asked["state"])
        if asked["by"].strip():
            found = found.filter(asked_by=asked["by"].strip().replace("\0", ""))
        page, after = keyset_page(found, request.GET.get("after", ""), _PAGE)
        context = {
            **self.admin_site.each_context(request), "title": "Runs", "runs": run_rows.run_rows(page), "asked": asked,
            "dlqs": visible_rows.rows(request, DeadLetterQueue.objects.order_by("name").only("pk", "name")),
            "states": RunState.choices,
            "more": after and f"?{urlencode({**asked, 'after': after})}", "may_plan": self.has_add_permission(request),
            "opts": self.opts,
        }  # fmt: skip
        return TemplateResponse(request, "reprocessing/admin/runs.html", context)

    @method_decorator(require_safe)
    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the page of a run."""
        self._require_view(request)
        run = _found(request, object_id)
        context = {
            **self.admin_site.each_context(request), "title": run.name, "opts": self.opts,
            **run_page.page_context(run, request.user, request.GET),
        }  # fmt: skip
        return TemplateResponse(request, "reprocessing/admin/run.html", context)

    @method_decorator(require_http_methods(["GET", "HEAD", "POST"]))
    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the form that plans a run; after a valid form is submitted, plan the run and show its page."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            form = RunForm(visible_rows.of(request), request.POST)
            if form.is_valid() and (run := _planned(form, request.user.get_username())):
                messages.success(request, request_plan.planned_text(run))
                return HttpResponseRedirect(reverse("admin:reprocessing_run_change", args=[run.pk]))
        else:
            form = RunForm(
                visible_rows.of(request), initial={"name": request_plan.suggested_name(), **self._begins(request)}
            )
        context = {**self.admin_site.each_context(request), "title": "Plan a run", "form": form, "opts": self.opts}
        return TemplateResponse(request, "reprocessing/admin/plan_run.html", context)

    def _progress(self, request: HttpRequest, run: int) -> HttpResponse:
        self._require_view(request)
        found = _found(request, run)
        if run_page.is_as_shown(found, request.GET.get("plan", "")):
            return HttpResponse(status=204)
        context = run_page.live_context(found, request.user, request.GET) | {"is_part": True}
        if found.state == RunState.PLANNED:  # the plan's first entry is written when its messages are selected
            context |= run_page.audit_context(found) | {"has_audit": True}
        return TemplateResponse(request, "reprocessing/admin/run_progress.html", context)

    def _begins(self, request: HttpRequest) -> dict[str, Any]:
        """Return the initial values of the form that plans a run.

        The URL parameter `like` has the id of a run from which the values are copied. Without it, other URL parameters
        have the values.
        """
        if "like" in request.GET:
            self._require_view(request)
            return plan_run.initial_from(_found(request, request.GET["like"]))
        return {
            name: request.GET[name][:200] for name in ("dlq", "source", "key", "message_ids") if name in request.GET
        }

    def _require_view(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied


def _planned(form: RunForm, by: str) -> Run | None:
    """Plan the run and return it; None: the run cannot be planned, and the form shows the reason as an error."""
    if why := request_plan.moved_by_aws(form.cleaned_data["dlq"]):
        form.add_error("dlq", why)
        return None
    try:
        return plan_run.plan_from_form(form, by=by)
    except RunIdInUse as error:
        form.add_error("name", str(error))
        return None


def _found(request: HttpRequest, key: str | int) -> Run:
    return visible_rows.row_or_404(request, Run.objects.select_related("dlq"), key)


def _action(request: HttpRequest, run: int, action: str) -> HttpResponse:
    if action not in RUN_ACTIONS:
        raise Http404
    return run_actions.page(request, run, action)
