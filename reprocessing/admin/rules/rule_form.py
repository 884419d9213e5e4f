"""The form that adds or changes a rule; its preview shows what the rule would do to recent messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.http import QueryDict

from reprocessing.admin.rules import conditions_field, rule_draft
from reprocessing.admin.rules.condition_builder import ConditionBuilder
from reprocessing.admin.site.fields import JITTER, choice, number, slug, text, utc_datetime
from reprocessing.admin.site.preview_form import PreviewForm, signature
from reprocessing.admin.targets.target_fields import visible_target
from reprocessing.domain.routing.first_match import Action
from reprocessing.models import AuditEntry, DeadLetterQueue, RateClass, Rule
from reprocessing.models.dlq import Jitter
from reprocessing.models.target import MAX_SECONDS
from reprocessing.pipeline.dlqs import examine
from reprocessing.store.rights.visible_dlqs import VisibleDlqs
from reprocessing.store.routing import rule_changes, rules

_WORDS: Final = {
    Action.REPLAY: "replay: send as set below",
    Action.DELAY: "delay: send after the delay below",
    Action.DIVERT: "divert: send to another target",
    Action.QUARANTINE: "quarantine: park for review",
    Action.DISCARD: "discard: do not send",
    Action.HOLD: "hold: wait until the rule changes",
}


class RuleForm(PreviewForm):
    """The form of a rule. It is refused if any rule changed after the form was opened: the effect may have changed."""

    sections = (
        ("Messages", ("name", "dlq", "position", "conditions")),
        ("Action", ("action", "delay", "target", "enabled")),
        ("(Rate and backoff)", ("rate_class", "backoff_base", "backoff_cap", "backoff_jitter")),
        ("(Validity)", ("valid_from", "valid_until")),
    )

    fixed = ("name",)

    name = slug("Your name for the rule: letters a to z, digits, - and _, no spaces. Example: bad-orders.")
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
    delay = number("Delay (s)", "Only for the action delay: how long the message waits.", least=0.001, most=MAX_SECONDS)
    target = text("Target", "For the actions replay and divert: a registered target, or the URL or ARN of a queue.")
    enabled = forms.BooleanField(required=False, label="Enabled", help_text="A rule that is not enabled does nothing.")
    rate_class = forms.ModelChoiceField(
        RateClass.objects.order_by("name"), required=False, label="Rate class", empty_label="none"
    )
    backoff_base = number(
        "Initial backoff (s)",
        "How long a message waits after its first failed attempt. Empty: as the rate class or the DLQ says.",
        least=0, most=MAX_SECONDS,
    )  # fmt: skip
    backoff_cap = number(
        "Max backoff (s)", "The longest wait between two attempts. Set both backoff fields, or neither.",
        least=0, most=MAX_SECONDS,
    )  # fmt: skip
    backoff_jitter = choice("Jitter", JITTER, empty="full if a backoff is set here")
    valid_from = utc_datetime("Valid from (UTC)")
    valid_until = utc_datetime("Valid until (UTC)")

    def __init__(
        self, seen: VisibleDlqs, data: QueryDict | None, row: Rule | None, begin: Mapping[str, Any],
        builder: ConditionBuilder,
    ) -> None:  # fmt: skip
        super().__init__(data, row, {"opened": str(rules.version()), **(_settings(row) if row else {}), **begin})
        self.seen, self.builder = seen, builder
        dlq, rate_class = self.fields["dlq"], self.fields["rate_class"]
        dlq.queryset = seen.rows(DeadLetterQueue.objects.order_by("name"))  # type: ignore[attr-defined]  # a choice field's
        rate_class.queryset = seen.rows(RateClass.objects.order_by("name"))  # type: ignore[attr-defined]  # likewise
        if not seen.are_all:  # a rule without DLQ would decide about messages of other teams, too
            dlq.required, dlq.empty_label = True, "choose a DLQ"  # type: ignore[attr-defined]  # likewise

    def clean(self) -> dict[str, Any]:
        """Return the entered values. Refuse the form if somebody changed any rule after it was opened."""
        if self.builder.has_errors:  # each error is shown beside its row
            self.errors.pop("conditions", None)
            self.add_error("conditions", "Correct the marked conditions.")
        if self.cleaned_data.get("opened") != str(rules.version()):
            raise forms.ValidationError(
                f"Somebody changed the rules after you opened this page: {last_change(self.seen)} Open the page again."
            )
        return self.cleaned_data

    def entered(self) -> tuple[str, dict[str, Any]]:
        """Return the rule's name, and the entered values by the name of their database column.

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


def _settings(row: Rule) -> dict[str, Any]:
    found = {name: getattr(row, name) for name in rule_changes.FIELDS}
    return {**found, "conditions": rule_draft.to_json(row.conditions), "target": row.target.arn if row.target else ""}


def decides(action: str) -> str:
    """Return sentences for people: when an enabled rule with this action decides about a message."""
    released = "If a person releases a message that the rule quarantined, the rule does not quarantine it again."
    is_final = action == Action.QUARANTINE
    return f"It decides about each message before the message is sent.{f' {released}' if is_final else ''}"


def last_change(seen: VisibleDlqs) -> str:
    """Return a sentence about who last changed any rule, and why.

    The sentence is "user unknown." if the changed rule belongs to a DLQ that the person does not see.
    """
    # The first three conditions are those of an index.
    of_rules = AuditEntry.objects.filter(letter=None, run=None, group=None, before__has_key="rule")
    last = of_rules.order_by("-pk").first()
    return signature(seen.rows(AuditEntry.objects.filter(pk=last.pk)).first() if last else None)
