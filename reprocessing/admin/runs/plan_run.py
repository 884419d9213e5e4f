"""The form with which a person plans a run. Planning sends nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.urls import reverse
from django.utils.html import format_html

from reprocessing.admin.runs.choose_plan import EARLY, ORDER_CHOICES, RATE_HELP, RATE_LABEL, values_of
from reprocessing.admin.site.confirmed_action import reason_field
from reprocessing.admin.site.fields import choice, number, slug, utc_datetime
from reprocessing.domain.runs.selection import Selection
from reprocessing.models import DeadLetterQueue, Run
from reprocessing.models.dlq import Mode
from reprocessing.models.target import MAX_RATE, MIN_RATE
from reprocessing.pipeline.runs import forecast_plan, request_plan, run_actions
from reprocessing.store.rights.visible_dlqs import VisibleDlqs
from reprocessing.store.runs.plans import RunRequest

if TYPE_CHECKING:
    _ChoiceOfDlq = forms.ModelChoiceField[DeadLetterQueue]
else:
    _ChoiceOfDlq = forms.ModelChoiceField

#: Max message ids that a person can enter.
IDS: Final = 1_000
_LONGEST_TEXT: Final = 1_024
_WAVES: Final = {"": None, "yes": True, "no": False}


class _DlqSelect(forms.Select):
    """A select field of DLQs. Only DLQs in mode manual can be chosen, because a run needs this mode."""

    def create_option(self, *args: Any, **kwargs: Any) -> dict[str, Any]:  # noqa: ANN401  Django's own
        option = super().create_option(*args, **kwargs)
        dlq = getattr(option["value"], "instance", None)
        if dlq is not None and dlq.mode != Mode.MANUAL:
            option["attrs"]["disabled"] = True
        return option


class _DlqField(_ChoiceOfDlq):
    """The form field for the DLQ of a run. If a DLQ is not in mode manual, its label also has its mode."""

    def label_from_instance(self, obj: DeadLetterQueue) -> str:
        return obj.name if obj.mode == Mode.MANUAL else f"{obj.name} ({obj.mode})"


class RunForm(forms.Form):
    """The form of a planned run: which messages it selects, its options, name and reason."""

    dlq = _DlqField(
        DeadLetterQueue.objects.order_by("name"), label="Dead-letter queue", empty_label="Choose a DLQ",
        help_text="Only DLQs in mode manual. To plan a run of another DLQ, change its mode on its page.",
        widget=_DlqSelect,
    )  # fmt: skip
    limit = forms.IntegerField(
        required=False, min_value=1, max_value=2**31 - 1, label="Max messages",
        help_text="Empty: all. The keys with the oldest messages are selected first.",
    )  # fmt: skip
    source = forms.CharField(
        required=False, max_length=_LONGEST_TEXT, label="Source queue",
        help_text="The name of a queue, or the ARN of the Lambda function, SNS subscription or EventBridge rule "
        "whose messages failed.",
    )  # fmt: skip
    sent_after = utc_datetime("Sent at or after (UTC)")
    sent_before = utc_datetime("Sent before (UTC)")
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
    rate = number(RATE_LABEL, RATE_HELP, least=MIN_RATE, most=MAX_RATE)
    order = choice("Order", ORDER_CHOICES)
    looks = forms.BooleanField(
        required=False, initial=True, label="Capture first",
        help_text="Receive messages that are not captured yet. This takes a moment and hides them from other consumers "
        "of the DLQ. Otherwise the plan has only messages that are captured already.",
    )  # fmt: skip
    name = slug("Letters a to z, digits, - and _, no spaces. It cannot be changed later.")
    reason = reason_field()

    def __init__(self, seen: VisibleDlqs, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  Django's own
        super().__init__(*args, **kwargs)
        self.seen = seen
        field = self.fields["dlq"]
        field.queryset = seen.rows(DeadLetterQueue.objects.order_by("name"))  # type: ignore[attr-defined]  # a choice field's

    def clean(self) -> dict[str, Any]:
        """Return the entered values.

        Refuse a period that ends before it begins, an unknown source queue, too many ids, and a DLQ for which no run
        can be planned now.
        """
        given = super().clean() or self.cleaned_data
        dlq = given.get("dlq")
        if dlq is None or self.errors:
            return given
        for field, why in self._problems(dlq, self.wish):
            self.add_error(field, why)
        return given

    def _problems(self, dlq: DeadLetterQueue, wish: Selection) -> Iterator[tuple[str, str]]:
        if why := request_plan.why_not(dlq):
            yield "dlq", why if dlq.mode == Mode.MANUAL else _linked(why, dlq)
        if wish.sent_after and wish.sent_before and wish.sent_after >= wish.sent_before:
            yield "sent_before", "This is not after the date in “Sent at or after”. Exchange the two dates."
        if wish.source and (why := request_plan.unknown_source(dlq, wish.source)):
            yield "source", why
        if self.cleaned_data["order"] == EARLY and (why := run_actions.why_it_must_wait(dlq)):
            yield "order", why
        if len(wish.message_ids) > IDS:
            yield "message_ids", f"More than {IDS:,} ids. Enter fewer, or select by dates."

    @property
    def wish(self) -> Selection:
        """Return which messages the run selects, as the person entered it."""
        given = self.cleaned_data
        ids = given["message_ids"].split()
        return Selection(
            limit=given["limit"],
            source=given["source"] or None,
            sent_after=given["sent_after"],
            sent_before=given["sent_before"],
            key=given["key"] or None,
            message_ids=tuple(sorted(set(ids))),
        )


def _linked(why: str, dlq: DeadLetterQueue) -> str:
    """Return the text `why` with a link to the page of the DLQ, where a person can change the DLQ's mode."""
    address = reverse("admin:reprocessing_deadletterqueue_change", args=[dlq.pk])
    return format_html('{} <a href="{}">Open {}</a>', why, address, dlq.name)


def initial_from(run: Run) -> dict[str, Any]:
    """Return the initial values of a form that plans a copy of this run: its selection, options and reason."""
    wish = Selection.read(run.selection)
    return {
        "dlq": run.dlq_id, "limit": wish.limit, "source": wish.source, "sent_after": wish.sent_after,
        "sent_before": wish.sent_before, "key": wish.key, "message_ids": "\n".join(wish.message_ids),
        "reason": run.reason, **values_of(forecast_plan.choice_of(run)),
    }  # fmt: skip


def plan_from_form(form: RunForm, *, by: str) -> Run:
    """Plan the run that a valid form describes, and return the run. `by`: name of the person who plans.

    The messages of the run are selected now or, with "Capture first", after the next capture of the DLQ.

    Raises:
        RunIdInUse: another run has this name, but selects other messages.
    """
    given = form.cleaned_data
    asked = RunRequest(
        given["name"], by, form.wish, in_waves=_WAVES[given["waves"]], reason=given["reason"], rate=given["rate"],
        waits_for_outcomes=given["order"] != EARLY,
    )  # fmt: skip
    return request_plan.plan_run(given["dlq"], asked, captures=given["looks"], seen=form.seen)
