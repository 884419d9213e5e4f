"""The stop of everything, and its end: a page that asks why, and that touches only the stop that was seen."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, assert_never

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from reprocessing.models import stops
from reprocessing.models.stops import Stop


class Act(StrEnum):
    """What can be done, by the last part of its address."""

    STOP = "stop"
    RESUME = "resume"


class Why(forms.Form):
    """Why."""

    reason = forms.CharField(
        max_length=2_000,
        widget=forms.Textarea(attrs={"rows": 3, "autofocus": True}),
        help_text="Recorded with your name, for whoever asks later.",
    )


class WhyNoLonger(Why):
    """Why, and since when the stop holds that was seen: no other is lifted."""

    seen = forms.DateTimeField(
        widget=forms.HiddenInput,
        input_formats=["%Y-%m-%dT%H:%M:%S.%f%z", "%Y-%m-%dT%H:%M:%S%z"],
        error_messages=dict.fromkeys(("required", "invalid"), "Nothing was changed. Open this page again."),
    )


_FORMS: Final = {Act.STOP: Why, Act.RESUME: WhyNoLonger}


def page(request: HttpRequest, act: Act) -> HttpResponse:
    """Asked for, the page that asks why; sent back with a reason, the deed."""
    return require_http_methods(["GET", "HEAD", "POST"])(_page)(request, act)


def _page(request: HttpRequest, act: Act) -> HttpResponse:
    if not request.user.has_perm("reprocessing.stop_sends"):
        raise PermissionDenied
    asked = {"data": request.POST} if request.method == "POST" else {"initial": {"seen": _since(stops.stopped(None))}}
    form = _FORMS[act](**asked)
    if request.method == "POST" and form.is_valid():
        _tell(request, act, _do(act, form.cleaned_data, by=request.user.get_username()))
        return HttpResponseRedirect(reverse("admin:index"))
    context: dict[str, Any] = {
        **admin.site.each_context(request),
        "title": "Stop everything" if act is Act.STOP else "Let everything go on",
        "act": act.value,
        "address": f"admin:{act.value}",
        "form": form,
    }
    return TemplateResponse(request, "reprocessing/admin/halting.html", context)


def _do(act: Act, given: dict[str, Any], *, by: str) -> Stop | None:
    """The stop that now holds, or the one that is gone; None: the one that was seen is not there any more."""
    match act:
        case Act.STOP:
            return stops.stop(None, by=by, reason=given["reason"])
        case Act.RESUME:
            return stops.resume(None, by=by, reason=given["reason"], seen=given["seen"])
        case _ as never:
            assert_never(never)


def _tell(request: HttpRequest, act: Act, stop: Stop | None) -> None:
    if act is Act.STOP and stop and stop.new:
        messages.warning(request, "Everything is stopped: nothing is sent until somebody lets it go on.")
    elif act is Act.STOP and stop:
        messages.info(request, f'It was stopped already, by {stop.by} ("{stop.reason}"). That stop holds.')
    elif stop:
        messages.success(request, f'Everything goes on: the stop by {stop.by} ("{stop.reason}") is lifted.')
    elif now := stops.stopped(None):
        messages.error(
            request,
            f'Nothing was changed: since you looked, {now.by} stopped everything anew ("{now.reason}"). Look again.',
        )
    else:
        messages.info(request, "Nothing was stopped any more: somebody else has let it go on.")


def _since(stop: Stop | None) -> str:
    return stop.since.isoformat() if stop else ""
