"""The forms with which a person confirms a decision about messages, or an export of messages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs

from django import forms
from django.http import HttpRequest

from reprocessing.admin.parking_lot.decision import (
    Arguments,
    DecisionKind,
    PageState,
    SeenMessages,
    read_assignees,
    unpack_messages,
)
from reprocessing.admin.site import visible_rows
from reprocessing.admin.site.confirmed_action import reason_field
from reprocessing.admin.site.fields import utc_datetime
from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import DeadLetterQueue, Target
from reprocessing.store.ordering import lanes
from reprocessing.store.parking_lot import assignment

_PEOPLE = 500  # max users that the form offers as assignees
_A_YEAR = timedelta(days=366)
#: Values of `DecisionForm.how`: a release also asks for a time (`AT`), or for a target and an optional time (`TO`).
AT, TO = "at", "to"


class FilterForm(forms.Form):
    """A form that asks for the reason of an action. The hidden field `query` has the filter of messages."""

    reason = reason_field()

    query = forms.CharField(required=False, max_length=20_000, widget=forms.HiddenInput)

    def clean_query(self) -> MessageFilter:
        """Return the filter that the hidden field describes. Refuse a text that is not a filter."""
        try:
            return filter_of_query(self.cleaned_data["query"])
        except InvalidFilter as error:
            raise forms.ValidationError(str(error)) from error


class DecisionForm(FilterForm):
    """The form that confirms a decision about the messages that a page showed, or about all messages of a filter.

    Attributes:
        letters: the messages that the page showed; empty: all messages that match the filter, in a bulk action.
        token: id of the new bulk action. With the id, the bulk action starts only once if the form is submitted twice.
        opened: when the page was made. A bulk action does not change messages that match only after that time.
        previewed: how many messages the page of a bulk action showed. If another number matches, nothing is done.
        how: what the page of a release also asks for: `AT` (a time) or `TO` (a target, and perhaps a time); empty:
            neither.
    """

    letters = forms.CharField(required=False, widget=forms.HiddenInput)
    token = forms.UUIDField(required=False, widget=forms.HiddenInput)
    opened = forms.CharField(required=False, widget=forms.HiddenInput)
    previewed = forms.IntegerField(required=False, min_value=0, max_value=1_000_000, widget=forms.HiddenInput)
    how = forms.ChoiceField(required=False, choices=[(AT, AT), (TO, TO)], widget=forms.HiddenInput)

    def __init__(
        self, request: HttpRequest, decision: DecisionKind, how: str, *args: Any, **kwargs: Any,  # noqa: ANN401  Django's own
    ) -> None:  # fmt: skip
        super().__init__(*args, **kwargs)
        self.decision = decision
        if decision is DecisionKind.RELEASE and how in {AT, TO}:
            self.fields["due"] = _due_field(required=how == AT)
        if decision is DecisionKind.RELEASE and how == TO:
            self.fields["target"] = _target_field(request)
        if decision is DecisionKind.ASSIGN:
            self.fields["to"] = _assignee_field()
            self.fields["assigned"] = forms.CharField(required=False, widget=forms.HiddenInput)
        if decision is DecisionKind.NOTE:
            self.fields["reason"].label = "Note"
            self.fields["reason"].help_text = "Stored with each message, with your name. Do not copy payloads into it."
        self.fields["reason"] = self.fields.pop("reason")

    def clean_letters(self) -> SeenMessages:
        """Return the ids of the messages that the page showed, each with its state then; empty: a bulk action."""
        return unpack_messages(self.cleaned_data["letters"]) if self.cleaned_data["letters"] else {}

    def clean_due(self) -> datetime | None:
        """Return the earliest time of sending (None: now). Refuse a past time, and a time over a year ahead."""
        due: datetime | None = self.cleaned_data["due"]
        now = lanes.database_now()
        if due is not None and not now < due <= now + _A_YEAR:
            raise forms.ValidationError(
                f"Enter a future time within a year; it is {now:%Y-%m-%d %H:%M} UTC. To release now, go back."
            )
        return due

    def clean(self) -> dict[str, Any]:
        """Return the entered values. Refuse a form that has neither messages nor the token of a bulk action."""
        found = super().clean() or self.cleaned_data
        if "letters" in found and "token" in found and not found["letters"] and not found["token"]:
            self.add_error("letters", "The selection is not valid. Go back to the list and select the messages again.")
        return found

    def clean_assigned(self) -> Mapping[int, str] | None:
        """Return the assignee of each message that the page showed, by message id; None for a bulk action."""
        return read_assignees(self.cleaned_data["assigned"]) if self.cleaned_data.get("letters") else None

    def clean_opened(self) -> datetime | None:
        """Return when the page was made, if a bulk action or a note needs that time; None for other decisions.

        A bulk action does not change messages that match only after that time. A note is not added if the same note was
        added after that time, because then the form was submitted twice.
        """
        is_note, is_bulk_action = self.decision is DecisionKind.NOTE, self.cleaned_data.get("token")
        if not (is_note if self.cleaned_data.get("letters") else is_bulk_action):
            return None
        try:
            found = datetime.fromisoformat(self.cleaned_data["opened"])
            opened = None if found.tzinfo is None else found.astimezone(UTC)
        except (ValueError, OverflowError):
            opened = None
        if opened is None:
            raise forms.ValidationError("The page is incomplete. Go back to the list and select the messages again.")
        return opened

    def reopen(self) -> None:
        """Set `opened` to now, so that the form is about the messages that match the filter now. Keep other values."""
        self.data = dict(self.data.items()) | {"opened": lanes.database_now().isoformat()}

    def preview(self, count: int) -> None:
        """Store in the form how many messages the page shows (`count`), for the field `previewed`."""
        if self.is_bound:
            self.data = dict(self.data.items()) | {"previewed": str(count)}
        else:
            self.initial["previewed"] = count

    @property
    def since(self) -> datetime | None:
        """Return the time in the field `opened`, even if the form is not validated yet; None: it has no valid time."""
        try:
            return datetime.fromisoformat(str(self["opened"].value())).astimezone(UTC)
        except (ValueError, OverflowError):
            return None

    @property
    def page_state(self) -> PageState:
        """Return the assignees that the page showed, and when the page was made."""
        return PageState(self.cleaned_data.get("assigned"), self.cleaned_data.get("opened"))

    @property
    def arguments(self) -> Arguments:
        """Return the entered due time, target and assignee as JSON values, so that a bulk action can store them."""
        found = self.cleaned_data
        due, target = found.get("due"), found.get("target")
        values = {"due": due and due.isoformat(), "target": target and target.pk, "to": found.get("to")}
        return {name: value for name, value in values.items() if name in self.fields and value is not None}


class ExportForm(FilterForm):
    """The form of an export: file format, what the file includes, and the reason."""

    kind = forms.ChoiceField(
        label="Format", choices=[("jsonl", "JSON lines, one message per line"), ("csv", "CSV, for spreadsheets")]
    )
    bodies = forms.BooleanField(
        required=False,
        label="Include bodies and attributes",
        help_text="Bodies and attributes as they would be sent, including edits. Bytes that are not UTF-8 are written "
        "in base64.",
    )
    originals = forms.BooleanField(
        required=False,
        label="Include original bodies",
        help_text="The captured body and attributes of edited messages, in the column original.",
    )
    revealed = forms.BooleanField(
        required=False,
        label="Reveal masked values",
        help_text="Without this, values of masked fields are exported as [masked].",
    )

    def clean(self) -> dict[str, Any]:
        """Return the entered values. Refuse original bodies if bodies and attributes are not exported, too."""
        found = super().clean() or self.cleaned_data
        if found.get("originals") and not found.get("bodies"):
            self.add_error("originals", "Include bodies and attributes as well, or untick this box.")
        return found


def filter_of_query(query: str) -> MessageFilter:
    """Return the filter that a URL query describes.

    Raises:
        InvalidFilter: the query has unknown parameters, invalid values, or more than 100 parameters.
    """
    try:
        return MessageFilter.from_query(parse_qs(query, keep_blank_values=True, max_num_fields=100))
    except ValueError:
        raise InvalidFilter("The filter has too many parts. Open the list again.") from None


def _due_field(*, required: bool) -> forms.DateTimeField:
    return utc_datetime(
        "Not before (UTC)",
        "Until then, the messages and later messages of the same keys stay queued.",
        required=required,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )


def _target_field(request: HttpRequest) -> forms.ModelChoiceField[Target]:
    watched = DeadLetterQueue.objects.values("arn")
    return forms.ModelChoiceField(
        visible_rows.rows(request, Target.objects.exclude(arn__in=watched).order_by("arn")),
        label="Target",
        help_text="Rules are not evaluated for released messages. Messages that this target cannot accept are skipped.",
    )


def _assignee_field() -> forms.ChoiceField:
    names = list(assignment.assignable_people().values_list("username", flat=True)[:_PEOPLE])
    return forms.ChoiceField(
        required=False, label="Assign to", choices=[("", "nobody"), *((name, name) for name in names)]
    )
