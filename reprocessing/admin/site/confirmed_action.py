"""The page on which a person confirms an action: it shows what the action will do, and asks for the reason.

If the object changed after the page was opened, nothing is done, and the page shows who changed the object.
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
from reprocessing.domain.approvals.requested_action import ApprovalNeeded

_METHODS: Final = ("GET", "HEAD", "POST")
#: Max characters of a reason.
LONGEST: Final = 2_000


def reason_field(*, required: bool = True, rows: int = 3, autofocus: bool = False) -> forms.CharField:
    """Return a form field for the reason of an action, which the audit log records."""
    widget = forms.Textarea(attrs={"rows": rows, **({"autofocus": True} if autofocus else {})})
    help_text = "Recorded with your name in the audit log."
    return forms.CharField(required=required, max_length=LONGEST, widget=widget, help_text=help_text)


class ReasonForm(forms.Form):
    """A form that asks for the reason. Its hidden field `seen` has the state of the object that the page showed."""

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
    """The content of the page that asks a person to confirm an action.

    Attributes:
        title, button: title of the page, and label of its button.
        says: sentences about what the action will do.
        seen: a text that changes if the object changes, for the hidden field of the form.
        back: URL of the page of the object that the action changes, to which Cancel leads.
        about: name of that object.
        facts: the state of the object now, as labels and values.
        idle: why the action would change nothing; empty: the action would change something.
        begin: initial values of the form.
        notice: a text for the page if the action needs a second person; empty: no second person is needed.
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
        """Return the label of the button: `button` or, if the action needs a second person, "Request approval"."""
        return requested.BUTTON if self.notice else self.button


@dataclass(frozen=True, slots=True)
class Done:
    """The result of an action that was done. `sentence`: what was done. It is shown on the page at `address`."""

    address: str
    sentence: str


@dataclass(frozen=True, slots=True)
class NotDone:
    """The result of an action that was not done. `why`: the reason for the person, such as who changed the object."""

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
    """Show the confirmation page. When the person submits a valid form, execute the action.

    `question`: returns the content of the page. `act`: executes the action; it takes the form's values and the user's
    name. If `act` raises ApprovalNeeded, a request for approval is stored instead.
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
            messages.success(request, answer.sentence)
            return HttpResponseRedirect(answer.address)
        refused = answer.why
    asked = question()
    if form is None or refused:
        entered = form.cleaned_data if form else {}
        form = form_class(initial={**asked.begin, **entered, "seen": asked.seen})
    context: dict[str, Any] = {
        **admin.site.each_context(request), "title": asked.title, "asked": asked, "form": form, "refused": refused,
    }  # fmt: skip
    return TemplateResponse(request, "reprocessing/admin/confirm_action.html", context)
