"""Form fields of the admin, and their error messages."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError

from reprocessing.domain.errors import InvalidSelector
from reprocessing.domain.message import arn
from reprocessing.domain.message.identity import Selector, SelectorSource
from reprocessing.domain.routing import jmespath_query
from reprocessing.models.dlq import Jitter
from reprocessing.store.dlqs import registration

_NO_MOMENT: Final = "Not a valid date and time. Write it like 2026-03-01 08:00."
#: The text that removes a limit.
OFF: Final = "off"
LONGEST: Final = 2_048
JITTER: Final = (
    (Jitter.FULL.value, "full: a random part of the backoff"), (Jitter.NONE.value, "none: always the whole backoff"),
)  # fmt: skip
_ALIKE: Final = (SelectorSource.NONE, SelectorSource.CONTENT_HASH, SelectorSource.MESSAGE_ID)


def text(label: str, help_text: str = "", **more: Any) -> forms.CharField:  # noqa: ANN401  Django's own
    """Return the field of an optional line."""
    return forms.CharField(required=False, max_length=LONGEST, label=label, help_text=help_text, **more)


def lines(label: str, help_text: str = "") -> forms.CharField:
    """Return the field of optional lines."""
    return forms.CharField(
        required=False, max_length=20_000, label=label, help_text=help_text, widget=forms.Textarea(attrs={"rows": 3})
    )


def slug(help_text: str) -> forms.SlugField:
    """Return the field of a name."""
    why = "Use only the letters a to z, digits, - and _: no spaces, no dots. Example: orders-2026."
    return forms.SlugField(max_length=100, label="Name", help_text=help_text, error_messages={"invalid": why})


def utc_datetime(
    label: str, help_text: str = "", *, required: bool = False, widget: forms.DateTimeInput | None = None
) -> UtcDateTimeField:
    """Return the field of a date and time in UTC."""
    return UtcDateTimeField(
        required=required, label=label, help_text=help_text, error_messages={"invalid": _NO_MOMENT},
        widget=widget or forms.DateTimeInput(attrs={"placeholder": "2026-03-01 08:00"}),
    )  # fmt: skip


def number(label: str, help_text: str = "", *, least: float, most: float) -> forms.FloatField:
    """Return the field of an optional number in this range."""
    return forms.FloatField(required=False, min_value=least, max_value=most, label=label, help_text=help_text)


def whole_number(label: str, help_text: str = "", *, least: int = 1, most: int = 2**31 - 1) -> forms.IntegerField:
    """Return the field of an optional whole number in this range."""
    return forms.IntegerField(required=False, min_value=least, max_value=most, label=label, help_text=help_text)


def choice(
    label: str, choices: Iterable[tuple[str, str]], help_text: str = "", *, empty: str = ""
) -> forms.ChoiceField:
    """Return the field of an optional choice; `empty`: the label of no choice."""
    every = [*([("", empty)] if empty else []), *choices]
    return forms.ChoiceField(required=False, choices=every, label=label, help_text=help_text)


class UtcDateTimeField(forms.DateTimeField):
    """A field for a date and time with any offset, in the years 1 to 9999 in UTC."""

    def to_python(self, value: Any) -> datetime | None:  # noqa: ANN401  Django's own
        """Return the time in UTC."""
        try:
            found = super().to_python(value)
            return found and found.astimezone(UTC)
        except OverflowError:
            raise ValidationError(_NO_MOMENT, code="invalid") from None


class NumberOrOff(forms.CharField):
    """A field for a number in a range, `off`, or nothing."""

    def __init__(self, *, least: float, most: float, **more: Any) -> None:  # noqa: ANN401  Django's own
        self.least, self.most = least, most
        super().__init__(required=False, max_length=40, **more)

    def clean(self, value: Any) -> Any:  # noqa: ANN401  Django's own
        """Return the number, `off`, or nothing."""
        given = super().clean(value)
        if given in {"", OFF}:
            return given
        try:
            found = float(given)
        except ValueError:
            found = float("nan")
        if not self.least <= found <= self.most:
            raise ValidationError(f'Enter a number from {self.least:g} to {self.most:,.15g}, or "off".')
        return found


class SelectorField(forms.CharField):
    """A field for a selector. `shared`: refuse selectors whose value differs for every message."""

    def __init__(self, *, shared: bool = False, **more: Any) -> None:  # noqa: ANN401  Django's own
        self.shared = shared
        super().__init__(required=False, max_length=LONGEST, **more)

    def clean(self, value: Any) -> str:  # noqa: ANN401  Django's own
        """Return the selector's normal form, or nothing."""
        given = super().clean(value)
        if not given:
            return ""
        try:
            found = Selector.parse(given)
        except InvalidSelector as error:
            raise ValidationError(str(error)) from error
        if self.shared and found.source in _ALIKE:
            raise ValidationError("No two messages share this value. Use another selector, or leave the field empty.")
        return str(found)


class RoleField(forms.CharField):
    """The ARN of an IAM role."""

    def clean(self, value: Any) -> str:  # noqa: ANN401  Django's own
        """Return the ARN, or nothing."""
        given = str(super().clean(value))
        if given and not arn.is_role(given):
            raise ValidationError("Not the ARN of an IAM role. Example: arn:aws:iam::111122223333:role/redrive")
        return given


class CrontabField(forms.CharField):
    """The five fields of a crontab."""

    def clean(self, value: Any) -> str:  # noqa: ANN401  Django's own
        """Return the five fields separated by single spaces, or nothing."""
        given = " ".join(str(super().clean(value)).split())
        try:
            if given:
                registration.crontab_schedule(given).clean_fields()
        except (ValidationError, ValueError) as error:
            raise ValidationError("Not a valid schedule. Example: */5 * * * *") from error
        return given


class ExpressionsField(forms.CharField):
    """JMESPath expressions, one per line."""

    def clean(self, value: Any) -> list[str]:  # noqa: ANN401  Django's own
        """Return the expressions; refuse those that may not be evaluated."""
        found = list(dict.fromkeys(_lines(super().clean(value))))
        for number, expression in enumerate(found, 1):
            if problem := jmespath_query.problem(expression, as_in="order.id"):
                raise ValidationError(f"Line {number}: {problem}")
        return found

    def has_changed(self, initial: Any, data: Any) -> bool:  # noqa: ANN401  Django's own
        """Return whether the expressions changed; blank lines do not count."""
        return _lines(data or "") != str(initial or "").splitlines()


def _lines(text: object) -> list[str]:
    return [line.strip() for line in str(text).splitlines() if line.strip()]
