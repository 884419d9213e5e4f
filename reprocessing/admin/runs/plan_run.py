"""The form that plans a run. Planning a run sends nothing."""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import Any, Final

from django import forms

from reprocessing.admin.site.confirmed_action import reason_field
from reprocessing.admin.site.fields import slug, utc_datetime
from reprocessing.domain.errors import QueueUnreachable
from reprocessing.domain.message.arn import resource_name
from reprocessing.domain.runs.selection import Selection
from reprocessing.models import DeadLetterQueue, Run
from reprocessing.models.dlq import Mode
from reprocessing.pipeline.aws import native_redrive
from reprocessing.pipeline.runs import drain, plan
from reprocessing.store.aws import aws_redrives
from reprocessing.store.dlqs import schedule
from reprocessing.store.dlqs.visible_dlqs import VisibleDlqs
from reprocessing.store.ordering import lanes
from reprocessing.store.runs import plans
from reprocessing.store.runs.plans import RunRequest
from reprocessing.store.safety import stops

#: Max message ids in one form.
IDS: Final = 1_000
_LONGEST_TEXT: Final = 1_024
_WAVES: Final = {"": None, "yes": True, "no": False}


class RunForm(forms.Form):
    """A form with the selection, the options and the reason of a run."""

    dlq = forms.ModelChoiceField(
        DeadLetterQueue.objects.order_by("name"), label="Dead-letter queue", empty_label="Choose a DLQ",
        help_text="The DLQ must be in mode manual.",
    )  # fmt: skip
    limit = forms.IntegerField(
        required=False, min_value=1, max_value=2**31 - 1, label="Max messages",
        help_text="Empty: all. The keys with the oldest messages are selected first.",
    )  # fmt: skip
    source = forms.CharField(
        required=False, max_length=_LONGEST_TEXT, label="Source queue",
        help_text="The name of a queue, or the ARN of the function, subscription or rule that failed.",
    )  # fmt: skip
    died_after = utc_datetime("Sent at or after (UTC)")
    died_before = utc_datetime("Sent before (UTC)")
    key = forms.CharField(required=False, strip=False, max_length=_LONGEST_TEXT, label="Ordering key")
    message_ids = forms.CharField(
        required=False, label="Message ids", widget=forms.Textarea(attrs={"rows": 3}),
        help_text=f"One per line, at most {IDS:,}. A message can be sent only if all captured messages before it in "
        "its key are selected too.",
    )  # fmt: skip
    waves = forms.ChoiceField(
        required=False, label="Waves",
        choices=[
            ("", "as set for the DLQ"), ("yes", "yes: 1 message first, then 10, then 100, then all"),
            ("no", "no: all at once"),
        ],
    )  # fmt: skip
    looks = forms.BooleanField(
        required=False, initial=True, label="Capture first",
        help_text="Receive messages that are not captured yet. This takes a moment and hides them from other consumers "
        "of the DLQ. Otherwise the plan has only messages that are captured already.",
    )  # fmt: skip
    name = slug("Letters, digits, - and _. It cannot be changed later.")
    reason = reason_field()

    def __init__(self, seen: VisibleDlqs, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  Django's own
        super().__init__(*args, **kwargs)
        field = self.fields["dlq"]
        field.queryset = seen.rows(DeadLetterQueue.objects.order_by("name"))  # type: ignore[attr-defined]  # a choice field's

    def clean(self) -> dict[str, Any]:
        """Refuse dates that exclude all messages, unknown source queues, too many ids, and DLQs that allow no plan."""
        given = super().clean() or self.cleaned_data
        dlq = given.get("dlq")
        if dlq is None or self.errors:
            return given
        if why := why_not(dlq):
            self.add_error("dlq", why)
        wish = self.wish
        if wish.died_after and wish.died_before and wish.died_after >= wish.died_before:
            self.add_error("died_before", "This is not after the date in “Sent at or after”. Exchange the two dates.")
        known = list(dlq.sources.order_by("arn").values_list("arn", flat=True))
        if wish.source and not any(wish.source in {arn, resource_name(arn)} for arn in known):
            names = ", ".join(map(resource_name, known)) or "none"
            self.add_error("source", f"{dlq.name} has no such source queue. Its source queues: {names}.")
        if len(wish.message_ids) > IDS:
            self.add_error("message_ids", f"More than {IDS:,} ids. Enter fewer, or select by dates.")
        return given

    @property
    def wish(self) -> Selection:
        """Return the selection of messages that the person entered."""
        given = self.cleaned_data
        ids = given["message_ids"].split()
        return Selection(
            limit=given["limit"],
            source=given["source"] or None,
            died_after=given["died_after"],
            died_before=given["died_before"],
            key=given["key"] or None,
            message_ids=tuple(sorted(set(ids))),
        )


def suggested_name() -> str:
    """Return a name from the time and a random part."""
    return f"run-{lanes.database_now():%Y%m%d-%H%M}-{secrets.token_hex(2)}"


def initial_from(run: Run) -> dict[str, Any]:
    """Return the initial values of a form that repeats a run."""
    wish = Selection.read(run.selection)
    return {
        "dlq": run.dlq_id, "limit": wish.limit, "source": wish.source, "died_after": wish.died_after,
        "died_before": wish.died_before, "key": wish.key, "message_ids": "\n".join(wish.message_ids),
        "waves": "yes" if run.waves else "no", "reason": run.reason,
    }  # fmt: skip


def why_not(dlq: DeadLetterQueue) -> str:
    """Return why no run can be planned for a DLQ, and what to do; empty: a run can be planned."""
    if dlq.mode == Mode.OBSERVE:
        return f"{dlq.name} is in mode observe: nothing is received from it. Change its mode to manual first."
    if dlq.mode == Mode.AUTOMATIC:
        return (
            f"{dlq.name} is in mode automatic: its standing run redrives all messages. To select messages, change its "
            "mode to manual first."
        )
    held = stops.stop_of(None)
    return stops.describe_stop(dlq) if held and held.restored else ""


def moved_by_aws(dlq: DeadLetterQueue) -> str:
    """Return a sentence if AWS's own redrive moves the DLQ's messages; empty: it does not, or that is not known."""
    with suppress(QueueUnreachable):
        native_redrive.read_redrives(dlq)
    found = aws_redrives.current(dlq.pk)
    return f"{dlq.name}: {aws_redrives.describe(found)}" if found else ""


def plan_from_form(form: RunForm, *, by: str) -> Run:
    """Plan the run. Its messages are selected now or, with "Capture first", after the next capture of the DLQ.

    Raises:
        RunIdInUse: a run with another selection has this name.
    """
    given = form.cleaned_data
    dlq, wish = given["dlq"], form.wish
    asked = RunRequest(given["name"], by, wish, in_waves=_WAVES[given["waves"]], reason=given["reason"])
    if not given["looks"]:
        plan.place_captured(dlq)
        return drain.plan_run(dlq, asked)
    if (known := drain.find_run(dlq, name=asked.name, selection=wish)) is not None:
        return known
    run = plans.create_plan(dlq, asked)
    schedule.poll_now(dlq)
    return run
