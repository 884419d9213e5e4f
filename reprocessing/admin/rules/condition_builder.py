"""Show the conditions of a rule on its page, as rows of a form or as a JSON text.

The page has buttons that add a row, remove a row, or switch between rows and text. The buttons work without scripts:
each button submits the form, and the page shows the form again, changed. The buttons check and save nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.core.exceptions import ValidationError

from reprocessing.admin.rules import conditions_field, rule_draft
from reprocessing.domain.errors import InvalidRule
from reprocessing.domain.routing.condition_rows import ConditionRow, OnlyText, condition_of, row_of, same_condition
from reprocessing.domain.routing.conditions import Operator
from reprocessing.domain.routing.first_match import CONDITIONS

#: Names of the buttons that change the conditions on the page, and save nothing.
BUTTONS: Final = frozenset({"add_row", "remove_row", "use", "show_as", "show_values", "update"})
ROWS, TEXT = "rows", "text"
_NUMBER: Final = re.compile(r"row_([0-9]{1,3})_(?:field|text)")
_MOST: Final = 2 * CONDITIONS  # max rows that are read; more than CONDITIONS rows are an error


@dataclass(slots=True)
class BuilderRow:
    """A condition as a row of the form.

    Attributes:
        parts: field, operator and value of the condition, each in an input of its own. None: the condition cannot be
            split into these parts, so the row has one input with its text.
        text: the text of the condition before the person changed the row; empty: a new row.
        why: why the condition cannot be split; empty: it can be split.
        error: what is wrong with the row; empty: the row has no error, or was not checked.
        gets_focus: whether the person has just added the row for a field, and enters its value next.
    """

    parts: ConditionRow | None
    text: str = ""
    why: str = ""
    error: str = ""
    gets_focus: bool = False

    def read(self) -> str:
        """Return the condition of the row as text, and set `error`.

        If the person did not change the meaning of the condition, its old text is returned.
        """
        if self.parts is None:
            found = row_of(self.text)
            is_wrong = isinstance(found, OnlyText) and not found.is_valid
            self.error = f"{self.why[:1].upper()}{self.why[1:]}" if is_wrong else ""
            return self.text
        try:
            condition = condition_of(self.parts)
        except InvalidRule as error:
            self.error = str(error)
            return f"{self.parts.field} {self.parts.operator} {self.parts.value}".strip(" ")
        return self.text if same_condition(condition, self.text) else condition


@dataclass(slots=True)
class ConditionBuilder:
    """The conditions on the page.

    `shown_as`: ROWS or TEXT. `text`: the conditions as a JSON list. `problem`: why this text cannot be shown as rows.
    """

    shown_as: str
    rows: list[BuilderRow] = field(default_factory=list)
    text: str = "[]"
    problem: str = ""

    @property
    def has_errors(self) -> bool:
        """Return whether a row has an error. False if the conditions are shown as text: `ConditionsField` checks it."""
        return self.shown_as == ROWS and any(row.error for row in self.rows)

    @property
    def lacks_value(self) -> bool:
        """Return whether a row has a field, but not the value that its operator takes."""
        return any(row.parts is not None and row.parts.lacks_value for row in self.rows)

    @property
    def offers_row(self) -> bool:
        """Return whether another row can be added."""
        return len(self.rows) < CONDITIONS

    @property
    def operators(self) -> list[tuple[str, str]]:
        """Return the operators from which a person chooses in a row: for each, the stored value and the label."""
        return list(_OPERATORS.items())

    def with_blank_row(self) -> ConditionBuilder:
        """Add an empty row at the end, unless the conditions are shown as text. Return this object."""
        last = self.rows[-1] if self.rows else None
        if self.shown_as == ROWS and not (last and last.parts and last.parts.is_empty):
            self.rows.append(BuilderRow(ConditionRow("", Operator.EQUALS.value)))
        return self


_OPERATORS: Final = {
    Operator.EQUALS.value: "equals", Operator.IN.value: "is one of (commas between)",
    Operator.PREFIX.value: "begins with", Operator.EXISTS.value: "exists", Operator.REGEX.value: "matches regex (RE2)",
}  # fmt: skip


def of_text(text: str, *, shown_as: str = ROWS) -> ConditionBuilder:
    """Return the conditions in a JSON text. If it is not a JSON list of texts, it is shown as text, with the reason."""
    try:
        found = conditions_field.read_list(text)
    except ValidationError as error:
        return ConditionBuilder(TEXT, text=text, problem=" ".join(error.messages) if shown_as == ROWS else "")
    return ConditionBuilder(shown_as, _rows(found) if shown_as == ROWS else [], text)


def read(sent: Mapping[str, Any], otherwise: str) -> ConditionBuilder:
    """Return the conditions in a submitted form (`sent`). If no form was submitted, return those in `otherwise`."""
    if sent.get("shown_as") != ROWS:
        text = sent.get("conditions", otherwise)
        return of_text(text, shown_as=TEXT if sent.get("shown_as") == TEXT or "conditions" in sent else ROWS)
    numbers = sorted({int(found[1]) for name in sent if (found := _NUMBER.fullmatch(name))})[:_MOST]
    rows = [_sent_row(sent, number) for number in numbers if sent.get("remove_row") != str(number)]
    rows = [row for row in rows if not (row.parts.is_empty if row.parts else not row.text.strip())]
    texts = [row.read() for row in rows]
    return ConditionBuilder(ROWS, rows, rule_draft.to_json(texts))


def changed(now: ConditionBuilder, sent: Mapping[str, Any]) -> ConditionBuilder:
    """Apply the button that the person pressed, such as "add a row", to the conditions, and return the result.

    Errors of rows are removed, because the person has not finished the rows yet.
    """
    if sent.get("show_as") in {ROWS, TEXT}:
        return of_text(now.text, shown_as=str(sent["show_as"]))
    if "use" in sent:
        return _with(now, str(sent["use"]))
    for row in now.rows:
        row.error = ""
    return now.with_blank_row() if "add_row" in sent else now


def _with(now: ConditionBuilder, offered: str) -> ConditionBuilder:
    """Add what the person selected (`offered`): a condition, or a field for which the person then enters a value."""
    found = row_of(offered)
    if now.shown_as == TEXT:
        return _with_text(now, f"{offered} {Operator.EXISTS}" if isinstance(found, OnlyText) else offered)
    is_field = isinstance(found, OnlyText)
    parts = ConditionRow(offered, Operator.EQUALS.value) if isinstance(found, OnlyText) else found
    new = BuilderRow(parts, gets_focus=is_field)
    texts = [row.read() for row in now.rows]
    known = not is_field and any(same_condition(text, offered) for text in texts)
    if not known:
        now.rows.append(new)
        now.text = rule_draft.to_json([row.read() for row in now.rows])
    for row in now.rows:
        row.error = ""
    return now


def _with_text(now: ConditionBuilder, condition: str) -> ConditionBuilder:
    try:
        texts = conditions_field.read_list(now.text)
    except ValidationError:
        return now
    return now if condition in texts else ConditionBuilder(TEXT, text=rule_draft.to_json([*texts, condition]))


def _rows(texts: Sequence[str]) -> list[BuilderRow]:
    rows = []
    for text in texts:
        found = row_of(text)
        rows.append(BuilderRow(None, text, found.why) if isinstance(found, OnlyText) else BuilderRow(found, text))
    return rows


def _sent_row(sent: Mapping[str, Any], number: int) -> BuilderRow:
    row = f"row_{number}_"
    if f"{row}text" in sent:
        text = sent[f"{row}text"]
        found = row_of(text)
        return BuilderRow(None, text, found.why) if isinstance(found, OnlyText) else BuilderRow(found, text)
    parts = ConditionRow(sent[f"{row}field"].strip(), sent.get(f"{row}operator", ""), sent.get(f"{row}value", ""))
    return BuilderRow(parts, sent.get(f"{row}was", ""))
