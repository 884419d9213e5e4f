"""One deed of the desk: a page that says what it would do, asks why, and touches only what stands as it was seen.

Whoever comes second is told so on the same page: that nothing was done, what stands now, and who saw to that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.views.decorators.http import require_http_methods

#: Characters of a reason.
LONGEST: Final = 2_000


class Why(forms.Form):
    """Why, and what was seen."""

    seen = forms.CharField(
        widget=forms.HiddenInput,
        error_messages={"required": "Nothing was changed: this page did not say what you saw. Send it again."},
    )
    reason = forms.CharField(
        max_length=LONGEST,
        widget=forms.Textarea(attrs={"rows": 3, "autofocus": True}),
        help_text="Recorded with your name, for whoever asks later.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  Django's own
        super().__init__(*args, **kwargs)
        self.fields["reason"] = self.fields.pop("reason")  # what a deed asks beside comes first


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, as things stand now.

    Attributes:
        says: what would be done, in sentences.
        seen: what stands, as the page carries it.
        back: the address of what it is about, and `about`, its name.
        facts: what stands, to be read.
        idle: why there is nothing to do; empty: there is.
        begin: what a form begins with.
    """

    title: str
    button: str
    says: tuple[str, ...]
    seen: str
    back: str
    about: str
    facts: tuple[tuple[str, str], ...] = ()
    idle: str = ""
    begin: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Done:
    """It was done: what is told, on the page at this address."""

    address: str
    told: str


@dataclass(frozen=True, slots=True)
class NotDone:
    """Nothing was done: why, and who was quicker."""

    why: str


Answer = Done | NotDone


def page(
    request: HttpRequest,
    *,
    permission: str,
    question: Callable[[], Question],
    act: Callable[[Mapping[str, Any], str], Answer],
    form: type[Why] = Why,
) -> HttpResponse:
    """Asked for, the page that asks why; sent back with a reason, the deed.

    Args:
        request: whose.
        permission: what it takes.
        question: what is asked, asked anew for every page.
        act: does it, with what the form holds and the person's name.
        form: what is asked beside the reason.
    """
    if not request.user.has_perm(permission):
        raise PermissionDenied
    view = require_http_methods(["GET", "HEAD", "POST"])(_page)
    return view(request, question=question, act=act, kind=form)


def _page(
    request: HttpRequest,
    *,
    question: Callable[[], Question],
    act: Callable[[Mapping[str, Any], str], Answer],
    kind: type[Why],
) -> HttpResponse:
    refused, form = "", kind(request.POST) if request.method == "POST" else None
    if form is not None and form.is_valid():
        answer = act(form.cleaned_data, request.user.get_username())
        if isinstance(answer, Done):
            messages.success(request, answer.told)
            return HttpResponseRedirect(answer.address)
        refused = answer.why
    asked = question()
    if form is None or refused:
        said = form.cleaned_data if form else {}
        form = kind(initial={**asked.begin, **said, "seen": asked.seen})
    context: dict[str, Any] = {
        **admin.site.each_context(request), "title": asked.title, "asked": asked, "form": form, "refused": refused,
    }  # fmt: skip
    return TemplateResponse(request, "reprocessing/admin/deed.html", context)
