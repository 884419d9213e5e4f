"""Fields of the desk's sheets: what they take, and what they say when they do not."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError

from reprocessing.domain.errors import SelectorIsUnclear
from reprocessing.domain.message import arn
from reprocessing.domain.message.identity import Selector, Source
from reprocessing.domain.routing import jmespath_query
from reprocessing.store.dlqs import registration

_NO_MOMENT: Final = "There is no such day, or no such time. Write year, month and day, then the time: 2026-03-01 08:00."
#: What takes a limit away.
OFF: Final = "off"
LONGEST: Final = 2_048
_ALIKE: Final = (Source.NONE, Source.CONTENT_HASH, Source.MESSAGE_ID)


def text(label: str, help_text: str = "", **more: Any) -> forms.CharField:  # noqa: ANN401  Django's own
    """A line that may be empty."""
    return forms.CharField(required=False, max_length=LONGEST, label=label, help_text=help_text, **more)


def lines(label: str, help_text: str = "") -> forms.CharField:
    """Several lines."""
    return forms.CharField(
        required=False, max_length=20_000, label=label, help_text=help_text, widget=forms.Textarea(attrs={"rows": 3})
    )


def slug(help_text: str) -> forms.SlugField:
    """A name."""
    why = "A name has letters from a to z, digits, - and _ alone: no space, no dot. Such as orders-2026."
    return forms.SlugField(max_length=100, label="Name", help_text=help_text, error_messages={"invalid": why})


def moment(
    label: str, help_text: str = "", *, required: bool = False, widget: forms.DateTimeInput | None = None
) -> Moment:
    """A moment, in UTC."""
    return Moment(
        required=required, label=label, help_text=help_text, error_messages={"invalid": _NO_MOMENT},
        widget=widget or forms.DateTimeInput(attrs={"placeholder": "2026-03-01 08:00"}),
    )  # fmt: skip


def number(label: str, help_text: str = "", *, least: float, most: float) -> forms.FloatField:
    """A number between these two, or nothing."""
    return forms.FloatField(required=False, min_value=least, max_value=most, label=label, help_text=help_text)


def whole(label: str, help_text: str = "", *, least: int = 1, most: int = 2**31 - 1) -> forms.IntegerField:
    """A whole number between these two, or nothing."""
    return forms.IntegerField(required=False, min_value=least, max_value=most, label=label, help_text=help_text)


def choice(
    label: str, choices: Iterable[tuple[str, str]], help_text: str = "", *, empty: str = ""
) -> forms.ChoiceField:
    """One of these; with `empty` also nothing, in these words."""
    every = [*([("", empty)] if empty else []), *choices]
    return forms.ChoiceField(required=False, choices=every, label=label, help_text=help_text)


class Moment(forms.DateTimeField):
    """A moment, whatever its offset; one that UTC has no day for is none."""

    def to_python(self, value: Any) -> datetime | None:  # noqa: ANN401  Django's own
        """The moment in UTC, or nothing."""
        try:
            found = super().to_python(value)
            return found and found.astimezone(UTC)
        except OverflowError:
            raise ValidationError(_NO_MOMENT, code="invalid") from None


class NumberOrOff(forms.CharField):
    """A number between two others, `off`, or nothing."""

    def __init__(self, *, least: float, most: float, **more: Any) -> None:  # noqa: ANN401  Django's own
        self.least, self.most = least, most
        super().__init__(required=False, max_length=40, **more)

    def clean(self, value: Any) -> Any:  # noqa: ANN401  Django's own
        """The number, `off`, or nothing."""
        given = super().clean(value)
        if given in {"", OFF}:
            return given
        try:
            found = float(given)
        except ValueError:
            found = float("nan")
        if not self.least <= found <= self.most:
            raise ValidationError(f'A number from {self.least:g} to {self.most:,.15g}, or "off".')
        return found


class SelectorField(forms.CharField):
    """What is read from a letter. `shared`: of what letters have in common alone."""

    def __init__(self, *, shared: bool = False, **more: Any) -> None:  # noqa: ANN401  Django's own
        self.shared = shared
        super().__init__(required=False, max_length=LONGEST, **more)

    def clean(self, value: Any) -> str:  # noqa: ANN401  Django's own
        """Its plainest form; nothing stays nothing."""
        given = super().clean(value)
        if not given:
            return ""
        try:
            found = Selector.parse(given)
        except SelectorIsUnclear as error:
            raise ValidationError(str(error)) from error
        if self.shared and found.source in _ALIKE:
            raise ValidationError("This is nothing that letters have in common. Leave it empty if they carry nothing.")
        return str(found)


class RoleField(forms.CharField):
    """The ARN of a role of another account."""

    def clean(self, value: Any) -> str:  # noqa: ANN401  Django's own
        """The ARN, or nothing."""
        given = str(super().clean(value))
        if given and not arn.is_role(given):
            raise ValidationError("This is no role's ARN; arn:aws:iam::111122223333:role/redrive is one.")
        return given


class CrontabField(forms.CharField):
    """The five fields of a crontab."""

    def clean(self, value: Any) -> str:  # noqa: ANN401  Django's own
        """The five fields with one space between them, or nothing."""
        given = " ".join(str(super().clean(value)).split())
        try:
            if given:
                registration.crontab(given).clean_fields()
        except (ValidationError, ValueError) as error:
            raise ValidationError("This is no schedule; */5 * * * * is one.") from error
        return given


class ExpressionsField(forms.CharField):
    """JMESPath expressions, one a line."""

    def clean(self, value: Any) -> list[str]:  # noqa: ANN401  Django's own
        """The expressions; each is one that may be evaluated."""
        found = list(dict.fromkeys(one.strip() for one in str(super().clean(value)).splitlines() if one.strip()))
        for number, one in enumerate(found, 1):
            if problem := jmespath_query.problem(one, as_in="order.id"):
                raise ValidationError(f"Line {number}: {problem}")
        return found

    def has_changed(self, initial: Any, data: Any) -> bool:  # noqa: ANN401  Django's own
        """Whether other expressions are named, in whatever lines."""
        return [one.strip() for one in str(data or "").splitlines() if one.strip()] != str(initial or "").splitlines()
