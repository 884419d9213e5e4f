"""Convert a rule's condition into a row of a form (field, operator, value) and back, without loss."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from reprocessing.domain.errors import InvalidRule
from reprocessing.domain.routing.condition_fields import Field, FieldKind, problem_of_field
from reprocessing.domain.routing.conditions import FIELDS, Condition, Operator

#: Max characters of a row's value.
LONGEST: Final = 4_000
_REFUSED: Final = " is not a condition: "


@dataclass(frozen=True, slots=True)
class ConditionRow:
    """The parts of a condition as texts. `value`: with the operator `in`, all values in one text: acme,globex."""

    field: str
    operator: str
    value: str = ""

    @property
    def is_empty(self) -> bool:
        """Return whether neither a field nor a value is entered."""
        return not self.field.strip(" ") and not self.value

    @property
    def lacks_value(self) -> bool:
        """Return whether a field is entered, but not the value that the operator takes."""
        return bool(self.field.strip(" ")) and not self.value and self.operator != Operator.EXISTS


@dataclass(frozen=True, slots=True)
class OnlyText:
    """A condition that no row of the form can show, because of `why`. `is_valid`: whether it is a valid condition."""

    why: str
    is_valid: bool = False


def row_of(text: str) -> ConditionRow | OnlyText:
    """Return the row that shows this condition, or why no row can show it."""
    try:
        condition = Condition.parse(text)
    except InvalidRule as error:
        return OnlyText(_reason(error))
    match condition.operator, condition.values:
        case Operator.IN, _:
            value = str(condition).removeprefix(f"{condition.field} {Operator.IN} ")
        case _, ("",):
            return OnlyText("a row cannot compare with an empty text.", is_valid=True)
        case _, (value,):
            pass
        case _:
            value = ""
    if len(value) > LONGEST:
        return OnlyText(f"its values have {len(value):,} characters, and a row takes {LONGEST:,}.", is_valid=True)
    return ConditionRow(str(condition.field), condition.operator.value, value)


def condition_of(row: ConditionRow) -> str:
    """Return the condition that a row means.

    Raises:
        InvalidRule: the row is not complete, or not valid. The exception's text says what to enter.
    """
    kind, colon, name = (part.strip(" ") for part in row.field.partition(":"))
    field, value = f"{kind}{colon}{name}", row.value
    if kind not in list(FieldKind):
        raise InvalidRule(f"Enter a field: {FIELDS}.")
    if problem := problem_of_field(Field(FieldKind(kind), name), named=bool(colon)):
        raise InvalidRule(_sentence(problem))
    if row.operator not in list(Operator):
        raise InvalidRule(f"Choose an operator: {', '.join(Operator)}.")
    operator = Operator(row.operator)
    if operator is Operator.EXISTS:
        value = ""
    elif not value:
        raise InvalidRule('Enter a value. To compare with an empty text, use the text form: equals "".')
    elif operator is not Operator.IN:
        value = json.dumps(value)
    try:
        condition = Condition.parse(f"{field} {operator} {value}")
    except InvalidRule as error:
        raise InvalidRule(_sentence(_reason(error))) from error
    if condition.field.text != field or condition.operator is not operator:
        raise InvalidRule(f'"{field[:80]}" is more than a field. Enter the operator and the value beside the field.')
    return str(condition)


def same_condition(one: str, other: str) -> bool:
    """Return whether two texts mean the same condition, although they may be written differently."""
    try:
        return Condition.parse(one) == Condition.parse(other)
    except InvalidRule:
        return False


def _reason(error: InvalidRule) -> str:
    """Return the reason in the text of an error, without the quoted condition."""
    return str(error).rpartition(_REFUSED)[2]


def _sentence(reason: str) -> str:
    return f"{reason[:1].upper()}{reason[1:]}"
