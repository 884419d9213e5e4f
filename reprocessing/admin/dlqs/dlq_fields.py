"""The fields of the form of a DLQ's settings. Each help text says the unit, the default and the effect of a value."""

from __future__ import annotations

from typing import Final

from django import forms

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
from reprocessing.admin.targets.target_fields import TargetFieldsForm
from reprocessing.domain.targets.target_kind import TargetKind
from reprocessing.models.dlq import MAX_DAYS, MAX_HELD_COPIES
from reprocessing.models.target import MAX_SECONDS

_SHAPES: Final = "Where the key is: system:NAME, attribute:NAME, body:JMESPATH, message-id, content-hash or none."
_TASK_HELP: Final = {
    "strips_eta": "Default: no. yes: the task runs at once, not at its eta.",
    "strips_expires": "Default: no. yes: an expired task runs, too.",
    "resets_retries": "Default: no. yes: the task may be retried by Celery as often as a new task.",
    "renews_id": "Default: no. yes: the result of the old task id is not overwritten.",
}


class DlqFieldsForm(TargetFieldsForm):
    """The fields of a DLQ's settings, and of the settings of its targets."""

    name = fields.slug("Your name for the DLQ: letters a to z, digits, - and _, no spaces. It cannot be changed later.")
    url = forms.CharField(
        max_length=2_048, label="URL", help_text="The URL or the ARN of the queue. It cannot be changed later."
    )
    mode = choice(
        "Mode", MODES, "Default: manual. With automatic, messages are sent without a person; limits still apply."
    )
    sources = lines(
        "Source queues",
        "Usually empty: enter only sources that SQS does not list. One per line: the URL of a queue, or the ARN of a "
        "function, a subscription or an EventBridge target.",
    )
    to = text(
        "Target",
        "Where messages of the source queues above are redriven. If no source queue is entered: messages of all source "
        'queues. Enter a registered target, the URL of a queue, or "off" for the source queue. Empty: no change.',
    )
    role_arn = fields.RoleField(
        required=False, max_length=2_048, label="IAM role",
        help_text="ARN of a role to assume for the DLQ. Default: none; the service's own credentials are used.",
    )  # fmt: skip
    ordering_key = fields.SelectorField(
        label="Ordering key",
        help_text=f"{_SHAPES} Messages with the same value are sent in order, one at a time. Default: none; FIFO: "
        "system:MessageGroupId.",
    )
    sequence = fields.SelectorField(
        label="Sequence",
        help_text="Messages of a key are sent in the order of this value of a message. Default: "
        "system:SentTimestamp; FIFO: system:SequenceNumber.",
    )
    idempotency_key = fields.SelectorField(
        label="Idempotency key",
        help_text="Where in a message this key is. Of messages with the same key, only one is delivered; the others "
        "become duplicates. Default: message-id.",
    )
    missing_key = choice(
        "Missing key",
        MISSING_KEY,
        "What to do with a message that has no ordering key. Default: park; it then waits for a person.",
    )
    stale = choice(
        "Late message",
        LATE,
        "What to do with a message if a later message of its key was delivered before. Default: park. A message that "
        "is delivered late may overwrite newer data.",
    )
    when_parked = choice(
        "After parking", PARKED_HEAD,
        "What to do when a message of a key is parked. Default: continue; later messages are then delivered first.",
    )  # fmt: skip
    max_attempts = whole_number("Max attempts", "After this many failed attempts, a message is parked. Default: 3.")
    backoff_base = number(
        "Initial backoff (s)",
        "How long a message waits after its first failed attempt; doubled after each further one. Default: 60. A short "
        "wait loads a failing consumer.",
        least=0, most=MAX_SECONDS,
    )  # fmt: skip
    backoff_cap = number(
        "Max backoff (s)", "The longest wait between two attempts. Default: 21600 (6 h).", least=0, most=MAX_SECONDS
    )
    backoff_jitter = choice(
        "Jitter", JITTER, "Default: full. With none, messages that failed together are sent again together."
    )
    public_fields = fields.ExpressionsField(
        required=False, max_length=20_000, label="Public body fields", widget=forms.Textarea(attrs={"rows": 3}),
        help_text="JMESPath, one per line, such as order.id. Everybody who may see messages sees these fields. "
        "Default: none.",
    )  # fmt: skip
    masked_fields = fields.MaskRulesField(
        required=False, max_length=20_000, label="Masked fields", widget=forms.Textarea(attrs={"rows": 3}),
        help_text="One per line: a name, such as email, or JMESPath, such as cards[*].number. Their values are shown "
        "only to people who may reveal them. Default: none.",
    )  # fmt: skip
    search_fields = fields.SearchFieldsField(
        required=False, max_length=20_000, label="Search fields", widget=forms.Textarea(attrs={"rows": 3}),
        help_text="One per line, 10 at most: NAME=body:JMESPATH or NAME=attribute:NAME, such as "
        "order_id=body:order.id. Everybody who sees the messages finds them by the values, unless they are masked. "
        "Default: none.",
    )  # fmt: skip
    waves = choice(
        "Waves",
        YES_NO,
        "Send 1 message first, then 10, then 100, then all. Default: yes. Without waves, a wrong fix affects "
        "all messages at once.",
    )
    wave_success = number(
        "Wave success ratio",
        "The share of a wave's messages that must succeed, from 0 to 1. Below it, the run pauses. Default: 0.8.",
        least=0, most=1,
    )  # fmt: skip
    give_up_after = number(
        "Give up after (s)",
        "Mode automatic: if no message to a target succeeds for this long, the run pauses and people are notified. "
        "Default: 86400 (24 h). Empty: never.",
        least=1, most=MAX_SECONDS,
    )  # fmt: skip
    approval_above = whole_number(
        "Second person above (messages)",
        "Actions on more messages than this, and changes of rules, need a second person. 0: every action. Default: "
        "empty, the limit that is set for all DLQs. To raise or remove a limit also needs a second person.",
        least=0,
    )
    interval = whole_number(
        "Poll interval (s)", "Mode automatic: time between two polls of the DLQ. Default: 60.", most=MAX_SECONDS
    )
    crontab = fields.CrontabField(
        required=False, max_length=200, label="Poll crontab",
        help_text="Instead of a poll interval. Five fields: minute hour day month weekday. Default: none.",
    )  # fmt: skip
    at_once = choice("Poll again", YES_NO, "After a poll that found messages, poll again at once. Default: no.")
    delete_when = choice(
        "Delete SQS copies", DELETE_WHEN,
        "Default: when finished; FIFO: when captured. After that only PostgreSQL has the message.",
        empty="by queue type",
    )  # fmt: skip
    held_copies_limit = whole_number(
        "Max SQS copies",
        "How many captured messages the service keeps in the DLQ, invisible to other readers. Default: 20000. Further "
        "messages are deleted from the DLQ when they are captured.",
        least=0,
        most=MAX_HELD_COPIES,
    )
    keep_bodies = whole_number(
        "Keep bodies (days)",
        "How long bodies are kept after a message is delivered, duplicate or discarded. Default: empty, for as long "
        "as the message's history.",
        least=0, most=MAX_DAYS,
    )  # fmt: skip
    new_key_delay = number(
        "First delay (s)",
        "How long the first message of a key waits after its capture. Default: empty, the target's visibility timeout: "
        "an earlier message of the key may still be in the source queue.",
        least=0, most=MAX_SECONDS,
    )  # fmt: skip
    receive_limit = whole_number(
        "Max receive count",
        "A message that this service received from the DLQ more often than this is parked. Default: empty, no limit.",
    )
    parking_url = text(
        "Parking queue", "The URL of an SQS queue that gets a copy of parked messages. Default: empty, none."
    )
    message_type = fields.SelectorField(
        shared=True, or_none=True, label="Message type",
        help_text="Where messages have their type: attribute:NAME or body:JMESPATH. Default: empty; failure groups "
        'look under common names, and rules cannot test the type. "none": failure groups show no types.',
    )  # fmt: skip
    tenant = fields.SelectorField(
        shared=True, label="Tenant",
        help_text="Where messages name the customer (tenant) to whom they belong: attribute:NAME or body:JMESPATH. "
        "Default: empty; rules cannot test the tenant.",
    )  # fmt: skip
    kind = choice(
        "Consumers", ((TargetKind.CELERY, "Celery workers"), (TargetKind.SQS, "others")),
        "Which programs consume the source queues. Default: others.", empty="unchanged; new DLQ: others",
    )  # fmt: skip
    strips_eta, strips_expires, resets_retries, renews_id = (
        choice(words, YES_NO, _TASK_HELP[name], empty="unchanged; new DLQ: no") for name, words in TASKS.items()
    )
    teams = forms.MultipleChoiceField(
        required=False, label="Teams",
        help_text="Groups whose members see the DLQ. None selected: only people who see the DLQs of all teams.",
    )  # fmt: skip
