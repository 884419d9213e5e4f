"""Draft conditions on what a failure group is about: its failure, its task or its message type.

Everybody may see these values: titles of groups show them. The ordering key of a message is never used, because the
messages of a group have many keys.
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
    """A condition that matches the message from which it was made. `compares`: what it compares, in words."""

    text: str
    compares: str

    def __str__(self) -> str:
        return f"the {self.compares} ({Condition.parse(self.text).field})"


def is_failure(cause: str) -> bool:
    """Return whether this cause of a failure group (a `CauseKind`) says why its messages failed."""
    return cause in set(CauseKind) and CauseKind(cause).names_failure


def of_cause(cause: str, message: MessageFields) -> list[DraftedCondition]:
    """Return conditions on the failure of a group (`cause`: its `CauseKind`), read from a message of the group.

    If no condition can compare the failure, the conditions are on the message's task or type. Each condition matches
    the message. The list is empty if the message has neither, or if conditions cannot read them.
    """
    found = [*_of_failure(message)] if cause == CauseKind.LEFT else []
    return found or [*_of_task(message)] or [*of_type(message)]


def of_type(message: MessageFields) -> Iterator[DraftedCondition]:
    """Yield a condition on the type of a message, or on the type and the source of an EventBridge event.

    The type is found as for failure groups: by the selector of the DLQ, else in a field with a usual name.
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
    """Yield a condition on the attribute that names the failure, if the attribute's text begins with the failure."""
    named = failure_attributes.named_failure(message.letter)
    if named is not None:
        yield from _drafted(message, Field(FieldKind.ATTRIBUTE, named.attribute), named.failure, ERROR)


def _in_body(path: tuple[str, ...]) -> Field:
    """Return the field of the body to which these keys lead, as JMESPath."""
    names = (name if _IDENTIFIER.fullmatch(name) else json.dumps(name, ensure_ascii=False) for name in path)
    return Field(FieldKind.BODY, ".".join(names))


def _drafted(message: MessageFields, field: Field, value: str, compares: str) -> Iterator[DraftedCondition]:
    """Yield the condition that the field equals, or begins with, this value, if it is valid and the message matches."""
    now = message.read(field)
    operator = Operator.EQUALS if now == value else Operator.PREFIX
    try:
        condition = Condition.parse(f"{field} {operator} {json.dumps(value, ensure_ascii=False)}")
    except InvalidRule:
        return
    if isinstance(now, str) and condition.holds(now):
        yield DraftedCondition(str(condition), compares)
