"""The form that adds a DLQ or changes its settings, with the checks of the command add_dlq."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.contrib.auth.models import Group
from django.http import QueryDict

from reprocessing.admin.dlqs import mask_limits, team_limits
from reprocessing.admin.dlqs.dlq_choices import (
    DELETE_WHEN,
    LATE,
    MISSING_KEY,
    MODES,
    PARKED_HEAD,
    TASKS,
    YES_NO,
)
from reprocessing.admin.site import fields
from reprocessing.admin.site.fields import JITTER, choice, lines, number, text, whole_number
from reprocessing.admin.site.preview_form import PreviewForm, signature
from reprocessing.admin.targets.target_fields import BRAKES, PACE, TargetFieldsForm, changed_values
from reprocessing.models import AuditAct, DeadLetterQueue
from reprocessing.models.dlq import MAX_DAYS, MAX_HELD_COPIES
from reprocessing.models.target import MAX_SECONDS, TargetKind
from reprocessing.pipeline.dlqs.examine import Wanted
from reprocessing.store.dlqs.visible_dlqs import VisibleDlqs

_SHAPES: Final = "Where the key is: system:NAME, attribute:NAME, body:JMESPATH, message-id, content-hash or none."
#: Fields of the form that set the DLQ's column of the same name.
COLUMNS: Final = (
    "mode", "ordering_key", "sequence", "idempotency_key", "missing_key", "delete_when", "max_attempts", "backoff_base",
    "backoff_cap", "backoff_jitter", "new_key_delay", "when_parked", "stale", "receive_limit", "parking_url", "at_once",
    "message_type", "tenant", "waves", "wave_success", "give_up_after", "role_arn", "held_copies_limit",
    "keep_bodies", "approval_above",
)  # fmt: skip
_MAY_BE_EMPTY: Final = frozenset({
    "give_up_after", "new_key_delay", "receive_limit", "parking_url", "message_type", "tenant", "role_arn",
    "keep_bodies", "approval_above",
})  # fmt: skip


class DlqForm(TargetFieldsForm, PreviewForm):
    """The form of a DLQ's settings. It saves only changed fields; a new DLQ gets defaults for empty fields."""

    sections = (
        ("Queue", ("name", "url", "mode", "sources", "to", "role_arn")),
        ("Keys and order", ("ordering_key", "missing_key", "sequence", "idempotency_key", "stale", "when_parked")),
        ("Attempts", ("max_attempts", "backoff_base", "backoff_cap", "backoff_jitter")),
        ("Fields shown without the permission to see payloads, and masked fields", ("public_fields", "masked_fields")),
        ("(Outcome and rate, for all targets of the DLQ)", PACE),
        ("(Waves, circuit breakers and ramp-up)", ("waves", "wave_success", "give_up_after", *BRAKES)),
        ("(Approvals)", ("approval_above",)),
        ("(Schedule, in mode automatic)", ("interval", "crontab", "at_once")),
        (
            "(SQS copies and parking)",
            ("delete_when", "held_copies_limit", "new_key_delay", "receive_limit", "parking_url", "keep_bodies"),
        ),
        ("(Fields for rules)", ("message_type", "tenant")),
        ("(Celery workers)", ("kind", *TASKS)),
        ("(Teams)", ("teams",)),
    )
    fixed = ("name", "url")

    name = fields.slug("Your name for the DLQ: letters, digits, - and _.")
    url = forms.CharField(max_length=2_048, label="URL", help_text="The URL of the queue. It cannot be changed later.")
    mode = choice("Mode", MODES)
    sources = lines(
        "Source queues",
        "Usually empty: enter only sources that SQS does not list. One per line: the URL of a queue, or the ARN of a "
        "function, a subscription or an EventBridge target.",
    )
    to = text(
        "Target",
        "Where messages of the source queues above are sent; if none are entered, messages of all source queues. "
        'Enter a registered target, the URL of a queue, or "off" for the source queue. Empty: no change.',
    )
    role_arn = fields.RoleField(
        required=False, max_length=2_048, label="IAM role", help_text="ARN of a role to assume for the DLQ, if any."
    )
    ordering_key = fields.SelectorField(
        label="Ordering key", help_text=f"{_SHAPES} Default: none; FIFO: system:MessageGroupId."
    )
    sequence = fields.SelectorField(
        label="Sequence",
        help_text="Where the value is that orders a key's messages. Default: system:SentTimestamp; FIFO: "
        "system:SequenceNumber.",
    )
    idempotency_key = fields.SelectorField(
        label="Idempotency key", help_text="Only one message per key is delivered. Default: message-id."
    )
    missing_key = choice("Missing key", MISSING_KEY, "What to do with a message that has no ordering key.")
    stale = choice(
        "Late message", LATE, "What to do with a message if a later message of its key was delivered before."
    )
    when_parked = choice("After parking", PARKED_HEAD, "What to do when a message of a key is parked.")
    max_attempts = whole_number("Max attempts")
    backoff_base = number("Initial backoff (s)", "After the first failure; then doubled.", least=0, most=MAX_SECONDS)
    backoff_cap = number("Max backoff (s)", least=0, most=MAX_SECONDS)
    backoff_jitter = choice("Jitter", JITTER)
    public_fields = fields.ExpressionsField(
        required=False, max_length=20_000, label="Public body fields", widget=forms.Textarea(attrs={"rows": 3}),
        help_text="JMESPath, one per line, such as order.id. Everybody who may see messages sees these fields.",
    )  # fmt: skip
    masked_fields = fields.MaskRulesField(
        required=False, max_length=20_000, label="Masked fields", widget=forms.Textarea(attrs={"rows": 3}),
        help_text="One per line: a name, such as email, or JMESPath, such as cards[*].number. Their values are shown "
        "only to people who may reveal them.",
    )  # fmt: skip
    waves = choice("Waves", YES_NO, "Send 1 message first, then 10, then 100, then all.")
    wave_success = number("Wave success ratio", "The share of a wave that must succeed.", least=0, most=1)
    give_up_after = number(
        "Give up after (s)",
        "Mode automatic: if no message to a target succeeds for this long, the run pauses and people are notified. "
        "Empty: never.",
        least=1, most=MAX_SECONDS,
    )  # fmt: skip
    approval_above = whole_number(
        "Second person above (messages)",
        "Runs, discards, releases and edits of more messages, and rule changes, need a second person. 0: all. Empty: "
        "as set for all DLQs. Lifting it needs a second person, too.",
        least=0,
    )
    interval = whole_number("Poll interval (s)", "Default: 60.", most=MAX_SECONDS)
    crontab = fields.CrontabField(
        required=False, max_length=200, label="Poll crontab",
        help_text="Instead of a poll interval. Five fields: minute hour day month weekday.",
    )  # fmt: skip
    at_once = choice("Poll again", YES_NO, "After a poll that found messages, poll again at once.")
    delete_when = choice("Delete SQS copies", DELETE_WHEN, empty="by queue type")
    held_copies_limit = whole_number(
        "Max SQS copies",
        "How many captured messages stay in the DLQ, in flight, at most.",
        least=0,
        most=MAX_HELD_COPIES,
    )
    keep_bodies = whole_number(
        "Keep bodies (days)",
        "How long bodies are kept after a message is delivered, duplicate or discarded. Empty: as long as the history.",
        least=0, most=MAX_DAYS,
    )  # fmt: skip
    new_key_delay = number(
        "First delay (s)",
        "How long the first message of a key waits after its capture. Empty: the target's visibility timeout.",
        least=0, most=MAX_SECONDS,
    )  # fmt: skip
    receive_limit = whole_number(
        "Max receive count", "A message that this service received more often from the DLQ is parked. Empty: no limit."
    )
    parking_url = text("Parking queue", "The URL of an SQS queue that gets a copy of parked messages. Empty: none.")
    message_type = fields.SelectorField(
        shared=True, or_none=True, label="Message type",
        help_text="Where messages have their type: attribute:NAME or body:JMESPATH. Empty: failure groups find it by "
        "usual names. none: failure groups show no types.",
    )  # fmt: skip
    tenant = fields.SelectorField(
        shared=True, label="Tenant", help_text="Where messages have their tenant: attribute:NAME or body:JMESPATH."
    )
    kind = choice(
        "Consumers", ((TargetKind.CELERY, "Celery workers"), (TargetKind.SQS, "others")),
        "What consumes the source queues.", empty="unchanged; new DLQ: others",
    )  # fmt: skip
    strips_eta, strips_expires, resets_retries, renews_id = (
        choice(words, YES_NO, empty="unchanged; new DLQ: no") for words in TASKS.values()
    )

    teams = forms.MultipleChoiceField(
        required=False, label="Teams",
        help_text="Groups whose members see the DLQ. None selected: only people who see the DLQs of all teams.",
    )  # fmt: skip

    def __init__(
        self, seen: VisibleDlqs, data: QueryDict | None, row: DeadLetterQueue | None, now: Mapping[str, Any],
        *,
        reveals: bool,
    ) -> None:  # fmt: skip
        super().__init__(data, row, now)
        self.seen, self.reveals = seen, reveals
        names = Group.objects.order_by("name").values_list("name", flat=True)
        self.fields["teams"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]  # a choice field's
        if not seen.are_all:
            del self.fields["teams"]

    def clean(self) -> dict[str, Any]:
        """Return the entered values. Refuse two schedules, an empty required field, and changes that would unmask."""
        given = super().clean()
        if given.get("interval") and given.get("crontab") and {"interval", "crontab"} & set(self.changed_data):
            raise forms.ValidationError({"crontab": "Use a poll interval or a poll crontab. Empty the other field."})
        for name in set(COLUMNS) - _MAY_BE_EMPTY:
            if name in self.changed_data and given.get(name) in ("", None):
                self.add_error(name, "This field cannot be empty.")
        for name in mask_limits.refused_fields(self.row, self.changed_data, reveals=self.reveals):
            self.add_error(name, mask_limits.REFUSAL)
        return given

    def last(self) -> str:
        """Return a sentence about who added or last changed the DLQ, and why. Changes of its rules do not count."""
        own = self.row.reviews.filter(act__in=(AuditAct.ADDED, AuditAct.CHANGED), letter=None, run=None, group=None)
        return signature(own.exclude(before__has_any_keys=["rule", "native_redrive"]).order_by("-pk").first())

    def wanted(self) -> Wanted:
        """Return the settings of the DLQ and of its targets that the person entered or changed.

        Raises:
            InvalidTarget: the entered target is unknown, ambiguous or hidden from this person, or an unreadable queue.
        """
        given = self.cleaned_data
        to = given["to"]
        return Wanted(
            name=self.row.name if self.row else given["name"],
            url=None if self.row else given["url"],
            sources=tuple(given["sources"].split()),
            to=team_limits.destination(self.seen, to) if to not in {"", fields.OFF} else None,
            takes_back=to == fields.OFF,
            teams=tuple(given["teams"]) if "teams" in self.changed_data else None,
            dlq=self._of_dlq(),
            target=changed_values(self, (*PACE, *BRAKES)) | self._of_tasks(),
        )

    def _of_dlq(self) -> dict[str, Any]:
        found = changed_values(self, COLUMNS) | {
            name: self.cleaned_data[name] == "yes" for name in ("waves", "at_once") if name in self.changed_data
        }
        found |= {
            name: self.cleaned_data[name] for name in ("public_fields", "masked_fields") if name in self.changed_data
        }
        for name in ("interval", "crontab"):
            if name in self.changed_data:
                found[name] = self.cleaned_data[name] or None
        if found.get("interval") and "crontab" in found:
            del found["crontab"]
        if found.get("crontab") and "interval" in found:
            del found["interval"]
        return found

    def _of_tasks(self) -> dict[str, Any]:
        found: dict[str, Any] = {"kind": self.cleaned_data["kind"]} if self.cleaned_data["kind"] else {}
        return found | {name: self.cleaned_data[name] == "yes" for name in TASKS if self.cleaned_data[name]}
