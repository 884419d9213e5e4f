"""A new run: which letters of which dlq are to be replayed, under which name, and why. Planning one sends nothing."""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import Any, Final

from django import forms

from reprocessing.admin.site.confirmed_action import LONGEST
from reprocessing.admin.site.fields import moment, slug
from reprocessing.domain.errors import QueueIsOutOfReach
from reprocessing.domain.message.arn import name_of
from reprocessing.domain.runs.selection import Selection
from reprocessing.models import DeadLetterQueue, Run
from reprocessing.models.dlq import Mode
from reprocessing.pipeline.aws import native_redrive
from reprocessing.pipeline.runs import drain, plan
from reprocessing.store.aws import aws_redrives
from reprocessing.store.dlqs import schedule
from reprocessing.store.ordering import lanes
from reprocessing.store.runs import plans
from reprocessing.store.runs.plans import Asked
from reprocessing.store.safety import stops

#: Message ids that one form takes.
IDS: Final = 1_000
_LONGEST_TEXT: Final = 1_024
_WAVES: Final = {"": None, "yes": True, "no": False}


class NewRun(forms.Form):
    """Which letters, how, and why."""

    dlq = forms.ModelChoiceField(
        DeadLetterQueue.objects.order_by("name"), label="Dead-letter queue", empty_label="Choose a dlq",
        help_text="One in mode automatic is drained by beat; from one in mode observe nothing is received.",
    )  # fmt: skip
    limit = forms.IntegerField(
        required=False, min_value=1, max_value=2**31 - 1, label="At most so many letters",
        help_text="Empty: all. The oldest lanes go first.",
    )  # fmt: skip
    origin = forms.CharField(
        required=False, max_length=_LONGEST_TEXT, label="Only those that died in",
        help_text="The name of a queue, or the ARN of what failed.",
    )  # fmt: skip
    died_after = moment("Only those that died then or later (UTC)")
    died_before = moment("Only those that died before (UTC)")
    key = forms.CharField(
        required=False, strip=False, max_length=_LONGEST_TEXT, label="Only those of this ordering key"
    )
    message_ids = forms.CharField(
        required=False, label="Only these message ids", widget=forms.Textarea(attrs={"rows": 3}),
        help_text=f"One a line, at most {IDS:,}. One goes only when all captured ones before it in its lane go, too.",
    )  # fmt: skip
    waves = forms.ChoiceField(
        required=False, label="In waves",
        choices=[
            ("", "as the dlq says"), ("yes", "yes: one letter first, then 10, then 100, then all"),
            ("no", "no: all at once"),
        ],
    )  # fmt: skip
    looks = forms.BooleanField(
        required=False, initial=True, label="Look into the dlq first",
        help_text="Messages that are not captured yet are received, which takes a moment and hides them from other "
        "readers. Without it the plan has what was captured before.",
    )  # fmt: skip
    name = slug("Letters, digits, - and _. It names the run for good.")
    reason = forms.CharField(
        max_length=LONGEST, widget=forms.Textarea(attrs={"rows": 3}), help_text="Recorded with your name."
    )

    def clean(self) -> dict[str, Any]:
        """Refused when no letter could be meant, or none of this dlq may be chosen by hand."""
        given = super().clean() or self.cleaned_data
        dlq = given.get("dlq")
        if dlq is None or self.errors:
            return given
        if why := refusal(dlq):
            self.add_error("dlq", why)
        wish = self.wish
        if wish.died_after and wish.died_before and wish.died_after >= wish.died_before:
            self.add_error("died_before", "No letter died after the one and before the other: turn them round.")
        known = list(dlq.origins.order_by("arn").values_list("arn", flat=True))
        if wish.origin and not any(wish.origin in {arn, name_of(arn)} for arn in known):
            names = ", ".join(map(name_of, known)) or "none"
            self.add_error("origin", f"No letter of {dlq.name} can have died there. Its origins: {names}.")
        if len(wish.message_ids) > IDS:
            self.add_error("message_ids", f"These are more than {IDS:,}. Name fewer, or choose by dates.")
        return given

    @property
    def wish(self) -> Selection:
        """The letters that are asked for."""
        given = self.cleaned_data
        ids = given["message_ids"].split()
        return Selection(
            limit=given["limit"],
            origin=given["origin"] or None,
            died_after=given["died_after"],
            died_before=given["died_before"],
            key=given["key"] or None,
            message_ids=tuple(sorted(set(ids))),
        )


def suggested_name() -> str:
    """A name that nobody has used, for whoever thinks of none."""
    return f"run-{lanes.clock():%Y%m%d-%H%M}-{secrets.token_hex(2)}"


def like(run: Run) -> dict[str, Any]:
    """What a form begins with that asks for what a run was asked for."""
    wish = Selection.read(run.selection)
    return {
        "dlq": run.dlq_id, "limit": wish.limit, "origin": wish.origin, "died_after": wish.died_after,
        "died_before": wish.died_before, "key": wish.key, "message_ids": "\n".join(wish.message_ids),
        "waves": "yes" if run.waves else "no", "reason": run.reason,
    }  # fmt: skip


def refusal(dlq: DeadLetterQueue) -> str:
    """Why nothing can be planned of a dlq, and the cure; empty when it can."""
    if dlq.mode == Mode.OBSERVE:
        return f"{dlq.name} is in mode observe: nothing is received from it. Change its mode to manual first."
    if dlq.mode == Mode.AUTOMATIC:
        return (
            f"{dlq.name} is in mode automatic: beat drains it by itself, in its standing run. To choose letters by "
            "hand, change its mode to manual first."
        )
    held = stops.stopped(None)
    return stops.in_words(dlq) if held and held.restored else ""


def moved_by_aws(dlq: DeadLetterQueue) -> str:
    """Why AWS's own redrive is in the way of a plan; empty when it is not, or when SQS does not say."""
    with suppress(QueueIsOutOfReach):
        native_redrive.look(dlq)
    found = aws_redrives.of(dlq.pk)
    return f"{dlq.name}: {aws_redrives.in_words(found)}" if found else ""


def make(form: NewRun, *, by: str) -> Run:
    """Plan the run: its letters are selected at once, or as soon as the dlq has been looked into.

    Raises:
        RunIsAnother: the name is taken by a run with another selection.
    """
    given = form.cleaned_data
    dlq, wish = given["dlq"], form.wish
    asked = Asked(given["name"], by, wish, in_waves=_WAVES[given["waves"]], reason=given["reason"])
    if not given["looks"]:
        plan.places(dlq)
        return drain.prepare(dlq, asked)
    if (known := drain.known(dlq, name=asked.name, selection=wish)) is not None:
        return known
    run = plans.plan(dlq, asked)
    schedule.at_once(dlq)
    return run
