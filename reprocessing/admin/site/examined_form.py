"""A sheet: what a person fills in is examined, and shown with what it would change, before anything is written.

What is written is what was shown: the page carries a digest of it, and another one is shown first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.views.decorators.http import require_http_methods

from reprocessing.admin.dlqs.finding_links import in_the_desk
from reprocessing.admin.site.confirmed_action import LONGEST, Done
from reprocessing.domain.errors import RedriveError
from reprocessing.pipeline.dlqs.examine import Finding, Severity
from reprocessing.store.differences import Difference

_WRITE: Final = "write"


class Sheet(forms.Form):
    """What is filled in. `sections`: the fields under their headings; those of a heading in brackets are folded."""

    sections: ClassVar[tuple[tuple[str, tuple[str, ...]], ...]] = ()

    opened = forms.CharField(required=False, widget=forms.HiddenInput)
    reason = forms.CharField(
        required=False, max_length=LONGEST, widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Recorded with your name. It is needed when this is written.",
    )  # fmt: skip

    @property
    def parts(self) -> list[tuple[str, bool, list[forms.BoundField]]]:
        """The headings, whether they are folded, and their fields."""
        found = []
        for heading, names in self.sections:
            fields = [self[name] for name in names if name in self.fields]
            folded = heading.startswith("(") and not any(one.errors for one in fields)
            found.append((heading.strip("()"), folded, fields))
        return [one for one in found if one[2]]


@dataclass(frozen=True, slots=True)
class Look:
    """What would be written, and what is to be said of it.

    Attributes:
        payload: what `write` needs.
        passed: what was looked at and found well.
        new: there was nothing of this name; all of it is new.
        version: of what else decides about it.
        facts: what was seen.
        preview: what it would do, for the sheet's own template.
    """

    payload: Any
    changes: list[Difference]
    findings: list[Finding] = field(default_factory=list)
    passed: tuple[str, ...] = ()
    new: bool = False
    version: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    preview: Any = None

    @property
    def is_refused(self) -> bool:
        """Something must be cured first."""
        return any(one.severity is Severity.REFUSE for one in self.findings)

    @property
    def shown(self) -> list[tuple[str, str, str, str]]:
        """What would change, to be read: of what, which, from, to."""
        return [(one.about, one.field.replace("_", " "), _told(one.before), _told(one.after)) for one in self.changes]

    @property
    def seen(self) -> str:
        """The digest of what would change."""
        return digest([self.version, [[one.of, one.field, one.before, one.after] for one in self.changes]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A sheet that is asked for.

    Attributes:
        make: the form, of what was sent or with what stands.
        look: examines it.
        write: writes what was looked at, by whom and why.
    """

    permission: str
    title: str
    intro: str
    button: str
    back: str
    about: str
    make: Callable[[QueryDict | None], Sheet]
    look: Callable[[Any], Look]
    write: Callable[[Look, str, str], Done]
    preview: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


def page(request: HttpRequest, asked: Asked) -> HttpResponse:
    """Asked for, the sheet as things stand; sent, what it would change; sent once more as it was shown, it is done."""
    if not request.user.has_perm(asked.permission):
        raise PermissionDenied
    return require_http_methods(["GET", "HEAD", "POST"])(_page)(request, asked)


def digest(what: object) -> str:
    """Equal values have equal ones."""
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()


def _told(value: object) -> str:
    """A value in words; of nothing, none."""
    match value:
        case None | "":
            return ""
        case bool():
            return "yes" if value else "no"
        case list():
            return " and ".join(map(str, value))
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def _page(request: HttpRequest, asked: Asked) -> HttpResponse:
    form = asked.make(request.POST if request.method == "POST" else None)
    look, refused = None, ""
    if request.method == "POST" and form.is_valid():
        try:
            look = asked.look(form)
            refused = _why_not(request, form, look)
            if not refused and request.POST.get("do") == _WRITE:
                done = asked.write(look, request.user.get_username(), form.cleaned_data["reason"])
                messages.success(request, done.told)
                return HttpResponseRedirect(done.address)
        except RedriveError as error:
            refused = str(error)
    return _shown(request, asked, form, look, refused)


def show(request: HttpRequest, asked: Asked) -> HttpResponse:
    """The sheet as it begins, whatever was sent."""
    return _shown(request, asked, asked.make(None), None, "")


def _shown(request: HttpRequest, asked: Asked, form: Sheet, look: Look | None, refused: str) -> HttpResponse:
    context = {
        **admin.site.each_context(request), "title": asked.title, "asked": asked, "form": form, "look": look,
        "refused": in_the_desk(refused, form.fields), "found": _found(look, form), **asked.extra,
    }  # fmt: skip
    return TemplateResponse(request, "reprocessing/admin/sheet.html", context)


def _found(look: Look | None, form: Sheet) -> list[tuple[Severity, str, str]]:
    """What was found, as the sheet says it: how grave it is, what it is, and its cure."""
    return [
        (one.severity, in_the_desk(one.what, form.fields), in_the_desk(one.cure, form.fields))
        for one in (look.findings if look else ())
    ]


def _why_not(request: HttpRequest, form: Sheet, look: Look) -> str:
    """Why it is not written yet, when that was asked for."""
    if request.POST.get("do") != _WRITE:
        return ""
    if look.is_refused:
        return "Cure what is refused below, and send it again."
    if not look.changes:
        return "There is nothing to change."
    if look.seen != request.POST.get("seen"):
        return "What would be written is not what you saw: it is shown below. Look at it, and send it again."
    if not form.cleaned_data["reason"]:
        form.add_error("reason", "Say why.")
        return "It takes a reason."
    return ""
