"""The names of models and states, and the labels of fields, that all pages of the admin show."""

from __future__ import annotations

from typing import Any, Final

from django.db.models import Field
from django.db.models.options import Options
from django.utils.text import capfirst

from reprocessing.domain.lifecycle import STATE_NAMES, LetterState

#: Singular and plural name of each model that the pages do not call by Django's name for the model.
_NAMES: Final = {
    "letter": ("message", "messages"), "parkedletter": ("parked message", "parked messages"),
    "failuregroup": ("failure group", "failure groups"), "bulkaction": ("bulk action", "bulk actions"),
    "approval": ("approval", "approvals"),
    "auditentry": ("audit entry", "audit entries"), "breaker": ("circuit breaker", "circuit breakers"),
    "lane": ("key queue", "key queues"), "source": ("source queue", "source queues"),
    "notificationroute": ("notification destination", "notification destinations"),
    "notification": ("notification", "notifications sent"), "globalstop": ("global stop", "global stop"),
    "heartbeat": ("worker heartbeat", "worker heartbeats"),
    "targetcheck": ("target check", "target checks"),
    "parkingqueuemessage": ("parking queue notice", "parking queue notices"),
    "rulebook": ("rules version", "rules version"),
    "discoveredqueue": ("discovered DLQ", "discovered DLQs"),
    "apitoken": ("API token", "API tokens"),
    "report": ("consumer report", "consumer reports"), "reporter": ("reporting consumer", "reporting consumers"),
}  # fmt: skip

#: Labels of fields on pages and in column titles; other fields have Django's label.
FIELDS: Final = {
    "act": "Action", "added_by": "Added by", "advance": "Next message", "answers": "Status codes", "arn": "ARN",
    "approval_above": "Second person above (messages)",
    "asked_by": "Requested by", "at": "Time (UTC)",
    "at_least": "Min attempts for the ratio", "at_once": "Poll again at once",
    "attempt_no": "Attempt", "attempts": "Attempts", "backoff_base": "Initial backoff (s)",
    "backoff_cap": "Max backoff (s)", "backoff_jitter": "Jitter", "consumed_at": "Last heartbeat",
    "breaker": "Circuit breaker", "breaker_epoch": "Circuit breaker epoch", "burst": "Burst (messages)", "by": "User",
    "canary_until": "Canary awaited until", "ceiling": "Max messages or age (s)", "changes_at": "Next change",
    "closed_at": "Closed at", "canaries_to_close": "Canaries to close", "conditions": "Conditions",
    "cooldown": "Cooldown (s)", "current_cooldown": "Current cooldown (s)",
    "cooldown_cap": "Max cooldown (s)", "created_at": "Planned at", "default_source": "Default source queue",
    "delay": "Delay (s)", "delete_when": "Delete SQS copies", "held_copies_limit": "Max SQS copies",
    "size_limit": "Max size (bytes)", "depth_at": "Depth read at", "depth_in_flight": "Messages in flight",
    "depth_visible": "Visible messages",
    "first_sent_at": "Sent at (SQS)", "dlq": "Dead-letter queue", "dlqs": "Dead-letter queues",
    "drained_through": "Last complete capture", "due_at": "Due at", "enabled": "Enabled", "error_count": "Errors",
    "every": "Interval (s)", "expected_status": "Expected status code", "expires_at": "Deleted by SQS at",
    "failing_since": "Failing since", "failures": "Failures in a row", "fifo": "FIFO", "filed_at": "Created at",
    "give_up_after": "Give up after (s)", "given_up_at": "Given up at", "group": "Failure group",
    "happened_at": "Happened at", "match_count": "Messages decided", "holds_lane": "Key queue waits",
    "counts_as_failure": "Failure for breaker", "key": "Ordering key", "kinds": "Events", "lane": "Key queue",
    "last_error": "Problem", "last_hit_at": "Last match", "letter": "Message", "made_at": "Created at",
    "created_by": "Created by",
    "max_age": "Max age (s)", "max_attempts": "Max attempts", "message": "Error message",
    "aws_redrive_since": "AWS redrive since", "parking_event": "Event", "next_at": "Next attempt",
    "next_poll_at": "Next poll",
    "no": "No.", "opened_at": "Started at", "operation": "Bulk action", "source": "Source queue",
    "outcome": "Outcome", "hinted_until": "Task hint valid until",
    "highest_sent_sequence": "Highest sent sequence", "phase": "State", "position": "Position",
    "presumed": "Presumed delivered",
    "proof": "Outcome", "public_id": "Redrive id", "idle_since": "Idle since", "ramp": "Ramp-up (share of rate)",
    "ramp_at": "Last ramp-up step", "ramp_every": "Ramp-up step (s)", "ramp_from": "Ramp-up start (share of rate)",
    "ramp_failure_ratio": "Failure ratio at last step", "ramp_reason": "Ramp-up reason", "rate": "Rate (messages/s)",
    "rate_class": "Rate class", "ratio": "Failure ratio to open", "received_at": "Received at",
    "confirmed_fanout": "Other subscribers",
    "region": "Region", "retention": "Retention (s)", "retry_at": "Next canary",
    "returned_at": "Came back at", "reviews": "Audit log", "role_arn": "IAM role", "route": "Destination",
    "run": "Run", "secret": "Signing secret", "seen_at": "Checked at", "selected": "Messages selected",
    "sent": "Messages sent", "sent_at": "Sent at", "sent_message_id": "Sent message id",
    "settled_at": "Finished at", "since": "Since",
    "size": "Size (messages)", "stop_reason": "Stop reason", "stopped_at": "Stopped at", "stopped_by": "Stopped by",
    "subject": "Subject", "successes": "Successes in a row", "taken_at": "Accepted at",
    "threshold": "Failures to open", "timeout": "Timeout (s)", "times": "Times", "took": "Request time (s)",
    "url": "URL", "valid_from": "Valid from (UTC)",
    "valid_until": "Valid until (UTC)", "verdict": "Result", "visibility": "Visibility timeout (s)",
    "watched_by": "DLQ of the target", "why": "Reason", "window": "Return window (s)",
}  # fmt: skip


def singular(options: Options[Any]) -> str:
    """Return the name for one row of this model, such as "circuit breaker"."""
    return _NAMES.get(str(options.model_name), (str(options.verbose_name),))[0]


def plural(options: Options[Any]) -> str:
    """Return the name for several rows of this model, such as "circuit breakers"."""
    return _NAMES.get(str(options.model_name), ("", str(options.verbose_name_plural)))[1]


def column(title: str) -> str:
    """Return the label of a model field. `title`: the field's name, or the column title that Django would show."""
    return FIELDS.get(title.replace(" ", "_"), capfirst(title.replace("_", " ")))


def state(name: str, presumed: bool = False) -> str:  # noqa: FBT001, FBT002  a template filter's argument
    """Return the name of a message's state as people see it, such as "queued" for the stored value `waiting`.

    docs/concepts.md explains the names. `presumed`: whether the delivery is presumed. The state "delivered" is then
    named "presumed delivered".
    """
    return STATE_NAMES["presumed"] if presumed and name == LetterState.DELIVERED else STATE_NAMES.get(name, name)


def counted_state(name: str) -> str:
    """Return the name of a state for a number of messages in which presumed deliveries count as delivered."""
    return f"delivered or {STATE_NAMES['presumed']}" if name == LetterState.DELIVERED else state(name)


def without(field: Field[Any, Any]) -> str:
    """Return what a row without a related object in this field is called in filters; "none" unless it has a meaning."""
    is_rule = (field.model._meta.model_name, field.name) == ("rule", "dlq")  # noqa: SLF001  Django's public name
    return "all DLQs" if is_rule else "none"
