"""The fields of a message that a condition of a rule can compare."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from enum import StrEnum

from reprocessing.domain.message.identity import ATTRIBUTE_NAME, Missing
from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.routing import jmespath_query

#: Control characters, line separators and half surrogate pairs: not allowed in fields and values.
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class FieldKind(StrEnum):
    """The kinds of fields that a condition can test."""

    DLQ = "dlq"  #: the DLQ's name
    SOURCE = "source"  #: the name of the source queue
    ATTRIBUTE = "attribute"
    BODY = "body"
    TYPE = "type"  #: the message type that the DLQ's selector reads
    TENANT = "tenant"  #: the tenant that the DLQ's selector reads
    TASK = "task"  #: a Celery task's name, or the result of an expression on the task


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a letter.

    `name` is an attribute's name or a JMESPath expression; empty for other kinds. `text` is the field as people write
    it, such as attribute:Tenant.
    """

    kind: FieldKind
    name: str = ""
    text: str = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", f"{self.kind}:{self.name}" if self.name else self.kind.value)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class NotText:
    """The field exists and is not text: an object, an array or bytes. Only `exists` matches it."""


#: The value of a field. If it is Unreadable, conditions on the field cannot be evaluated.
FieldValue = str | Missing | NotText | Unreadable


def problem_of_field(where: Field, *, named: bool) -> str | None:
    """Return why a condition's field is not valid, and what to write; None: the field is valid.

    `named`: whether the field is written with a colon and a name, as in attribute:Tenant.
    """
    if CONTROL.search(where.name) or where.name.strip(" ") != where.name:
        return "its field begins or ends with a space, or holds a control character. Leave that out."
    match where.kind:
        case FieldKind.ATTRIBUTE:
            if ATTRIBUTE_NAME.fullmatch(where.name):
                return None
            return "an attribute's name has letters, digits, _ . and -, 256 at most. Write attribute:NAME."
        case FieldKind.BODY:
            return jmespath_query.problem(where.name)
        case FieldKind.TASK if named:
            return jmespath_query.problem(where.name, as_in="task:kwargs.order")
        case kind:
            return f"{kind} takes no name. Write {kind} alone." if named else None
