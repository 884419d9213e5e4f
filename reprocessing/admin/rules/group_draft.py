"""Draft conditions for a rule that is made from a failure group: on the failure, the task or the message type.

Everybody who sees failure groups may see these values, because the titles of groups show them. No condition is on the
ordering key, because the messages of a group have many keys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from reprocessing.domain.errors import InvalidRule
from reprocessing.domain.parking_lot import failure_attributes, message_type, text_pattern
from reprocessing.domain.parking_lot.failure_fingerprint import CauseKind
from reprocessing.domain.routing.condition_fields import Field, FieldKind
from reprocessing.domain.routing.conditions import Condition, Operator
from reprocessing.domain.routing.message_fields import MessageFields

ERROR: Final = "error"  #: what a condition on a group's failure compares, in words
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class DraftedCondition:
    """A condition that was made from a message and matches it. `compares`: what it compares, such as "message type"."""

    text: str
    compares: str

    def __str__(self) -> str:
        return f"the {self.compares} ({Condition.parse(self.text).field})"


def is_failure(cause: str) -> bool:
    """Return whether the messages of a failure group with this cause (a `CauseKind`) failed with the same error.

    In other groups, the errors are not known: the messages have the same type or structure.
    """
    return cause in set(CauseKind) and CauseKind(cause).names_failure


def of_cause(cause: str, message: MessageFields) -> list[DraftedCondition]:
    """Return conditions for a failure group with this cause (a `CauseKind`), made from one of its messages.

    The condition is on the failure, if the message has the failure in an attribute; else on the task; else on the type.
    Each condition matches the message. The list is empty if no condition can read any of these values.
    """
    found = [*_of_failure(message)] if cause == CauseKind.LEFT else []
    return found or [*_of_task(message)] or [*of_type(message)]


def of_type(message: MessageFields) -> Iterator[DraftedCondition]:
    """Yield a condition on the type of a message; for an EventBridge event, conditions on its type and its source.

    The type is read as the DLQ's setting message_type says. Without this setting, it is in a field with a usual name.
    """
    if message.type is not None:
        found = message.read(Field(FieldKind.TYPE))
        if isinstance(found, str) and message_type.type_value(found):
            yield from _drafted(message, Field(FieldKind.TYPE), found, "message type")
        return
    match message.letter.document:
        case {"detail-type": str(kind), "source": str(source), "detail": dict()} if all(
            map(message_type.type_value, (kind, source))
        ):
            yield from _drafted(message, _in_body(("detail-type",)), kind, "event type")
            yield from _drafted(message, _in_body(("source",)), source, "event source")
            return
    where = message_type.type_field(message.letter)
    if where is not None and where.path:
        field = _in_body(where.path) if where.in_body else Field(FieldKind.ATTRIBUTE, where.path[0])
        yield from _drafted(message, field, where.value, "message type")


def _of_task(message: MessageFields) -> Iterator[DraftedCondition]:
    found = message.read(Field(FieldKind.TASK))
    if isinstance(found, str) and text_pattern.type_name(found):
        yield from _drafted(message, Field(FieldKind.TASK), found, "task")


def _of_failure(message: MessageFields) -> Iterator[DraftedCondition]:
    """Yield a condition on the attribute of the message that has the failure, if there is such an attribute."""
    named = failure_attributes.named_failure(message.letter)
    if named is not None:
        yield from _drafted(message, Field(FieldKind.ATTRIBUTE, named.attribute), named.failure, ERROR)


def _in_body(path: tuple[str, ...]) -> Field:
    """Return the field of a JSON body. `path`: the keys that lead to it, from the outermost."""
    names = (name if _IDENTIFIER.fullmatch(name) else json.dumps(name, ensure_ascii=False) for name in path)
    return Field(FieldKind.BODY, ".".join(names))


def _drafted(message: MessageFields, field: Field, value: str, compares: str) -> Iterator[DraftedCondition]:
    """Yield the condition that the field equals the value or begins with it.

    Nothing is yielded if the condition is not valid, or does not match the message.
    """
    now = message.read(field)
    operator = Operator.EQUALS if now == value else Operator.PREFIX
    try:
        condition = Condition.parse(f"{field} {operator} {json.dumps(value, ensure_ascii=False)}")
    except InvalidRule:
        return
    if isinstance(now, str) and condition.holds(now):
        yield DraftedCondition(str(condition), compares)
