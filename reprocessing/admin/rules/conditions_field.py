"""The form field for the conditions of a rule, a JSON list of texts, with examples and understandable errors."""

from __future__ import annotations

import json
from json import JSONDecodeError
from typing import Any, Final

from django import forms

from reprocessing.domain.errors import InvalidRule
from reprocessing.domain.routing.conditions import Condition
from reprocessing.domain.routing.first_match import CONDITIONS

HELP: Final = 'A JSON list of conditions, which must all match: ["tenant equals acme"]. [] matches every message.'
#: Examples that the form offers: a condition, and what it matches.
EXAMPLES: Final = (
    ("tenant equals acme", "messages of one tenant"),
    ("type in order.paid,order.sent", "one of several types"),
    ("attribute:source prefix shop-", "an attribute that begins with shop-"),
    ("body:order.total exists", "the body has this field (JMESPath)"),
    ("task regex ^billing\\.", "tasks of one module (RE2)"),
)
_SHAPE: Final = 'Write texts in double quotes, with commas between them: ["tenant equals acme", "task exists"].'
_NEAR: Final = 24  # max characters that an error quotes from the place where parsing stopped
#: Part of an error message of Python's JSON parser, and the text that the form shows instead.
_PROBLEMS: Final = {
    "trailing comma": "remove the comma after the last text.",
    "delimiter": "a comma or the closing ] is missing {here}.",
    "unterminated": "a text has no closing quote {here}.",
    "escape": "write a backslash in a text twice {here}.",
    "control character": "a text must end in the line in which it begins.",
    "extra data": "there is more text after the closing ] {here}.",
}


class ConditionsField(forms.CharField):
    """A form field for a JSON list of conditions."""

    def clean(self, value: Any) -> list[str]:  # noqa: ANN401  Django's own
        """Return the conditions as texts. Refuse JSON that is not a list of conditions, and too many conditions."""
        return parsed(str(super().clean(value)))


def parsed(text: str) -> list[str]:
    """Return the conditions of a JSON list as texts.

    Raises:
        ValidationError: the text is not a JSON list of conditions, or the list has too many conditions.
    """
    found = read_list(text)
    if len(found) > CONDITIONS:
        raise forms.ValidationError(
            f"The rule has {len(found):,} conditions, and {CONDITIONS} are allowed. Split it into several rules."
        )
    for number, condition in enumerate(found, 1):
        try:
            Condition.parse(condition)
        except InvalidRule as error:
            raise forms.ValidationError(f"Condition {number}: {error}") from error
    return found


def with_example(text: str, number: str) -> str:
    """Return the JSON list `text` with example number `number` of `EXAMPLES` added, unless the list has it already.

    A text that is not a JSON list is returned unchanged.
    """
    try:
        found = json.loads(text or "[]")
    except (ValueError, RecursionError):
        return text
    known = number.isascii() and number.isdecimal() and int(number[:3]) < len(EXAMPLES)
    if not known or not isinstance(found, list) or EXAMPLES[int(number)][0] in found:
        return text
    return json.dumps([*found, EXAMPLES[int(number)][0]], indent=2)


def read_list(text: str) -> list[str]:
    """Return the texts of a JSON list.

    Raises:
        ValidationError: the text is not JSON, not a list, or a list with values that are not texts.
    """
    try:
        found = json.loads(text)
    except JSONDecodeError as error:
        raise forms.ValidationError(f"Line {error.lineno}, column {error.colno}: {_problem(error)} {_SHAPE}") from error
    except (RecursionError, ValueError) as error:
        raise forms.ValidationError("The JSON is nested too deep, or has a number that is too long.") from error
    if not isinstance(found, list):
        raise forms.ValidationError(f"This is not a list of texts: a list begins with [ and ends with ]. {_SHAPE}")
    for number, condition in enumerate(found, 1):
        if not isinstance(condition, str):
            raise forms.ValidationError(f"Condition {number} is not a text. {_SHAPE}")
    return found


def _problem(error: JSONDecodeError) -> str:
    """Return a text about what is wrong where JSON parsing stopped.

    A comma before the closing ] is checked here, because versions of Python report it differently.
    """
    rest, before = error.doc[error.pos :].lstrip(), error.doc[: error.pos].rstrip()
    if before.endswith(",") and rest.startswith("]"):
        return "remove the comma after the last text."
    found = (ours for theirs, ours in _PROBLEMS.items() if theirs in error.msg.lower())
    ours = next(found, "expected a text in double quotes {here}.")
    return ours.format(here=f"here: {rest[:_NEAR]}" if rest else "at the end")
