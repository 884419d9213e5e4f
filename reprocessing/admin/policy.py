"""Changing the policy of a dlq: only what was changed is written, and never over what somebody else changed."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from django import forms
from django.db.models import Model
from django_celery_beat.models import IntervalSchedule

from reprocessing.models import DeadLetterQueue
from reprocessing.models.dead_letter_queue import Mode
from reprocessing.models.registration import seconds
from reprocessing.models.target import FORTNIGHT, Proof

if TYPE_CHECKING:
    PolicyForm = forms.ModelForm[DeadLetterQueue]  # generic for the type checker alone
else:
    PolicyForm = forms.ModelForm

#: What may be changed here. Addresses, selectors and the origin are examined, so they are the command's: add_dlq.
POLICY = (
    "mode",
    "max_attempts",
    "backoff_base",
    "backoff_cap",
    "backoff_jitter",
    "quiet_for",
    "parked_head",
    "stale",
    "receive_ceiling",
    "custody_limit",
    "interval",
    "crontab",
    "at_once",
)
_IN_FLIGHT_LIMIT = 120_000  # SQS has no more messages of one queue in flight


class Policy(PolicyForm):
    """A dlq's policy as it was seen, and why it is changed."""

    seen = forms.CharField(widget=forms.HiddenInput)
    why = forms.CharField(
        max_length=2_000, label="Reason", widget=forms.Textarea(attrs={"rows": 3}), help_text="Recorded with your name."
    )

    class Meta:
        model = DeadLetterQueue
        fields = POLICY

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - Django's own
        super().__init__(*args, **kwargs)
        self.before = values(self.instance)
        self.initial["seen"] = digest(self.before)

    def clean_mode(self) -> str:
        """A mode that takes more than a click is refused here."""
        mode = str(self.cleaned_data["mode"])
        if mode == self.before["mode"]:
            return mode
        if mode == Mode.AUTOMATIC:
            raise forms.ValidationError(
                "A dlq is examined before it redrives itself: "
                f"manage.py add_dlq {self.instance.name} --mode automatic --confirm"
            )
        if mode == Mode.OBSERVE and self.instance.watched_targets.filter(proof=Proof.ABSENCE).exists():
            raise forms.ValidationError(
                "Letters are presumed delivered because they do not come back to this dlq, so it has to be received "
                "from. Leave it manual, or let its targets be judged by acceptance first."
            )
        return mode

    def clean_custody_limit(self) -> int:
        """SQS's own limit."""
        limit = int(self.cleaned_data["custody_limit"])
        if limit > _IN_FLIGHT_LIMIT:
            raise forms.ValidationError(f"SQS holds at most {_IN_FLIGHT_LIMIT:,} messages of one queue in flight.")
        return limit

    def clean_backoff_base(self) -> float | None:
        """Seconds."""
        return self._duration("backoff_base")

    def clean_backoff_cap(self) -> float | None:
        """Seconds."""
        return self._duration("backoff_cap")

    def clean_quiet_for(self) -> float | None:
        """Seconds, or nothing for the origin's visibility."""
        return self._duration("quiet_for")

    def clean_interval(self) -> IntervalSchedule | None:
        """One that comes round."""
        interval: IntervalSchedule | None = self.cleaned_data["interval"]
        if interval is not None and seconds(interval) > FORTNIGHT:
            raise forms.ValidationError("Two weeks at most: SQS keeps no message for longer.")
        return interval

    def _duration(self, name: str) -> float | None:
        given: float | None = self.cleaned_data[name]
        if given is not None and not 0 <= given <= FORTNIGHT:
            raise forms.ValidationError(f"A duration lasts from 0 to {FORTNIGHT:,} seconds: two weeks.")
        return given

    def clean(self) -> dict[str, Any]:
        """Refused when the policy is no longer the one that was seen. The row stays locked until it is saved."""
        given = super().clean() or self.cleaned_data
        now = DeadLetterQueue.objects.select_for_update().get(pk=self.instance.pk)
        self.before = values(now)
        if digest(self.before) != given.get("seen"):
            raise forms.ValidationError(
                "Nothing was changed: somebody else changed this policy since you opened it. Open it again."
            )
        base, cap = given.get("backoff_base"), given.get("backoff_cap")
        if base is not None and cap is not None and cap < base:
            raise forms.ValidationError({"backoff_cap": "It is less than where the backoff begins."})
        return given

    @property
    def changed_policy(self) -> list[str]:
        """The names of what was changed."""
        return [name for name in self.changed_data if name in POLICY]


def values(dlq: DeadLetterQueue) -> dict[str, Any]:
    """A dlq's policy in words and numbers, as a review records it."""
    return {name: _plain(getattr(dlq, name)) for name in POLICY}


def digest(policy: dict[str, Any]) -> str:
    """Equal policies have equal ones."""
    return hashlib.sha256(json.dumps(policy, sort_keys=True).encode()).hexdigest()


def _plain(value: object) -> object:
    return f"{value} (#{value.pk})" if isinstance(value, Model) else value
