"""Fill the form of a new rule from a message or a failure group, and add conditions on fields that a person selects.

A condition contains a value of the message, so it shows this value. Everybody who may see messages may use the source
queue, the ordering key, the message type, the task, and the names of other fields, because other pages show these, too.
To use the values of other fields, a person needs the permission to see payloads, and the audit log records it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import transaction
from django.http import HttpRequest

from reprocessing.admin.rules import group_draft
from reprocessing.admin.rules.group_draft import DraftedCondition, is_failure
from reprocessing.admin.site import visible_rows
from reprocessing.domain.errors import InvalidRule, PayloadUnreadable
from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.message.envelope import unpack_attributes
from reprocessing.domain.message.identity import LetterFacts, Selector, SelectorSource
from reprocessing.domain.parking_lot import text_pattern
from reprocessing.domain.payloads.masking import MASK
from reprocessing.domain.routing.condition_fields import Field, FieldKind, NotText
from reprocessing.domain.routing.conditions import VALUE_LENGTH, Condition, Operator
from reprocessing.domain.routing.first_match import Action
from reprocessing.domain.routing.message_fields import MessageFields, read_selector
from reprocessing.models import AuditAct, AuditEntry, Letter
from reprocessing.store.parking_lot import failure_group_pages, message_edits
from reprocessing.store.parking_lot.failure_group_pages import GroupRow
from reprocessing.store.payloads import viewed_content

_NAMED: Final = {FieldKind.TYPE: "message type", FieldKind.TASK: "task"}
#: Of this many of a group's newest messages, the newest that is parked is used, else the newest.
_NEWEST: Final = 20
#: For each part of a message that can have the ordering key: the kind of field with which a condition reads the part.
_OF_KEYS: Final = {SelectorSource.ATTRIBUTE: FieldKind.ATTRIBUTE, SelectorSource.BODY: FieldKind.BODY}
_HALF: Final = re.compile("[\ud800-\udfff]")  # lone surrogates: half characters, which no page can show


@dataclass(frozen=True, slots=True)
class SourceMessage:
    """The message from which the form of a rule is filled.

    Attributes:
        facts: the values that rules can compare, with masked fields masked; None: the payload was deleted or cannot be
            read.
        group: the failure group from which the rule is made; None: the rule is made from the message alone.
    """

    letter: Letter
    facts: MessageFields | None = field(repr=False)
    group: GroupRow | None = None

    @property
    def fields(self) -> list[str]:
        """Return the names of the message's fields that a condition can compare, such as attribute:customer."""
        if self.facts is None:
            return []
        asked = [Field(kind) for kind in (FieldKind.SOURCE, FieldKind.TYPE, FieldKind.TENANT, FieldKind.TASK)]
        asked += [
            Field(FieldKind.ATTRIBUTE, name)
            for name in sorted(self.facts.letter.attributes)
            if text_pattern.type_name(name)
        ]
        return [known.text for known in asked if isinstance(self.facts.read(known), str | NotText)]

    def begin(self) -> dict[str, Any]:
        """Return initial values of the form: the message's DLQ, action quarantine, and conditions from `drafted`."""
        return {
            "dlq": self.letter.dlq_id,
            "conditions": to_json([one.text for one in self.drafted]),
            "action": Action.QUARANTINE.value,
        }

    @property
    def drafted(self) -> list[DraftedCondition]:
        """Return conditions that match the message: on its ordering key, its type and its task.

        If the rule is made from a failure group, the conditions are on the failure, the task or the type instead. There
        is no condition on the source queue, because it would match too many messages.
        """
        if self.facts is None:
            return []
        if self.group is not None:
            return group_draft.of_cause(self.group.cause, self.facts)
        conditions = [DraftedCondition(text, "ordering key") for text in self._of_key()]
        for kind, words in _NAMED.items():
            found = self.facts.read(Field(kind))
            if isinstance(found, str) and text_pattern.type_name(found):
                conditions.append(DraftedCondition(f"{kind} equals {found}", words))
        return conditions

    @property
    def filled_in(self) -> str:
        """Return what the conditions of `drafted` compare, as text, such as "the ordering key (attribute:account)"."""
        found = [str(condition) for condition in self.drafted]
        return " and ".join([", ".join(found[:-1]), found[-1]] if len(found) > 1 else found)

    @property
    def misses_error(self) -> bool:
        """Return whether all messages of the failure group have one error, but no drafted condition compares it."""
        names_error = self.group is not None and is_failure(self.group.cause)
        return names_error and all(condition.compares != group_draft.ERROR for condition in self.drafted)

    def _of_key(self) -> Iterator[str]:
        """Yield the condition that a message has the same ordering key as this message, if rules can read the key."""
        field = _key_field(self.letter.dlq.ordering_key)
        key = self.letter.ordering_key
        if field is None or key is None or self.facts is None or self.facts.read(field) != key:
            return
        condition = _equal(field.text, key)
        if not condition.endswith(f" {Operator.EXISTS}"):  # not for a masked key, or a key that is too long
            yield str(Condition.parse(condition))

    def conditions(self, fields: Collection[str], *, values: bool) -> Iterator[str]:
        """Yield a condition for each of these fields: that the field has the same value as in this message.

        Without `values`, the condition is that the field exists. The source queue is always compared.
        """
        for name in self.fields if self.facts else ():
            if name in fields:
                kind, _, of = name.partition(":")
                shows = values or kind == FieldKind.SOURCE
                found = self.facts.read(Field(FieldKind(kind), of)) if self.facts and shows else None
                yield _equal(name, found) if isinstance(found, str) else f"{name} exists"


def source_message(request: HttpRequest) -> SourceMessage | None:
    """Return the message from which a rule is made; None: there is no such message, or the person may not see it.

    The URL parameter `letter` has the id of the message. Or the URL parameter `group` has the id of a failure group,
    and one of its messages is chosen.
    """
    if not request.user.has_perm("reprocessing.view_letter"):
        return None
    group = _group(request)
    letter = _letter_of(group) if group else _id(request, "letter")
    rows = visible_rows.rows(request, Letter.objects.select_related("dlq", "source", "target", "revision"))
    found = rows.filter(pk=letter).first() if letter is not None else None
    return SourceMessage(found, _facts(found), group) if found else None


def _group(request: HttpRequest) -> GroupRow | None:
    group = _id(request, "group")
    if group is None or not request.user.has_perm("reprocessing.view_failuregroup"):
        return None
    return failure_group_pages.find_group(group, seen=visible_rows.of(request))


def _letter_of(group: GroupRow) -> int | None:
    """Return the id of the newest parked message among the newest messages of a failure group.

    If none of them is parked, return the id of the newest message. None: the group has no messages any more.
    """
    newest = failure_group_pages.letter_ids(group.id, below=None, limit=_NEWEST)
    parked = Letter.objects.filter(pk__in=newest, state=LetterState.PARKED).order_by("-pk").values_list("pk", flat=True)
    return parked.first() or next(iter(newest), None)


def _id(request: HttpRequest, name: str) -> int | None:
    """Return the id in a URL parameter; None: the parameter is missing, or is not an id."""
    text = request.GET.get(name, "")
    return int(text[:18]) if text.isascii() and text.isdecimal() else None


def with_conditions(of: SourceMessage, text: str, fields: Collection[str], *, values: bool, by: str) -> str:
    """Add conditions on these fields of the message to the JSON list of conditions in `text`, and return the list.

    With `values`, the conditions contain values of the message, and the audit log records that the person (`by`) used
    these values. If `text` is not a JSON list, it is returned unchanged.
    """
    try:
        present = json.loads(text or "[]")
    except (ValueError, RecursionError):
        return text
    if not isinstance(present, list):
        return text
    with transaction.atomic():
        if values:
            AuditEntry.objects.create(
                act=AuditAct.REVEALED, letter=of.letter, dlq=of.letter.dlq, by=by, reason="Used values for a rule."
            )
        return to_json([*present, *(added for added in of.conditions(fields, values=values) if added not in present)])


def to_json(conditions: list[Any]) -> str:
    """Return the conditions as indented JSON, for the form field."""
    text = json.dumps(conditions, indent=2, ensure_ascii=False)
    return json.dumps(conditions, indent=2) if _HALF.search(text) else text


def _facts(of: Letter) -> MessageFields | None:
    """Return the values that rules can compare, of the message as it would be sent. Masked fields are masked.

    None: the payload was deleted, or cannot be decrypted.
    """
    try:
        held = message_edits.read_letter(of.pk)
    except PayloadUnreadable:
        return None
    if held is None:
        return None
    shown = viewed_content.masked(of.dlq, held.body, unpack_attributes(held.attributes))
    known = LetterFacts(of.message_id, shown.body, shown.attributes, held.system)
    kind, tenant = read_selector(of.dlq.message_type), read_selector(of.dlq.tenant)
    return MessageFields(known, of.dlq.name, of.source.arn if of.source else "", kind, tenant)


def _key_field(selector: str) -> Field | None:
    """Return the field that has the ordering key, as conditions name it; None: conditions cannot read this field.

    `selector`: the DLQ's setting that says where the ordering key is.
    """
    found = Selector.parse(selector)
    kind = _OF_KEYS.get(found.source)
    return Field(kind, found.name) if kind else None


def _equal(name: str, value: str) -> str:
    """Return the condition that the field `name` equals this value.

    If the value is masked, or too long for a condition, return the condition that the field exists.
    """
    if MASK in value:
        return f"{name} {Operator.EXISTS}"
    text = f"{name} {Operator.EQUALS} {json.dumps(value[: VALUE_LENGTH + 1], ensure_ascii=False)}"
    try:
        Condition.parse(text)
    except InvalidRule:
        return f"{name} {Operator.EXISTS}"
    return text
