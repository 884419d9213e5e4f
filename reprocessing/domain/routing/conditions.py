"""Parse and evaluate conditions of rules, which people write as texts such as `tenant in acme,globex`."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from reprocessing.domain.errors import InvalidRule
from reprocessing.domain.message.identity import Missing
from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.parking_lot import text_pattern
from reprocessing.domain.routing import jmespath_query
from reprocessing.domain.routing.condition_fields import (
    CONTROL,
    Field,
    FieldKind,
    FieldValue,
    NotText,
    problem_of_field,
)
from reprocessing.domain.routing.linear_regex import Pattern

VALUES = 1_000  #: max values of a condition
VALUE_LENGTH = 1_024  #: max characters of a value

_LONGEST = VALUES * (2 * VALUE_LENGTH + 4) + 1_024  # max characters of a condition; in JSON, values may double
_SHOWN = 80
FIELDS = "dlq, source, attribute:NAME, body:JMESPATH, type, tenant, task or task:JMESPATH"
_OPERATORS = "equals, in, prefix, exists or regex"


class Operator(StrEnum):
    """How a condition compares the field with the condition's values."""

    EQUALS = "equals"
    IN = "in"
    PREFIX = "prefix"
    EXISTS = "exists"
    REGEX = "regex"


_Matcher = Callable[[str], bool | Unreadable]


@dataclass(frozen=True, slots=True)
class Condition:
    """A field, an operator and values: 1 to 1,000 values for `in`, none for `exists`, one for other operators.

    `str(condition)` is the text that `Condition.parse` reads. The database stores this text.

    Raises:
        InvalidRule: the condition is not valid. The exception's text says what to write.
    """

    field: Field
    operator: Operator
    values: tuple[str, ...] = ()
    _matches: _Matcher = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for problem in _problems(self.field, self.operator, self.values):
            raise InvalidRule(f'"{_short(f"{self.field} {self.operator}")}" is not a condition: {problem}')
        object.__setattr__(self, "_matches", self._matcher())

    def __str__(self) -> str:
        return f"{self.field} {self.operator} {_written(self.operator, self.values)}".rstrip(" ")

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Return the condition that a text describes, or raise InvalidRule."""
        try:
            where, operator, rest = _parted(text)
            return cls(where, operator, _values(operator, rest))
        except _NotWritten as error:
            raise InvalidRule(f'"{_short(text)}" is not a condition: {error}') from None

    @property
    def matched_texts(self) -> tuple[str, ...]:
        """Return all texts that the condition matches; empty for operators other than `equals` and `in`."""
        return self.values if self.operator in (Operator.EQUALS, Operator.IN) else ()

    @property
    def reveals_values(self) -> bool:
        """Return whether a person learns values of payloads by seeing which letters match the condition.

        Names of message types and of tasks are not secret.
        """
        match self.field:
            case Field(FieldKind.DLQ | FieldKind.SOURCE):
                return False
            case Field(FieldKind.TYPE) | Field(FieldKind.TASK, ""):
                return self.operator is not Operator.EXISTS and not all(
                    map(text_pattern.type_name, self.matched_texts or ("",))
                )
            case Field(FieldKind.BODY | FieldKind.TASK, path):
                return self.operator is not Operator.EXISTS or not jmespath_query.is_path(path)
            case _:
                return self.operator is not Operator.EXISTS

    def holds(self, found: FieldValue) -> bool | Unreadable:
        """Return whether the condition matches `found`, the value of its field in a letter. Never raises.

        Return `Unreadable` if the value could not be read.
        """
        match found:
            case str():
                return self._matches(found)
            case Unreadable():
                return found
            case Missing():
                return False
            case NotText():
                return self.operator is Operator.EXISTS
            case _ as never:
                assert_never(never)

    def _matcher(self) -> _Matcher:
        match self.operator:
            case Operator.EQUALS | Operator.IN:
                return frozenset(self.values).__contains__
            case Operator.PREFIX:
                return lambda text: text.startswith(self.values[0])
            case Operator.EXISTS:
                return lambda _: True
            case Operator.REGEX:
                pattern = Pattern.parse(self.values[0])
                return (lambda _: pattern) if isinstance(pattern, Unreadable) else pattern.finds
            case _ as never:
                assert_never(never)


class _NotWritten(Exception):
    """A text is not a condition. The exception's text says how to write a condition."""


def _parted(text: str) -> tuple[Field, Operator, str]:
    """Return the field, the operator and the text after the operator. Raise `_NotWritten` if it is not a condition.

    A JMESPath expression may itself contain a word such as `in`. So the operator is the first such word after a
    valid field. This is unambiguous, because in JMESPath no word can follow a complete expression.
    """
    if len(text) > _LONGEST:
        raise _NotWritten(f"it has {len(text)} characters. Split it into several rules.")
    text, problems = text.strip(" "), []
    for found in re.finditer(r" +(equals|in|prefix|exists|regex)(?= |$)", text):
        if found.start() > len(FieldKind.ATTRIBUTE) + 1 + jmespath_query.LENGTH:
            break
        where, rest = text[: found.start()], text[found.end() :].strip(" ")
        kind, colon, name = where.partition(":")
        if kind not in list(FieldKind):
            break
        problem = problem_of_field(Field(FieldKind(kind), name.strip(" ")), named=bool(colon))
        if not problem:
            return Field(FieldKind(kind), name.strip(" ")), Operator(found[1]), rest
        problems.append(problem)
        if kind not in (FieldKind.BODY, FieldKind.TASK):
            break
    form = f"write FIELD OPERATOR VALUE. FIELD is {FIELDS}; OPERATOR is {_OPERATORS}."
    raise _NotWritten(problems[0] if problems else form)


def _values(operator: Operator, rest: str) -> tuple[str, ...]:
    match operator:
        case Operator.EXISTS if not rest:
            return ()
        case Operator.IN if rest.startswith("["):
            values = _json(rest)
            if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
                raise _NotWritten('a list has texts in quotes. Write in ["a,b", "c"].')
            return tuple(values)
        case Operator.IN:
            values = [value.strip(" ") for value in rest.split(",")]
            if '"' in rest or not all(values):
                raise _NotWritten('values with quotes, or empty ones, need a list. Write in ["a,b", "c"].')
            return tuple(values)
        case _ if rest.startswith('"'):
            value = _json(rest)
            if not isinstance(value, str):
                raise _NotWritten('a value that begins with a quote ends with one. Write equals "like this".')
            return (value,)
        case _:
            return (rest,) if rest else ()


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise _NotWritten(
            'a value that begins with " or [ must be JSON, and this is not. Write "say \\"hi\\"" or ["a,b", "c"].'
        ) from None


def _written(operator: Operator, values: tuple[str, ...]) -> str:
    """Return the values as text: plain if `Condition.parse` reads the same values from the plain text, else as JSON."""
    if operator is Operator.IN:
        plain = not values[0].startswith("[") and not any("," in value or '"' in value for value in values)
        bare = plain and all(value.strip(" ") == value != "" for value in values)
        return ",".join(values) if bare else json.dumps(values, ensure_ascii=False)
    bare = all(value.strip(" ") == value != "" and not value.startswith('"') for value in values)
    return "".join(values if bare else (json.dumps(value, ensure_ascii=False) for value in values))


def _problems(where: Field, operator: Operator, values: tuple[str, ...]) -> Iterator[str]:
    if problem := problem_of_field(where, named=bool(where.name)) or _problem_of_number(operator, len(values)):
        yield problem
        return
    has_expression = where.name and where.kind in (FieldKind.BODY, FieldKind.TASK)
    if has_expression and (problem := jmespath_query.problem_of_rule(where.name)):
        yield problem
    for value in values:
        if len(value) > VALUE_LENGTH:
            yield f"a value has {VALUE_LENGTH} characters at most, not {len(value)}. Write prefix and the first part."
        if CONTROL.search(value):
            yield "a value holds a control character. Leave it out, or write a regex with \\x{...} in its place."
    if operator is Operator.PREFIX and not values[0]:
        yield "an empty prefix matches every text. Write exists instead."
    if operator is Operator.REGEX and isinstance(pattern := Pattern.parse(values[0]), Unreadable):
        yield pattern.why


def _problem_of_number(operator: Operator, values: int) -> str | None:
    match operator:
        case Operator.EXISTS:
            return "exists takes no value. Remove the value." if values else None
        case Operator.IN:
            fits = 1 <= values <= VALUES
            return None if fits else f"in takes 1 to {VALUES} values, not {values}. Write in a,b or several rules."
        case _:
            return None if values == 1 else f'{operator} takes a value. Write {operator} acme, or "" for an empty one.'


def _short(text: str) -> str:
    shown = CONTROL.sub("\N{REPLACEMENT CHARACTER}", text[: _SHOWN + 1])
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}\N{HORIZONTAL ELLIPSIS}"
