"""The form that adds a DLQ or changes its settings, with the checks of the command add_dlq."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from django import forms
from django.http import QueryDict

from reprocessing import conf
from reprocessing.admin.dlqs import mask_limits, team_limits
from reprocessing.admin.dlqs.dlq_choices import TASKS
from reprocessing.admin.dlqs.dlq_fields import DlqFieldsForm
from reprocessing.admin.site import fields
from reprocessing.admin.site.preview_form import PreviewForm, signature
from reprocessing.admin.targets.target_fields import BRAKES, PACE, changed_values, refuse_other_role
from reprocessing.domain.targets.target_kind import TargetKind
from reprocessing.models import AuditAct, DeadLetterQueue
from reprocessing.pipeline.dlqs import examine
from reprocessing.pipeline.dlqs.examine import Wanted
from reprocessing.store.configuration.defaults import dlq_defaults
from reprocessing.store.rights.roles import possible_teams
from reprocessing.store.rights.visible_dlqs import VisibleDlqs

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
#: Fields that are different for each DLQ, and so have no default.
_WITHOUT_DEFAULT: Final = frozenset({"name", "url", "sources", "to", "teams"})


class DlqForm(DlqFieldsForm, PreviewForm):
    """The form of a DLQ's settings. It saves only changed fields; a new DLQ gets defaults for empty fields."""

    sections = (
        ("Queue", ("name", "url", "mode", "sources", "to", "role_arn")),
        ("(Keys and order)", ("ordering_key", "missing_key", "sequence", "idempotency_key", "stale", "when_parked")),
        ("(Attempts)", ("max_attempts", "backoff_base", "backoff_cap", "backoff_jitter")),
        (
            "(Fields shown without the permission to see payloads, and masked fields)",
            ("public_fields", "masked_fields"),
        ),
        ("(Search)", ("search_fields",)),
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
    folds = True

    def __init__(
        self, seen: VisibleDlqs, data: QueryDict | None, row: DeadLetterQueue | None, now: Mapping[str, Any],
        *,
        reveals: bool,
    ) -> None:  # fmt: skip
        super().__init__(data, row, now)
        self.seen, self.reveals = seen, reveals
        now_teams = set(row.teams.values_list("name", flat=True)) if row else set()
        names = sorted({*possible_teams().values_list("name", flat=True), *now_teams})
        self.fields["teams"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]  # a choice field's
        if not seen.are_all:
            del self.fields["teams"]

    def clean(self) -> dict[str, Any]:
        """Return the entered values.

        Refuse the form if it has two schedules (interval and crontab), or a required field is empty. Also refuse
        changes for which the person lacks rights: settings that would show masked values, and the IAM role.
        """
        given = super().clean()
        if given.get("interval") and given.get("crontab") and {"interval", "crontab"} & set(self.changed_data):
            raise forms.ValidationError({"crontab": "Use a poll interval or a poll crontab. Empty the other field."})
        for name in set(COLUMNS) - _MAY_BE_EMPTY:
            if name in self.changed_data and given.get(name) in ("", None):
                self.add_error(name, "This field cannot be empty.")
        for name in mask_limits.refused_fields(self.row, self.changed_data, reveals=self.reveals):
            self.add_error(name, mask_limits.REFUSAL)
        refuse_other_role(self, self.seen)
        return given

    def last(self) -> str:
        """Return a sentence about who added or last changed the DLQ, and why. Changes of rules are left out."""
        own = self.row.reviews.filter(act__in=(AuditAct.ADDED, AuditAct.CHANGED), letter=None, run=None, group=None)
        return signature(own.exclude(before__has_any_keys=["rule", "native_redrive"]).order_by("-pk").first())

    def differs(self, name: str) -> bool:
        """Return whether the value of a field differs from the default for the DLQ's queue type (FIFO or standard)."""
        value, default = self[name].value(), self._defaults.get(name, "")
        if name in _WITHOUT_DEFAULT:
            return False
        if value in (None, ""):  # saved as the default, unless the field may be empty
            return name in _MAY_BE_EMPTY and default not in (None, "")
        return self.fields[name].has_changed(default, value)

    @cached_property
    def _defaults(self) -> dict[str, Any]:
        fifo = self.row.fifo if self.row else str(self["url"].value() or "").endswith(".fifo")
        found = dlq_defaults(fifo=fifo) | {"held_copies_limit": conf.current().held_copies_limit}
        return {
            **{name: "\n".join(value) if isinstance(value, list) else value for name, value in found.items()},
            **{name: "yes" if found[name] else "no" for name in ("waves", "at_once")},
            **dict.fromkeys(TASKS, "no"),
            "kind": TargetKind.SQS,
        }

    def wanted(self) -> Wanted:
        """Return the settings of the DLQ and of its targets that the person entered or changed.

        Raises:
            InvalidTarget: the entered target is unknown, ambiguous, or hidden from this person; or it is a queue that
                cannot be read.
            QueueUnreachable: the person entered the DLQ's ARN, and SQS did not return the URL of the DLQ.
        """
        given = self.cleaned_data
        to = given["to"]
        return Wanted(
            name=self.row.name if self.row else given["name"],
            url=None if self.row else examine.queue_address(given["url"], given["role_arn"]).url,
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
            name: self.cleaned_data[name]
            for name in ("public_fields", "masked_fields", "search_fields")
            if name in self.changed_data
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
