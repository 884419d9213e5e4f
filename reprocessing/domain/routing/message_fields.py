"""Read the fields of a letter that rules compare. Each field is read once, and the body is parsed at most once."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import assert_never

from reprocessing.domain.errors import InvalidSelector
from reprocessing.domain.message import json_view
from reprocessing.domain.message.arn import resource_name
from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.message.identity import LetterFacts, Missing, Selector, SelectorSource, body_hash
from reprocessing.domain.message.json_view import JsonValue, Unreadable
from reprocessing.domain.routing import jmespath_query
from reprocessing.domain.routing.condition_fields import Field, FieldKind, FieldValue, NotText
from reprocessing.domain.routing.jmespath_query import Failed
from reprocessing.domain.sources import celery_task
from reprocessing.domain.sources.celery_task import NotATask, TaskMessage, TaskReading

#: Size in bytes of the largest body that rules read.
BODY_LIMIT = 256 * 1024
_DIGITS = 1_024  # most digits of a number that is compared as text

_MISSING, _PRESENT = Missing(), NotText()

#: A setting of a DLQ that is a selector. None: the setting is empty. `Unreadable`: it is not valid.
SelectorSetting = Selector | Unreadable | None


@dataclass(frozen=True)
class MessageFields:
    """The fields of one letter that conditions of rules can compare.

    Attributes:
        source: ARN or name of the source queue; empty: not known.
        type: the DLQ's selector (such as body:type) that reads the message type.
        tenant: the DLQ's selector that reads the tenant.
    """

    letter: LetterFacts = field(repr=False)
    dlq: str
    source: str = ""
    type: SelectorSetting = None
    tenant: SelectorSetting = None
    _known: dict[str, FieldValue] = field(default_factory=dict, init=False, repr=False, compare=False)

    def read(self, asked: Field) -> FieldValue:
        """Return the value of a field as text, or why it has none. Never raises.

        Equal numbers have equal texts ("1" for 1.0), booleans are "true" and "false", null is missing. The fields of a
        body over 256 KiB are `Unreadable`, not missing, because a rule may exist to stop such large messages.
        """
        known = self._known.get(asked.text)  # fast, for hundreds of rules: Python caches the text's hash
        if known is None:
            known = self._known[asked.text] = self._read(asked)
        return known

    def _read(self, asked: Field) -> FieldValue:
        found: FieldValue
        match asked.kind:
            case FieldKind.DLQ:
                found = self.dlq or _MISSING
            case FieldKind.SOURCE:
                found = resource_name(self.source) or _MISSING
            case FieldKind.ATTRIBUTE:
                found = _of_attribute(self.letter.attributes.get(asked.name))
            case FieldKind.BODY:
                found = self._in_body(asked.name)
            case FieldKind.TYPE:
                found = self._selected(self.type)
            case FieldKind.TENANT:
                found = self._selected(self.tenant)
            case FieldKind.TASK:
                found = self._of_task(asked.name)
            case _ as never:
                assert_never(never)
        return found

    def _selected(self, selector: SelectorSetting) -> FieldValue:
        found: FieldValue = _MISSING
        match selector:
            case Unreadable():
                found = selector
            case None | Selector(SelectorSource.NONE):
                pass
            case Selector(SelectorSource.ATTRIBUTE, name):
                found = self.read(Field(FieldKind.ATTRIBUTE, name))
            case Selector(SelectorSource.BODY, name):
                found = self.read(Field(FieldKind.BODY, name))
            case Selector(SelectorSource.SYSTEM, name):
                found = self.letter.system.get(name) or _MISSING
            case Selector(SelectorSource.MESSAGE_ID):
                found = self.letter.message_id
            case Selector(SelectorSource.CONTENT_HASH):
                found = _too_large(self.letter.body) or body_hash(self.letter.body).hex()
        return found

    def _in_body(self, name: str) -> FieldValue:
        document = self._document
        return document if isinstance(document, Unreadable) else text_of(jmespath_query.search(name, document))

    def _of_task(self, name: str) -> FieldValue:
        match self._task:
            case Unreadable() as unreadable:
                return unreadable
            case NotATask():
                return _MISSING
            case TaskMessage() as message if name:
                return self._in_task(message, name)
            case TaskMessage() as message if message.protocol == celery_task.ONE and message.opaque:
                return Unreadable(message.opaque)
            case TaskMessage() as message:
                return message.task or _MISSING

    def _in_task(self, message: TaskMessage, name: str) -> FieldValue:
        fields = _task_fields(message)
        shown = name in fields and message.protocol == celery_task.TWO
        if not shown and message.opaque:  # the expression may read the arguments, which are unreadable
            return Unreadable(message.opaque)
        if not shown:
            fields |= {"args": message.args, "kwargs": message.kwargs}
        return text_of(jmespath_query.search(name, fields))

    @property
    def document(self) -> JsonValue | Unreadable:
        """Return the body as JSON; None: it is no JSON. `Unreadable`: rules do not read it, such as a large body."""
        return self._document

    @property
    def task_arguments(self) -> JsonValue | Unreadable:
        """Return a Celery task's arguments, as an object with the member kwargs; None: no task, or unreadable."""
        task = self._task
        if isinstance(task, NotATask | Unreadable) or task.opaque or not isinstance(task.kwargs, dict):
            return None
        return {"kwargs": task.kwargs}

    @cached_property
    def _task(self) -> TaskReading:
        document = self._document if self.letter.body.lstrip()[:1] == b"{" else None
        return _too_large(self.letter.body) or celery_task.read(self.letter.body, document, limit=BODY_LIMIT)

    @cached_property
    def _document(self) -> JsonValue | Unreadable:
        found = _too_large(self.letter.body) or self.letter.document
        return None if isinstance(found, Unreadable) and not found.is_json else found


def read_selector(text: str) -> SelectorSetting:
    """Return the selector in a setting of a DLQ. If it is not valid, only the rules that read the field fail."""
    try:
        return Selector.parse(text) if text else None
    except InvalidSelector as error:
        return Unreadable(str(error))


def _too_large(body: bytes) -> Unreadable | None:
    if len(body) <= BODY_LIMIT:
        return None
    return Unreadable(f"its body has {len(body)} bytes, and rules read {BODY_LIMIT} at most")


def _task_fields(message: TaskMessage) -> dict[str, JsonValue]:
    """Return the fields of a Celery task, without its arguments, for JMESPath expressions; a missing field is null."""
    return {
        "name": message.task or None, "id": message.id or None, "root_id": message.root_id or None,
        "group": message.group or None, "retries": message.retries, "eta": message.eta or None,
        "expires": message.expires or None,
    }  # fmt: skip


def _of_attribute(attribute: Attribute | None) -> FieldValue:
    match attribute:
        case None:
            return _MISSING
        case Attribute(value=str(text)):
            return text
        case _:
            return _PRESENT


def text_of(value: object) -> FieldValue:
    """Return the text by which conditions compare a JSON value, or why it has none.

    Equal numbers have equal texts. The number 1 and the text "1" compare as equal.
    """
    found: FieldValue = _PRESENT
    match value:
        case None:
            found = _MISSING
        case str():
            found = value
        case bool():
            found = "true" if value else "false"
        case int():
            found = json_view.number_text(value)
        case Decimal():
            found = _of_number(value)
        case float():  # a number that the expression itself contains
            found = _of_number(Decimal(repr(value)))
        case Failed(why):
            found = Unreadable(why)
    return found


def _of_number(number: Decimal) -> FieldValue:
    if not number.is_finite():
        return Unreadable("its number is out of range")
    if len(number.as_tuple().digits) > _DIGITS:
        return Unreadable(f"its number has more than {_DIGITS} digits")
    return json_view.number_text(number)
