"""The confirmation page of an action. The page shows the effect, asks for the reason, then acts.

If the state changed after the page was made, nothing is done, and the page shows who changed the state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse

from reprocessing.admin.approvals import requested
from reprocessing.domain.approvals.deed import ApprovalNeeded

_METHODS: Final = ("GET", "HEAD", "POST")
#: Max characters of a reason.
LONGEST: Final = 2_000


def reason_field(*, required: bool = True, rows: int = 3, autofocus: bool = False) -> forms.CharField:
    """Return a form field that asks for the reason."""
    widget = forms.Textarea(attrs={"rows": rows, **({"autofocus": True} if autofocus else {})})
    help_text = "Recorded with your name in the audit log."
    return forms.CharField(required=required, max_length=LONGEST, widget=widget, help_text=help_text)


class ReasonForm(forms.Form):
    """A form that asks for the reason; a hidden field has the state that the page showed."""

    seen = forms.CharField(
        widget=forms.HiddenInput,
        error_messages={"required": "Nothing was changed: the form was incomplete. Submit it again."},
    )
    reason = reason_field(autofocus=True)

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  Django's own
        super().__init__(*args, **kwargs)
        self.fields["reason"] = self.fields.pop("reason")  # the reason comes after the fields of a subclass


@dataclass(frozen=True, slots=True)
class Question:
    """The content of a confirmation page.

    Attributes:
        says: sentences that say what the action will do.
        seen: the present state, as text for the hidden field.
        back: the URL of the page of the object that the action changes.
        about: the name of that object.
        facts: the present state, as labels and values that the page shows.
        idle: why the action would change nothing; empty: it would change something.
        begin: initial values of the form.
        notice: says that the action needs a second person; empty: it needs none.
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
    notice: str = ""

    @property
    def does(self) -> str:
        """Return the label of the button."""
        return requested.BUTTON if self.notice else self.button


@dataclass(frozen=True, slots=True)
class Done:
    """The action was done. `told` says what was done; it is shown on the page at `address`."""

    address: str
    told: str


@dataclass(frozen=True, slots=True)
class NotDone:
    """Nothing was done. `why`: the reason, with the person who changed the state before."""

    why: str


Answer = Done | NotDone


def page(
    request: HttpRequest,
    *,
    permission: str,
    question: Callable[[], Question],
    act: Callable[[Mapping[str, Any], str], Answer],
    form_class: type[ReasonForm] = ReasonForm,
) -> HttpResponse:
    """Show the confirmation page. After it is submitted, call `act` with the form's values and the user's name.

    If the action needs a second person, an approval is requested instead.
    """
    if not request.user.has_perm(permission):
        raise PermissionDenied
    if request.method not in _METHODS:
        return HttpResponseNotAllowed(_METHODS)
    refused, form = "", form_class(request.POST) if request.method == "POST" else None
    if form is not None and form.is_valid():
        try:
            answer = act(form.cleaned_data, request.user.get_username())
        except ApprovalNeeded as needed:
            answer = Done(*requested.request_approval(request, needed, form.cleaned_data["reason"]))
        if isinstance(answer, Done):
            messages.success(request, answer.told)
            return HttpResponseRedirect(answer.address)
        refused = answer.why
    asked = question()
    if form is None or refused:
        said = form.cleaned_data if form else {}
        form = form_class(initial={**asked.begin, **said, "seen": asked.seen})
    context: dict[str, Any] = {
        **admin.site.each_context(request), "title": asked.title, "asked": asked, "form": form, "refused": refused,
    }  # fmt: skip
    return TemplateResponse(request, "reprocessing/admin/confirm_action.html", context)
