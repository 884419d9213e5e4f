"""The forms that ask what is to be done with letters, and why."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import parse_qs

from django import forms
from django.contrib.auth.models import User

from reprocessing.admin.parking_lot.decision import Arguments, Deed, Seen, Stood, read_assignees, unpacked
from reprocessing.admin.site.fields import moment
from reprocessing.domain.errors import FilterIsUnclear
from reprocessing.domain.parking_lot.message_filter import Sieve
from reprocessing.models import DeadLetterQueue, Target
from reprocessing.store.ordering import lanes

#: Characters of a reason.
LONGEST: Final = 2_000
_PEOPLE = 500
_A_YEAR = timedelta(days=366)
#: What a release may be asked with, beside a reason.
AT, TO = "at", "to"


class Why(forms.Form):
    """Why."""

    reason = forms.CharField(
        max_length=LONGEST,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Recorded with your name, for whoever asks later.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  Django's own
        super().__init__(*args, **kwargs)
        self.fields["reason"] = self.fields.pop("reason")  # what is asked beside comes first


class Filtered(Why):
    """What is asked of all letters that a filter means; the page carries it as an address would."""

    query = forms.CharField(required=False, max_length=20_000, widget=forms.HiddenInput)

    def clean_query(self) -> Sieve:
        """The filter."""
        try:
            return read(self.cleaned_data["query"])
        except FilterIsUnclear as error:
            raise forms.ValidationError(str(error)) from error


class Decision(Filtered):
    """What is decided about the letters of a page, as they were seen, or about all that a filter means.

    `token`: of a decision about a filter; sent twice, it is done once. `opened`: when the page was made; what came to
    be meant after it was not looked at. `how`: what a release is asked with.
    """

    letters = forms.CharField(required=False, widget=forms.HiddenInput)
    token = forms.UUIDField(required=False, widget=forms.HiddenInput)
    opened = forms.CharField(required=False, widget=forms.HiddenInput)
    how = forms.ChoiceField(required=False, choices=[(AT, AT), (TO, TO)], widget=forms.HiddenInput)

    def __init__(self, deed: Deed, how: str, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  Django's own
        super().__init__(*args, **kwargs)
        self.deed = deed
        if deed is Deed.RELEASE and how in {AT, TO}:
            self.fields["due"] = _when(required=how == AT)
        if deed is Deed.RELEASE and how == TO:
            self.fields["target"] = _where()
        if deed is Deed.ASSIGN:
            self.fields["to"] = _whom()
            self.fields["assigned"] = forms.CharField(required=False, widget=forms.HiddenInput)
        if deed is Deed.NOTE:
            self.fields["reason"].label = "Note"
            self.fields["reason"].help_text = "Kept with each letter, with your name. Do not copy payloads into it."
        self.fields["reason"] = self.fields.pop("reason")

    def clean_letters(self) -> Seen:
        """The letters by id; none of a decision about a filter."""
        return unpacked(self.cleaned_data["letters"]) if self.cleaned_data["letters"] else {}

    def clean_due(self) -> datetime | None:
        """The moment, which is to come."""
        due: datetime | None = self.cleaned_data["due"]
        now = lanes.clock()
        if due is not None and not now < due <= now + _A_YEAR:
            raise forms.ValidationError(
                f"Name a moment to come, within a year; it is {now:%Y-%m-%d %H:%M} UTC. To replay at once, go back."
            )
        return due

    def clean(self) -> dict[str, Any]:
        """Either letters or a token."""
        found = super().clean() or self.cleaned_data
        if "letters" in found and "token" in found and not found["letters"] and not found["token"]:
            self.add_error("letters", "These letters cannot be read. Go back to the list and select them again.")
        return found

    def clean_assigned(self) -> Mapping[int, str] | None:
        """Who saw to each letter; None of a decision about a filter."""
        return read_assignees(self.cleaned_data["assigned"]) if self.cleaned_data.get("letters") else None

    def clean_opened(self) -> datetime | None:
        """When the page was made; None of letters that are moved or assigned, which say each how it was seen."""
        asks = self.deed is Deed.NOTE if self.cleaned_data.get("letters") else self.cleaned_data.get("token")
        if not asks:
            return None
        try:
            found = datetime.fromisoformat(self.cleaned_data["opened"])
            told = None if found.tzinfo is None else found.astimezone(UTC)
        except (ValueError, OverflowError):
            told = None
        if told is None:
            raise forms.ValidationError(
                "This page did not say when it was made. Go back to the list and select them again."
            )
        return told

    def reopen(self) -> None:
        """The page is made anew, with a new look at what its filter means; what was sent of it stays."""
        self.data = dict(self.data.items()) | {"opened": lanes.clock().isoformat()}

    @property
    def stood(self) -> Stood:
        """What else the page showed."""
        return Stood(self.cleaned_data.get("assigned"), self.cleaned_data.get("opened"))

    @property
    def arguments(self) -> Arguments:
        """What the deed is done with, as an operation stores it."""
        found = self.cleaned_data
        due, target = found.get("due"), found.get("target")
        said = {"due": due and due.isoformat(), "target": target and target.pk, "to": found.get("to")}
        return {name: value for name, value in said.items() if name in self.fields and value is not None}


class Export(Filtered):
    """What an export holds, and why somebody wants it."""

    kind = forms.ChoiceField(
        label="As", choices=[("jsonl", "JSON lines, one letter a line"), ("csv", "CSV, for spreadsheets")]
    )
    bodies = forms.BooleanField(
        required=False,
        label="With bodies and attributes",
        help_text="As they would be sent: of a letter that was edited, what it was made. What is no text is written in "
        "base64.",
    )
    originals = forms.BooleanField(
        required=False,
        label="And what edited letters died with",
        help_text="Under the name original; empty where a letter was not edited.",
    )

    def clean(self) -> dict[str, Any]:
        """Originals are of bodies and attributes."""
        found = super().clean() or self.cleaned_data
        if found.get("originals") and not found.get("bodies"):
            self.add_error("originals", "This takes bodies and attributes: tick them as well, or take this back.")
        return found


def read(query: str) -> Sieve:
    """The filter that an address's query says.

    Raises:
        FilterIsUnclear: it says something else.
    """
    try:
        return Sieve.from_query(parse_qs(query, keep_blank_values=True, max_num_fields=100))
    except ValueError:
        raise FilterIsUnclear("The filter has too many parts. Open the list again.") from None


def _when(*, required: bool) -> forms.DateTimeField:
    return moment(
        "Not before (UTC)",
        "Until then they wait; what is behind one of them in its lane waits with it.",
        required=required,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )


def _where() -> forms.ModelChoiceField[Target]:
    watched = DeadLetterQueue.objects.values("arn")
    return forms.ModelChoiceField(
        Target.objects.exclude(arn__in=watched).order_by("arn"),
        label="To this target",
        help_text="For this release rules are not asked about them. One that a target cannot take is left alone.",
    )


def _whom() -> forms.ChoiceField:
    people = User.objects.filter(is_active=True, is_staff=True).order_by("username")
    names = list(people.values_list("username", flat=True)[:_PEOPLE])
    return forms.ChoiceField(required=False, label="To", choices=[("", "nobody"), *((name, name) for name in names)])
