"""Form fields that several forms of the admin use, with their checks and error messages."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError

from reprocessing.domain.errors import InvalidSelector
from reprocessing.domain.message import arn
from reprocessing.domain.message.identity import Selector, SelectorSource
from reprocessing.domain.payloads.mask_rules import mask_problem
from reprocessing.domain.routing import jmespath_query
from reprocessing.domain.search.search_fields import list_problem
from reprocessing.models.dlq import Jitter
from reprocessing.store.dlqs import dlq_proposal

_NO_MOMENT: Final = "Not a valid date and time. Write it like 2026-03-01 08:00."
#: The word that a person enters into a number field to remove the limit.
OFF: Final = "off"
LONGEST: Final = 2_048
JITTER: Final = (
    (Jitter.FULL.value, "full: a random part of the backoff"), (Jitter.NONE.value, "none: always the whole backoff"),
)  # fmt: skip
_NOT_COMPARABLE: Final = (SelectorSource.NONE, SelectorSource.CONTENT_HASH, SelectorSource.MESSAGE_ID)


def text(label: str, help_text: str = "", **more: Any) -> forms.CharField:  # noqa: ANN401  Django's own
    """Return a form field for an optional text of one line."""
    return forms.CharField(required=False, max_length=LONGEST, label=label, help_text=help_text, **more)


def lines(label: str, help_text: str = "") -> forms.CharField:
    """Return a form field for an optional text of several lines."""
    return forms.CharField(
        required=False, max_length=20_000, label=label, help_text=help_text, widget=forms.Textarea(attrs={"rows": 3})
    )


def slug(help_text: str) -> forms.SlugField:
    """Return a required form field for a name of letters, digits, - and _. The browser checks the characters, too."""
    why = "Use only the letters a to z, digits, - and _: no spaces, no dots. Example: orders-2026."
    widget = forms.TextInput(attrs={"pattern": r"[a-zA-Z0-9_\-]+", "title": why})
    return forms.SlugField(
        max_length=100, label="Name", help_text=help_text, error_messages={"invalid": why}, widget=widget
    )


def utc_datetime(
    label: str, help_text: str = "", *, required: bool = False, widget: forms.DateTimeInput | None = None
) -> UtcDateTimeField:
    """Return a form field for a date and time in UTC."""
    return UtcDateTimeField(
        required=required, label=label, help_text=help_text, error_messages={"invalid": _NO_MOMENT},
        widget=widget or forms.DateTimeInput(attrs={"placeholder": "2026-03-01 08:00"}),
    )  # fmt: skip


def number(label: str, help_text: str = "", *, least: float, most: float) -> forms.FloatField:
    """Return a form field for an optional number from `least` to `most`."""
    return forms.FloatField(required=False, min_value=least, max_value=most, label=label, help_text=help_text)


def whole_number(label: str, help_text: str = "", *, least: int = 1, most: int = 2**31 - 1) -> forms.IntegerField:
    """Return a form field for an optional whole number from `least` to `most`."""
    return forms.IntegerField(required=False, min_value=least, max_value=most, label=label, help_text=help_text)


def choice(
    label: str, choices: Iterable[tuple[str, str]], help_text: str = "", *, empty: str = ""
) -> forms.ChoiceField:
    """Return a form field for an optional choice. `empty`: label of the entry that chooses nothing; "": no entry."""
    every = [*([("", empty)] if empty else []), *choices]
    return forms.ChoiceField(required=False, choices=every, label=label, help_text=help_text)


class UtcDateTimeField(forms.DateTimeField):
    """A form field for a date and time. A time that is entered without an offset is in UTC."""

    def to_python(self, value: Any) -> datetime | None:  # noqa: ANN401  Django's own
        """Return the entered time in UTC; None: the field is empty."""
        try:
            found = super().to_python(value)
            return found and found.astimezone(UTC)
        except OverflowError:
            raise ValidationError(_NO_MOMENT, code="invalid") from None


class NumberOrOff(forms.CharField):
    """An optional form field for a number from `least` to `most`, or for the word "off"."""

    def __init__(self, *, least: float, most: float, **more: Any) -> None:  # noqa: ANN401  Django's own
        self.least, self.most = least, most
        super().__init__(required=False, max_length=40, **more)

    def clean(self, value: Any) -> Any:  # noqa: ANN401  Django's own
        """Return the number, the word "off", or an empty text. Refuse anything else."""
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
    """A field for a selector, which says where a value is in a message, such as `attribute:customer`.

    With `shared`, the field refuses `message-id`, `content-hash` and `none`, because rules cannot compare such values.
    With `shared` and `or_none`, the field accepts `none`.
    """

    def __init__(self, *, shared: bool = False, or_none: bool = False, **more: Any) -> None:  # noqa: ANN401  Django's own
        self.shared, self.or_none = shared, or_none
        super().__init__(required=False, max_length=LONGEST, **more)

    def clean(self, value: Any) -> str:  # noqa: ANN401  Django's own
        """Return the selector in its normal form, or an empty text. Refuse an invalid selector."""
        given = super().clean(value)
        if not given:
            return ""
        try:
            found = Selector.parse(given)
        except InvalidSelector as error:
            raise ValidationError(str(error)) from error
        if (
            self.shared
            and found.source in _NOT_COMPARABLE
            and not (self.or_none and found.source is SelectorSource.NONE)
        ):
            raise ValidationError(
                "Rules cannot compare this value: it is missing, or it differs in every message. Use an attribute or a "
                "body field, or leave the field empty."
            )
        return str(found)


class RoleField(forms.CharField):
    """A field for the ARN of an IAM role."""

    def clean(self, value: Any) -> str:  # noqa: ANN401  Django's own
        """Return the ARN, or an empty text. Refuse anything else."""
        given = str(super().clean(value))
        if given and not arn.is_role(given):
            raise ValidationError("Not the ARN of an IAM role. Example: arn:aws:iam::111122223333:role/redrive")
        return given


class CrontabField(forms.CharField):
    """A field for a schedule: the five fields of a crontab."""

    def clean(self, value: Any) -> str:  # noqa: ANN401  Django's own
        """Return the five fields separated by single spaces, or an empty text. Refuse an invalid schedule."""
        given = " ".join(str(super().clean(value)).split())
        try:
            if given:
                dlq_proposal.crontab_schedule(given).clean_fields()
        except (ValidationError, ValueError) as error:
            raise ValidationError("Not a valid schedule. Example: */5 * * * *") from error
        return given


class ExpressionsField(forms.CharField):
    """A field for JMESPath expressions, one per line."""

    def clean(self, value: Any) -> list[str]:  # noqa: ANN401  Django's own
        """Return the expressions without repetitions. Refuse an expression that is not valid."""
        found = list(dict.fromkeys(_lines(super().clean(value))))
        for number, expression in enumerate(found, 1):
            if problem := self.problem(expression):
                raise ValidationError(f"Line {number}: {problem}")
        return found

    def problem(self, expression: str) -> str | None:
        """Return why a JMESPath expression is not valid; None: it is valid."""
        return jmespath_query.problem(expression, as_in="order.id")

    def has_changed(self, initial: Any, data: Any) -> bool:  # noqa: ANN401  Django's own
        """Return whether the person changed the expressions. Added or removed blank lines are not a change."""
        return _lines(data or "") != str(initial or "").splitlines()


class MaskRulesField(ExpressionsField):
    """A field for masking rules, one per line: names of fields, or JMESPath expressions of the body."""

    def problem(self, expression: str) -> str | None:
        """Return why a text is not a valid masking rule; None: it is valid."""
        return mask_problem(expression) or None


class SearchFieldsField(ExpressionsField):
    """A field for the search fields of a DLQ, one per line: name and selector, such as order_id=body:order.id."""

    def clean(self, value: Any) -> list[str]:  # noqa: ANN401  Django's own
        """Return the search fields. Refuse an invalid field, a repeated name, and too many fields."""
        found = super().clean(value)
        if problem := list_problem(found):
            raise ValidationError(problem)
        return found

    def problem(self, expression: str) -> str | None:
        """Return why a text is not a valid search field; None: it is valid."""
        return list_problem([expression]) or None


def _lines(text: object) -> list[str]:
    return [line.strip() for line in str(text).splitlines() if line.strip()]
