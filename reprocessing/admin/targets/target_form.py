"""Adding a target, or changing what is remembered of one, through the examination that add_target makes."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.urls import reverse

from reprocessing import conf
from reprocessing.admin.site import examined_form
from reprocessing.admin.site.confirmed_action import Done
from reprocessing.admin.site.examined_form import Asked, Look, Sheet, digest
from reprocessing.admin.site.fields import OFF, RoleField, number, text, whole
from reprocessing.admin.targets.target_fields import BRAKES, PACE, Pace, said
from reprocessing.domain.errors import AnswersAreUnclear, TargetIsUnclear
from reprocessing.domain.message import arn
from reprocessing.domain.targets import http_responses
from reprocessing.domain.targets.webhook_headers import is_media_type
from reprocessing.models import Target
from reprocessing.models.target import LONGEST_ANSWER
from reprocessing.pipeline.dlqs import examine
from reprocessing.store.targets import targets

ADD, CHANGE = "reprocessing.add_target", "reprocessing.change_target"
_REACH: Final = ("timeout", "answers", "content_type", "secret", "role_arn", "region", "refires")


class TargetSheet(Pace, Sheet):
    """Everything that can be said of a target; what is left as it stands, or empty on a new one, was not said."""

    sections = (
        ("What it is", ("target",)),
        ("How letters get there", _REACH),
        ("Outcome and pace", PACE),
        ("(Breaker and ramp)", BRAKES),
    )

    target = forms.CharField(
        max_length=2_048, label="Target",
        help_text="The URL of an HTTP endpoint, or the ARN of a function, a queue, an SNS topic or an EventBridge bus.",
    )  # fmt: skip
    timeout = number("Seconds it may take to answer", "Of endpoints and functions.", least=0.1, most=LONGEST_ANSWER)
    answers = text(
        "What status codes mean", 'Of endpoints, as in "409=success 4xx=retry": success, retry, wait or poison.'
    )
    content_type = text("Content type", "Of what an endpoint is sent; empty: by the letter.")
    secret = text("Secret that signs", "The name of one of REDRIVE_SECRETS; of endpoints.")
    role_arn = RoleField(required=False, max_length=2_048, label="Role of another account", help_text="Its ARN.")
    region = text("Region", "Empty: by its ARN.")
    refires = whole("Others who get each letter again", "Of topics and buses: so many are agreed to.", least=0)

    def __init__(self, data: QueryDict | None, row: Target | None, begin: dict[str, Any]) -> None:
        self.row = row
        stands = _stands(row) if row else begin
        self.stands = digest(stands)
        super().__init__(data, initial={**stands, "opened": self.stands})
        if row:
            del self.fields["target"]

    def clean_answers(self) -> str:
        """In their plainest form."""
        try:
            return str(http_responses.parse(given)) if (given := str(self.cleaned_data["answers"])) else ""
        except AnswersAreUnclear as error:
            raise forms.ValidationError(str(error)) from error

    def clean_content_type(self) -> str:
        """One that is one."""
        given = str(self.cleaned_data["content_type"])
        if given and not is_media_type(given):
            raise forms.ValidationError("This is no content type; application/json is one.")
        return given

    def clean_region(self) -> str:
        """One that is one."""
        given = str(self.cleaned_data["region"])
        if given and not arn.is_region(given):
            raise forms.ValidationError("This is no region; eu-west-1 is one.")
        return given

    def clean(self) -> dict[str, Any]:
        """Refused when somebody changed it since its sheet was opened, or a field cannot be empty."""
        given = super().clean() or self.cleaned_data
        if self.row and given.get("opened") != self.stands:
            raise forms.ValidationError(
                f"Somebody else changed {self.row} since you opened this page: {_last(self.row)} Open it again."
            )
        for name in ("proof", "advance", "window", "timeout", "region", *BRAKES):
            if self.row and name in self.changed_data and given.get(name) in ("", None):
                self.add_error(name, "It cannot be empty.")
        return given


def page(request: HttpRequest, target: int | None = None) -> HttpResponse:
    """The sheet of a new target, or of one that is known."""
    row = Target.objects.filter(pk=target).first() if target else None
    if target and row is None:
        raise Http404
    name = "admin:reprocessing_target_"
    asked = Asked(
        permission=CHANGE if row else ADD,
        title=f"Change {row}" if row else "Add a target",
        intro="It is looked at first; nothing is sent there or written by that. Letters go there when a dlq or a rule "
        "says so.",
        button="Change it" if row else "Add it",
        back=reverse(f"{name}change", args=[row.pk]) if row else reverse(f"{name}changelist"),
        about=str(row) if row else "Targets",
        make=lambda data: TargetSheet(data, row, {}),
        look=_look,
        write=_write,
    )
    return examined_form.page(request, asked)


def _look(form: TargetSheet) -> Look:
    named = form.row.arn if form.row else form.cleaned_data["target"]
    given = said(form, (*_REACH, *PACE, *BRAKES))
    found = examine.target(named, given, conf.current())
    if form.row is None and found.row is not None:
        raise TargetIsUnclear(f"{found.arn} is known already. Change it on its own page.")
    return Look(
        payload=found,
        changes=targets.differences(found.arn, found.fields, found.row),
        findings=list(found.findings),
        new=found.row is None,
        facts=(("Target", found.arn), ("Kind", found.kind.label)),
    )


def _write(look: Look, by: str, reason: str) -> Done:
    found: examine.TargetCase = look.payload
    targets.put(found.arn, found.fields, by=by, reason=reason, seen=look.changes)
    row = Target.objects.get(arn=found.arn)
    told = (
        f"{row} is added. Nothing goes there yet: a dlq or a rule has to say so." if look.new else f"{row} is changed."
    )
    return Done(reverse("admin:reprocessing_target_change", args=[row.pk]), told)


def _stands(row: Target) -> dict[str, Any]:
    """How a target stands, by the names of the sheet's fields."""
    breaker = row.breakers.get(rate_class=None)
    brakes = {one: getattr(breaker, its) for one, its in targets.BRAKES.items()}
    plain = {one: getattr(row, one) for one in (*_REACH, "proof", "advance")}
    rates = {one: OFF if (value := getattr(row, one)) is None else f"{value:g}" for one in ("rate", "burst")}
    return {**plain, **brakes, **rates, "window": row.window or None, "ramp_from": f"{breaker.ramp_from:g}"}


def _last(row: Target) -> str:
    """Who did something to it last."""
    last = row.reviews.order_by("-pk").first()
    return f'{last.by} ("{last.reason}").' if last else "nobody knows who."
