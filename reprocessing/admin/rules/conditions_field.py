"""The conditions of a rule as a person types them: a JSON list of texts, with examples of each, and what ails it."""

from __future__ import annotations

import json
from json import JSONDecodeError
from typing import Any, Final

from django import forms

from reprocessing.domain.errors import RuleIsUnclear
from reprocessing.domain.routing.conditions import Condition
from reprocessing.domain.routing.first_match import CONDITIONS

HELP: Final = 'A JSON list of texts, all of which must hold: ["tenant equals acme"]. [] means every letter.'
#: A condition of each operator, and what it means.
EXAMPLES: Final = (
    ("tenant equals acme", "letters of one tenant"),
    ("type in order.paid,order.sent", "one of several types"),
    ("attribute:source prefix shop-", "an attribute begins so"),
    ("body:order.total exists", "the body has this field (JMESPath)"),
    ("task regex ^billing\\.", "tasks of one module (RE2)"),
)
_SHAPE: Final = 'Write texts in double quotes, with commas between them: ["tenant equals acme", "task exists"].'
_NEAR: Final = 24  # characters
#: By words of Python's own, what is wrong.
_AILINGS: Final = {
    "trailing comma": "there is a comma behind the last text.",
    "delimiter": "a comma or the closing ] is missing {here}.",
    "unterminated": "a text has no closing quote {here}.",
    "escape": "a backslash in a text is written twice {here}.",
    "control character": "a text ends in the line it begins in.",
    "extra data": "something stands behind the closing ] {here}.",
}


class ConditionsField(forms.CharField):
    """A JSON list of conditions."""

    def clean(self, value: Any) -> list[str]:  # noqa: ANN401  Django's own
        """The conditions, each one that can be asked."""
        found = _list(str(super().clean(value)))
        if len(found) > CONDITIONS:
            raise forms.ValidationError(
                f"These are {len(found):,} conditions; a rule has {CONDITIONS} at most. Split it into several rules."
            )
        for number, one in enumerate(found, 1):
            if not isinstance(one, str):
                raise forms.ValidationError(f"Condition {number} is no text. {_SHAPE}")
            try:
                Condition.parse(one)
            except RuleIsUnclear as error:
                raise forms.ValidationError(f"Condition {number}: {error}") from error
        return found


def with_example(text: str, number: str) -> str:
    """Conditions as they are edited, with an example by its number, once; of a text that is no list, as it is."""
    try:
        found = json.loads(text or "[]")
    except (ValueError, RecursionError):
        return text
    known = number.isascii() and number.isdecimal() and int(number[:3]) < len(EXAMPLES)
    if not known or not isinstance(found, list) or EXAMPLES[int(number)][0] in found:
        return text
    return json.dumps([*found, EXAMPLES[int(number)][0]], indent=2)


def _list(text: str) -> list[Any]:
    try:
        found = json.loads(text)
    except JSONDecodeError as error:
        raise forms.ValidationError(f"Line {error.lineno}, column {error.colno}: {_ailing(error)} {_SHAPE}") from error
    except (RecursionError, ValueError) as error:
        raise forms.ValidationError("This is nested too deep, or holds a number that is too long.") from error
    if not isinstance(found, list):
        raise forms.ValidationError(f"This is no list of texts: it begins with [ and ends with ]. {_SHAPE}")
    return found


def _ailing(error: JSONDecodeError) -> str:
    """What is wrong where reading ended; Python's words for it differ from one version to the next."""
    rest, before = error.doc[error.pos :].lstrip(), error.doc[: error.pos].rstrip()
    if before.endswith(",") and rest.startswith("]"):
        return "there is a comma behind the last text."
    found = (ours for theirs, ours in _AILINGS.items() if theirs in error.msg.lower())
    ours = next(found, "a text in double quotes is expected {here}.")
    return ours.format(here=f"here: {rest[:_NEAR]}" if rest else "at the end")
