"""The form that adds or changes a target, with the checks of the command add_target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse

from reprocessing import conf
from reprocessing.admin.site import preview_form, visible_rows
from reprocessing.admin.site.confirmed_action import Done
from reprocessing.admin.site.fields import OFF, RoleField, number, text, whole_number
from reprocessing.admin.site.preview import Preview
from reprocessing.admin.site.preview_form import FormPage, PreviewForm
from reprocessing.admin.targets.target_fields import BRAKES, PACE, TargetFieldsForm, changed_values, refuse_other_role
from reprocessing.domain.errors import InvalidAnswers, InvalidTarget
from reprocessing.domain.message import arn
from reprocessing.domain.targets import http_responses
from reprocessing.domain.targets.webhook_headers import is_media_type
from reprocessing.models import Target
from reprocessing.models.target import MAX_TIMEOUT
from reprocessing.pipeline.dlqs import examine
from reprocessing.store.rights.visible_dlqs import VisibleDlqs
from reprocessing.store.targets import targets

ADD, CHANGE = "reprocessing.add_target", "reprocessing.change_target"
_REACH: Final = ("timeout", "answers", "content_type", "secret", "role_arn", "region", "confirmed_fanout")


class TargetForm(TargetFieldsForm, PreviewForm):
    """The form of a target's settings. It saves only changed fields; a new target gets defaults for empty fields."""

    sections = (
        ("Target", ("target",)),
        ("Connection", _REACH),
        ("Outcome and rate", PACE),
        ("(Circuit breaker and ramp-up)", BRAKES),
    )
    fixed = ("target",)

    target = forms.CharField(
        max_length=2_048, label="Target",
        help_text="The URL of an HTTP endpoint, or the ARN of a function, a queue, an SNS topic or an EventBridge bus.",
    )  # fmt: skip
    timeout = number("Timeout (s)", "Max time until an endpoint or function answers.", least=0.1, most=MAX_TIMEOUT)
    answers = text(
        "Status codes",
        'What status codes of an HTTP endpoint mean, as in "409=success 4xx=retry". success: delivered. retry: send '
        "again after the backoff; the attempt counts. wait: send again; the attempt does not count. poison: park the "
        "message.",
    )
    content_type = text(
        "Content type",
        "For HTTP endpoints: the Content-Type of requests. Empty: chosen by the "
        "attributes or the body of each message.",
    )
    secret = text(
        "Signing secret", "For HTTP endpoints: the name of a secret in REDRIVE_SECRETS. Empty: requests are not signed."
    )
    role_arn = RoleField(
        required=False,
        max_length=2_048,
        label="IAM role",
        help_text="ARN of the role to assume for sends to the target. Empty: the role of the service.",
    )
    region = text("Region", "The AWS region. Empty: the region in the ARN.")
    confirmed_fanout = whole_number(
        "Other subscribers",
        "For topics and buses: how many other subscribers get each message again. By entering the number, you accept "
        "this.",
        least=0,
    )

    def clean_answers(self) -> str:
        """Return the entered outcome for each HTTP status code, in a uniform spelling; empty: nothing was entered."""
        try:
            return str(http_responses.parse_answers(given)) if (given := str(self.cleaned_data["answers"])) else ""
        except InvalidAnswers as error:
            raise forms.ValidationError(str(error)) from error

    def clean_content_type(self) -> str:
        """Return the entered content type, such as application/json, or an empty text. Refuse an invalid one."""
        given = str(self.cleaned_data["content_type"])
        if given and not is_media_type(given):
            raise forms.ValidationError("Not a content type. Example: application/json")
        return given

    def clean_region(self) -> str:
        """Return the entered AWS region, or an empty text. Refuse a text that is not the name of a region."""
        given = str(self.cleaned_data["region"])
        if given and not arn.is_region(given):
            raise forms.ValidationError("Not an AWS region. Example: eu-west-1")
        return given

    def __init__(self, seen: VisibleDlqs, data: QueryDict | None, row: Target | None, now: Mapping[str, Any]) -> None:
        super().__init__(data, row, now)
        self.seen = seen

    def clean(self) -> dict[str, Any]:
        """Return the entered values.

        Refuse the form of an existing target if a field that must have a value was emptied. Also refuse another IAM
        role if the person does not see all DLQs.
        """
        given = super().clean()
        for name in ("proof", "advance", "window", "timeout", "region", *BRAKES):
            if self.row and name in self.changed_data and given.get(name) in ("", None):
                self.add_error(name, "This field cannot be empty.")
        refuse_other_role(self, self.seen)
        return given


def page(request: HttpRequest, target: int | None = None) -> HttpResponse:
    """Show the form of a target (`target`: its id; None: a new target), then the preview; save after confirmation."""
    row = visible_rows.changeable_or_403(request, Target.objects, target) if target else None
    seen = visible_rows.of(request)
    if row is None:
        visible_rows.require_all(request)
    name = "admin:reprocessing_target_"
    asked = FormPage(
        permission=CHANGE if row else ADD,
        title=f"Change {row}" if row else "Add a target",
        intro="The preview sends and saves nothing. Messages are sent to a target when a DLQ or a rule names it.",
        button="Save" if row else "Add",
        back=reverse(f"{name}change", args=[row.pk]) if row else reverse(f"{name}changelist"),
        about=str(row) if row else "Targets",
        make=lambda data: TargetForm(seen, data, row, _settings(row) if row else {}),
        make_preview=_make_preview,
        write=_write,
    )
    return preview_form.page(request, asked)


def _make_preview(form: TargetForm) -> Preview:
    named = form.row.arn if form.row else form.cleaned_data["target"]
    given = changed_values(form, (*_REACH, *PACE, *BRAKES))
    found = examine.target(named, given, conf.current())
    if form.row is None and found.row is not None:
        raise InvalidTarget(f"{found.arn} is registered already. Change it on its own page.")
    return Preview(
        payload=found,
        changes=targets.differences(found.arn, found.fields, found.row),
        findings=list(found.findings),
        new=found.row is None,
        facts=(("Target", found.arn), ("Kind", found.kind.label)),
    )


def _write(preview: Preview, by: str, reason: str) -> Done:
    found: examine.TargetCase = preview.payload
    targets.save_target(found.arn, found.fields, by=by, reason=reason, seen=preview.changes)
    row = Target.objects.get(arn=found.arn)
    added = f"{row} is added. Nothing is sent to it until a DLQ or a rule names it."
    sentence = added if preview.new else f"{row} is changed."
    return Done(reverse("admin:reprocessing_target_change", args=[row.pk]), sentence)


def _settings(row: Target) -> dict[str, Any]:
    breaker = row.breakers.get(rate_class=None)
    brakes = {name: getattr(breaker, column) for name, column in targets.BREAKER_FIELDS.items()}
    plain = {name: getattr(row, name) for name in (*_REACH, "proof", "advance")}
    rates = {name: OFF if (value := getattr(row, name)) is None else f"{value:g}" for name in ("rate", "burst")}
    return {**plain, **brakes, **rates, "window": row.window or None, "ramp_from": f"{breaker.ramp_from:g}"}
