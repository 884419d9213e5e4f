"""The form that adds or changes a rule; its preview shows what the rule would do to recent messages."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final

from django import forms
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse

from reprocessing.admin.messages import show_payload
from reprocessing.admin.messages.message_page import may_see_payloads
from reprocessing.admin.rules import conditions_field, rule_draft
from reprocessing.admin.rules.rule_draft import SourceMessage
from reprocessing.admin.site import preview_form, visible_rows
from reprocessing.admin.site.confirmed_action import Done
from reprocessing.admin.site.fields import JITTER, choice, number, slug, text, utc_datetime
from reprocessing.admin.site.preview_form import FormPage, Preview, PreviewForm, signature
from reprocessing.admin.targets.target_fields import visible_target
from reprocessing.domain.errors import InvalidRule
from reprocessing.domain.routing.first_match import Action
from reprocessing.models import AuditEntry, DeadLetterQueue, RateClass, Rule
from reprocessing.models.dlq import Jitter
from reprocessing.models.target import MAX_SECONDS
from reprocessing.pipeline.dlqs import examine
from reprocessing.pipeline.routing import preview, route
from reprocessing.pipeline.routing.preview import RulePreview
from reprocessing.store.dlqs.visible_dlqs import VisibleDlqs
from reprocessing.store.ordering import lanes
from reprocessing.store.payloads import viewed_content
from reprocessing.store.routing import rule_changes, rules

ADD, CHANGE, DELETE = "reprocessing.add_rule", "reprocessing.change_rule", "reprocessing.delete_rule"
#: Max messages that a preview evaluates. The command test_rules has no such limit.
MOST: Final = 20_000
#: Seconds after which a preview stops evaluating messages.
_PATIENCE: Final = 1.0
_DAYS: Final = 7
_WORDS: Final = {
    Action.REPLAY: "replay: send, with the target, rate class and backoff set below",
    Action.DELAY: "delay: send after the delay below",
    Action.DIVERT: "divert: send to another target",
    Action.QUARANTINE: "quarantine: park for review",
    Action.DISCARD: "discard: do not send",
    Action.HOLD: "hold: keep the message and its key queued until the rule changes",
}


class RuleForm(PreviewForm):
    """The form of a rule. Saving is refused if any rule changed after the form was opened."""

    sections = (
        ("Messages", ("name", "dlq", "conditions", "position")),
        ("Action", ("action", "delay", "target", "enabled")),
        ("(Rate and backoff)", ("rate_class", "backoff_base", "backoff_cap", "backoff_jitter")),
        ("(Validity)", ("valid_from", "valid_until")),
    )

    fixed = ("name",)

    name = slug("Your name for the rule: letters, digits, - and _.")
    dlq = forms.ModelChoiceField(
        DeadLetterQueue.objects.order_by("name"), required=False, label="Dead-letter queue", empty_label="all"
    )
    conditions = conditions_field.ConditionsField(
        max_length=200_000, label="Conditions", help_text=conditions_field.HELP, initial="[]",
        widget=forms.Textarea(attrs={"rows": 6, "class": "code", "spellcheck": "false"}),
    )  # fmt: skip
    position = forms.IntegerField(
        min_value=0, max_value=2**31 - 1, initial=100, label="Position",
        help_text="Rules are evaluated from the lowest position; the first rule whose conditions all match decides.",
    )  # fmt: skip
    action = forms.ChoiceField(label="Action", choices=[(one.value, words) for one, words in _WORDS.items()])
    delay = number("Delay (s)", "Only for the action delay.", least=0.001, most=MAX_SECONDS)
    target = text("Target", "For the actions replay and divert: a registered target, or the URL or ARN of a queue.")
    enabled = forms.BooleanField(required=False, label="Enabled", help_text="A rule that is not enabled does nothing.")
    rate_class = forms.ModelChoiceField(
        RateClass.objects.order_by("name"), required=False, label="Rate class", empty_label="none"
    )
    backoff_base = number("Initial backoff (s)", "Empty: from the rate class or the DLQ.", least=0, most=MAX_SECONDS)
    backoff_cap = number("Max backoff (s)", "Set both backoff fields, or neither.", least=0, most=MAX_SECONDS)
    backoff_jitter = choice("Jitter", JITTER, empty="full if a backoff is set here")
    valid_from = utc_datetime("Valid from (UTC)")
    valid_until = utc_datetime("Valid until (UTC)")

    def __init__(self, seen: VisibleDlqs, data: QueryDict | None, row: Rule | None, begin: Mapping[str, Any]) -> None:
        super().__init__(data, row, {"opened": str(rules.version()), **(_settings(row) if row else {}), **begin})
        self.seen = seen
        dlq, rate_class = self.fields["dlq"], self.fields["rate_class"]
        dlq.queryset = seen.rows(DeadLetterQueue.objects.order_by("name"))  # type: ignore[attr-defined]  # a choice field's
        rate_class.queryset = seen.rows(RateClass.objects.order_by("name"))  # type: ignore[attr-defined]  # likewise
        if not seen.are_all:  # a rule of all DLQs would decide about messages of other teams
            dlq.required, dlq.empty_label = True, "choose a DLQ"  # type: ignore[attr-defined]  # likewise

    def clean(self) -> dict[str, Any]:
        """Return the entered values. Refuse the form if somebody changed any rule after it was opened."""
        if self.cleaned_data.get("opened") != str(rules.version()):
            raise forms.ValidationError(
                f"Somebody changed the rules after you opened this page: {last_change(self.seen)} Open the page again."
            )
        return self.cleaned_data

    def said(self) -> tuple[str, dict[str, Any]]:
        """Return the rule's name, and the values that the person entered, by column.

        Raises:
            InvalidTarget: no target has this name, several targets have it, or the person does not see the target.
            QueueUnreachable: the target is a queue that cannot be read.
        """
        given = self.cleaned_data
        found = {name: given[name] for name in rule_changes.FIELDS if name != "target"}
        to = given["target"]
        found["target"] = (visible_target(self.seen, to) or examine.queue_target(to)) if to else None
        found["backoff_jitter"] = given["backoff_jitter"] or None
        if found["backoff_base"] is not None and found["backoff_cap"] is not None and not found["backoff_jitter"]:
            found["backoff_jitter"] = Jitter.FULL.value
        return self.row.name if self.row else given["name"], found


def page(request: HttpRequest, rule: int | None = None) -> HttpResponse:
    """Show the form of a rule (`rule`: its id; None: a new rule), then the preview; save after the confirmation."""
    every = Rule.objects.select_related("dlq", "target", "rate_class")
    row, seen = visible_rows.changeable_or_403(request, every, rule) if rule else None, visible_rows.of(request)
    source = rule_draft.source_message(request) if row is None else None
    begin = source.begin() if source else {}
    asks = request.POST if request.method == "POST" else {}
    filled = "example" in asks or (source is not None and asks.get("do") == "fill")
    asked = FormPage(
        permission=CHANGE if row else ADD,
        title=f"Change {row.name}" if row else "Add a rule",
        intro=f"The preview shows what the rule would do to the messages of the last {_DAYS} days. It saves nothing.",
        button="Save" if row else "Add",
        back=_there(row),
        about=row.name if row else "Rules",
        make=lambda data: RuleForm(seen, None if filled else data, row, begin),
        look=partial(_look, sees=partial(_sees_values, request)),
        write=partial(_write, seen),
        preview="reprocessing/admin/rule_preview.html",
        extra={"source": source, "examples": conditions_field.EXAMPLES, "may_fill": may_see_payloads(request.user)},
    )
    if filled:
        begin |= _filled(request, asked.permission, source)
        return preview_form.show_initial(request, asked)
    return preview_form.page(request, asked)


def _filled(request: HttpRequest, permission: str, source: SourceMessage | None) -> dict[str, Any]:
    """Return the submitted values, with conditions added: the chosen example, or the chosen fields of a message."""
    values = "values" in request.POST
    if not request.user.has_perm(permission) or (values and not request.user.has_perm("reprocessing.view_payload")):
        raise PermissionDenied
    sent = {name: request.POST[name] for name in RuleForm.base_fields if name in request.POST}
    said = sent.get("conditions", "[]")
    if "example" in request.POST:
        said = conditions_field.with_example(said, request.POST["example"])
    elif source is not None:
        ticked = request.POST.getlist("add")
        said = rule_draft.with_conditions(source, said, ticked, values=values, by=request.user.get_username())
    return sent | {"conditions": said, "enabled": "enabled" in request.POST}


def _there(row: Rule | None) -> str:
    name = "admin:reprocessing_rule_"
    return reverse(f"{name}change", args=[row.pk]) if row else reverse(f"{name}changelist")


def _sees_values(request: HttpRequest, dlq: int | None) -> bool:
    """Return whether this person may see all values in messages of this DLQ, also masked ones; None: of all DLQs."""
    if not may_see_payloads(request.user):
        return False
    return show_payload.may_reveal(request) or not viewed_content.masks_fields(dlq)


def _look(form: RuleForm, *, sees: Callable[[int | None], bool]) -> Preview:
    name, fields = form.said()
    row = rule_changes.draft_rule(name, fields)
    new = row._state.adding  # noqa: SLF001 - Django's own word for it
    if new != (form.row is None):
        raise InvalidRule(f'A rule named "{name}" exists already. Use another name, or change that rule.')
    found = rule_changes.differences(name, fields)
    changes = [change for change in found if not new or change.after not in (None, [], False)]
    version = form.cleaned_data["opened"]
    shown = _preview(row, sees=sees(row.dlq_id))
    about = rule_changes.counted_messages(row, rule_changes.find_rule(name))
    return Preview(
        payload=(name, fields, version), changes=changes, new=new, version=version, preview=shown, about=about
    )


def _preview(row: Rule, *, sees: bool) -> dict[str, Any]:
    """Return, as template values, what the rule would do to messages of the last 7 days.

    `sees`: whether the person may see all values in these messages. If not, a rule with conditions that reveal values
    is not tested, and `closed` has these conditions.
    """
    mine = rules.bind(row)
    closed = [] if sees else [str(condition) for condition in mine.rule.conditions if condition.reveals_values]
    if closed:
        return {"closed": closed}
    others = [other for other in rules.in_force().rules if other.rule.id != mine.rule.id]
    since = lanes.database_now() - timedelta(days=_DAYS)
    found = preview.letters(
        [*others, mine], since=since, dlq=row.dlq_id, focus=mine.rule.id, most=MOST, stop=_impatient()
    )
    return {"found": found, "shares": list(map(_share, found.shares)), "days": _DAYS, "enabled": row.enabled}


def _impatient() -> Callable[[], bool]:
    until = time.monotonic() + _PATIENCE
    return lambda: time.monotonic() >= until


def _share(one: RulePreview) -> dict[str, Any]:
    """Return the preview of one rule as template values.

    Its counts become lists, because in a template `.items` of a Counter would look up the key "items".
    """
    counts = {"acting": one.would_act_on, "before": one.matched_before, "taken": one.taken_first}
    return {"is": one, **{name: sorted(counted.items()) for name, counted in counts.items()}}


def _write(seen: VisibleDlqs, look: Preview, by: str, reason: str) -> Done:
    name, fields, version = look.payload
    with transaction.atomic():
        if str(rules.lock().version) != version:
            raise InvalidRule(
                f"Somebody changed the rules after you opened this page: {last_change(seen)} Open the page again."
            )
        done = rule_changes.save_rule(name, fields, by=by, reason=reason)
    route.wake_stopped(route.RuleBook.load())
    verb = "added" if done.new else "changed"
    effect = (
        "It decides about each message before the message is sent." if fields["enabled"] else "It is not enabled yet."
    )
    return Done(reverse("admin:reprocessing_rule_change", args=[done.id]), f"{name} is {verb}. {effect}")


def _settings(row: Rule) -> dict[str, Any]:
    found = {name: getattr(row, name) for name in rule_changes.FIELDS}
    return {**found, "conditions": rule_draft.to_json(row.conditions), "target": row.target.arn if row.target else ""}


def last_change(seen: VisibleDlqs) -> str:
    """Return a sentence about who changed a rule last, and why; "user unknown" if the person does not see that rule."""
    last = AuditEntry.objects.filter(before__has_key="rule").order_by("-pk").first()
    return signature(seen.rows(AuditEntry.objects.filter(pk=last.pk)).first() if last else None)
