"""A page with a form and a preview: it checks the entered values and shows what would change, before it saves them.

The preview page contains a digest of the changes. If saving would meanwhile make other changes, nothing is saved, and
a new preview is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.views.decorators.http import require_http_methods

from reprocessing.admin.approvals import requested
from reprocessing.admin.dlqs.finding_links import named_fields, with_links
from reprocessing.admin.site.confirmed_action import Done, reason_field
from reprocessing.admin.site.form_sections import Section, SectionedForm, sections_of
from reprocessing.admin.site.preview import Preview, digest
from reprocessing.admin.site.visible_rows import without_hidden_names
from reprocessing.domain.approvals.requested_action import ApprovalNeeded
from reprocessing.domain.errors import RedriveError
from reprocessing.models import AuditEntry
from reprocessing.pipeline.dlqs.examine import Severity

_WRITE: Final = "write"


class PreviewForm(SectionedForm):
    """A form that adds or changes a row.

    Its hidden field `opened` has a digest of the row's values, so that a change by somebody else is noticed.

    Attributes:
        fixed: names of the fields that only the form of a new row has, because they cannot be changed later.
        row: the row that the form changes; None: the form adds a row.
        now: a digest of the values that the row has now.
    """

    fixed: ClassVar[tuple[str, ...]] = ()

    opened = forms.CharField(required=False, widget=forms.HiddenInput)
    reason = reason_field(required=False)

    def __init__(self, data: QueryDict | None, row: Any, now: Mapping[str, Any]) -> None:  # noqa: ANN401  of any model
        self.row, self.now = row, digest(now)
        super().__init__(data, initial={"opened": self.now, **now})
        for name in self.fixed if row else ():
            del self.fields[name]

    def clean(self) -> dict[str, Any]:
        """Return the entered values. Refuse the form if somebody changed the row after the form was opened."""
        given = super().clean() or self.cleaned_data
        if self.row and given.get("opened") != self.now:
            raise forms.ValidationError(
                f"Somebody else changed {self.row} after you opened this page: {self.last()} Open the page again."
            )
        return given

    def last(self) -> str:
        """Return a sentence about who changed the row last, and why."""
        return signature(self.row.reviews.order_by("-pk").first())


@dataclass(frozen=True, slots=True, kw_only=True)
class FormPage:
    """The texts and functions of a page with a form and a preview.

    Attributes:
        permission: the permission that the page needs.
        title: title of the page.
        intro: the first sentences of the page.
        button: label of the button that saves.
        back: URL of the page to which Cancel leads.
        about: name of the page to which Cancel leads.
        make: function that returns the form. It takes the submitted values; None: the form gets the row's values.
        make_preview: function that takes a valid form and returns its preview.
        write: function that saves. It takes the preview, the user's name and the reason.
        preview: name of the template that shows `Preview.preview`; empty: there is no such template.
        extra: further values for the page's template.
    """

    permission: str
    title: str
    intro: str
    button: str
    back: str
    about: str
    make: Callable[[QueryDict | None], PreviewForm]
    make_preview: Callable[[Any], Preview]
    write: Callable[[Preview, str, str], Done]
    preview: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


def page(request: HttpRequest, asked: FormPage) -> HttpResponse:
    """Show the form, then the preview. When the person confirms, save if the changes are still those of the preview.

    Raises:
        PermissionDenied: the person lacks the permission `asked.permission`.
    """
    if not request.user.has_perm(asked.permission):
        raise PermissionDenied
    return require_http_methods(["GET", "HEAD", "POST"])(_page)(request, asked)


def signature(review: AuditEntry | None) -> str:
    """Return a text that says who made a change, and why; without an audit entry (`review`), "user unknown."."""
    return f'{review.by} ("{review.reason}").' if review else "user unknown."


def _page(request: HttpRequest, asked: FormPage) -> HttpResponse:
    if request.method != "POST":
        return show_initial(request, asked)
    form = asked.make(request.POST)
    preview, refused = _make_preview(asked, form)
    if preview is not None:
        refused = _why_not(request, form, preview)
        try:
            if not refused and request.POST.get("do") == _WRITE:
                return _save(request, asked, preview, form.cleaned_data["reason"])
        except RedriveError as error:
            refused = str(error)
    return _shown(request, asked, form, preview, refused)


def show_preview(request: HttpRequest, asked: FormPage, values: Mapping[str, Any]) -> HttpResponse:
    """Show the form with these values in place of its initial values, and its preview. Nothing is saved."""
    form = asked.make(None)
    filled = QueryDict(mutable=True)
    for name in form.fields:
        value = values.get(name, form[name].value())
        parts = value if isinstance(value, list) else [value]
        filled.setlist(name, [str(part) for part in parts if part is not None])
    form = asked.make(filled)
    preview, refused = _make_preview(asked, form)
    return _shown(request, asked, form, preview, refused)


def _make_preview(asked: FormPage, form: PreviewForm) -> tuple[Preview | None, str]:
    """Return the preview and an empty text. If no preview can be made, return None and the reason.

    The reason is empty if the form has errors, because the form shows its errors itself.
    """
    try:
        return (asked.make_preview(form), "") if form.is_valid() else (None, "")
    except RedriveError as error:
        return None, str(error)


def _save(request: HttpRequest, asked: FormPage, preview: Preview, reason: str) -> HttpResponse:
    """Save the previewed values, or request an approval if a second person is needed. Redirect to the result."""
    try:
        done = asked.write(preview, request.user.get_username(), reason)
    except ApprovalNeeded as needed:
        done = Done(*requested.request_approval(request, needed, reason))
    messages.success(request, done.sentence)
    return HttpResponseRedirect(done.address)


def show_initial(request: HttpRequest, asked: FormPage) -> HttpResponse:
    """Show the form with its initial values and without a preview. Values in the request are ignored."""
    return _shown(request, asked, asked.make(None), None, "")


def _shown(
    request: HttpRequest, asked: FormPage, form: PreviewForm, preview: Preview | None, refused: str
) -> HttpResponse:
    context = {
        **admin.site.each_context(request), "title": asked.title, "asked": asked, "form": form, "look": preview,
        "refused": with_links(without_hidden_names(request, refused), form.fields),
        "found": _found(request, preview, form), "parts": _sections(form, preview), **asked.extra,
        "notice": requested.notice(request, preview.about) if preview else "", "request_button": requested.BUTTON,
    }  # fmt: skip
    return TemplateResponse(request, "reprocessing/admin/preview_form.html", context)


def _sections(form: PreviewForm, preview: Preview | None) -> list[Section]:
    """Return the sections of the form. A section is open if a warning or an error names one of its fields."""
    findings = [finding for finding in preview.findings if finding.severity is not Severity.NOTE] if preview else []
    troubled = {name for found in findings for name in named_fields(f"{found.what} {found.cure}", form.fields)}
    proposed = preview.proposed if preview else {}
    return sections_of(form, proposed=proposed, troubled=troubled, has_preview=preview is not None)


def _found(request: HttpRequest, preview: Preview | None, form: PreviewForm) -> list[tuple[Severity, str, str]]:
    """Return the problems that the preview shows: for each its severity, a text, and what to do about it.

    The texts were written for commands. Here they have labels of form fields in place of options such as --rate.
    """

    def shown(text: str) -> str:
        return with_links(without_hidden_names(request, text), form.fields)

    found = preview.findings if preview else ()
    return [(finding.severity, shown(finding.what), shown(finding.cure)) for finding in found]


def _why_not(request: HttpRequest, form: PreviewForm, preview: Preview) -> str:
    """Return why the submitted values cannot be saved; empty: they can be saved, or the person did not press Save."""
    if request.POST.get("do") != _WRITE:
        return ""
    if preview.is_refused:
        return "Fix the errors below first."
    if not preview.changes:
        return "Nothing would change."
    if preview.seen != request.POST.get("seen"):
        return "The effect is no longer what you saw. Check the new preview below, then save again."
    if not form.cleaned_data["reason"]:
        form.add_error("reason", "Give a reason.")
        return "Give a reason."
    return ""
