"""A rule that is made from a message: its first conditions, and conditions on the message's fields.

Message type and task are filled in with their values. Of other fields everybody sees the names; their values take the
permission to see payloads, and using them is recorded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import transaction
from django.http import HttpRequest

from reprocessing.domain.errors import RuleIsUnclear
from reprocessing.domain.message.arn import name_of
from reprocessing.domain.message.envelope import unpack
from reprocessing.domain.message.identity import LetterFacts, Selector
from reprocessing.domain.parking_lot import text_pattern
from reprocessing.domain.routing.conditions import VALUE_LENGTH, Condition, Field, Kind, Operator, Present
from reprocessing.domain.routing.first_match import Action
from reprocessing.domain.routing.message_fields import Facts
from reprocessing.models import Act, DeadLetter, Payload, Review

_NAMED: Final = (Kind.TYPE, Kind.TASK)
_HALF: Final = re.compile("[\ud800-\udfff]")  # lone surrogates: no page can show them


@dataclass(frozen=True, slots=True)
class Origin:
    """The message that a rule is made from, and what rules read of it; None: its bytes were deleted."""

    letter: DeadLetter
    facts: Facts | None = field(repr=False)

    @property
    def fields(self) -> list[str]:
        """Return the fields that the message has, as conditions write them."""
        if self.facts is None:
            return []
        asked = [Field(kind) for kind in (Kind.TYPE, Kind.TENANT, Kind.TASK)]
        asked += [
            Field(Kind.ATTRIBUTE, name) for name in sorted(self.facts.letter.attributes) if text_pattern.name(name)
        ]
        return [known.text for known in asked if isinstance(self.facts.read(known), str | Present)]

    def begin(self) -> dict[str, Any]:
        """Return the initial values of the form."""
        conditions = [f"origin equals {name_of(self.letter.origin.arn)}"] if self.letter.origin else []
        for kind in _NAMED if self.facts else ():
            found = self.facts.read(Field(kind)) if self.facts else None
            if isinstance(found, str) and text_pattern.name(found):
                conditions.append(f"{kind} equals {found}")
        return {"dlq": self.letter.dlq_id, "conditions": written(conditions), "action": Action.QUARANTINE.value}

    def conditions(self, fields: Collection[str], *, values: bool) -> Iterator[str]:
        """Yield a condition for each of these fields; `values`: on its value, not only that it exists."""
        for name in self.fields if self.facts else ():
            if name in fields:
                kind, _, of = name.partition(":")
                found = self.facts.read(Field(Kind(kind), of)) if self.facts and values else None
                yield _equal(name, found) if isinstance(found, str) else f"{name} exists"


def origin(request: HttpRequest) -> Origin | None:
    """Return the message that the address names."""
    key = request.GET.get("letter", "")
    if not (key.isascii() and key.isdecimal()) or not request.user.has_perm("reprocessing.view_deadletter"):
        return None
    rows = DeadLetter.objects.select_related("dlq", "origin", "target", "revision")
    found = rows.filter(pk=int(key[:18])).first()
    return Origin(found, _facts(found)) if found else None


def added(of: Origin, text: str, fields: Collection[str], *, values: bool, by: str) -> str:
    """Return the conditions with those on these fields added; a text that is no list stays as it is."""
    try:
        said = json.loads(text or "[]")
    except (ValueError, RecursionError):
        return text
    if not isinstance(said, list):
        return text
    with transaction.atomic():
        if values:
            Review.objects.create(
                act=Act.REVEALED, letter=of.letter, dlq=of.letter.dlq, by=by, reason="Used its values for a rule."
            )
        return written([*said, *(added for added in of.conditions(fields, values=values) if added not in said)])


def written(conditions: list[Any]) -> str:
    """Return conditions as indented JSON."""
    text = json.dumps(conditions, indent=2, ensure_ascii=False)
    return json.dumps(conditions, indent=2) if _HALF.search(text) else text


def _facts(of: DeadLetter) -> Facts | None:
    """Return what rules read: the last edit, else what was captured."""
    payload = Payload.objects.filter(letter=of).first()
    if payload is None:
        return None
    held = of.revision or payload
    known = LetterFacts(of.message_id, bytes(held.body), unpack(bytes(held.attributes)), payload.system)
    kind, tenant = (Selector.parse(text) if text else None for text in (of.dlq.message_type, of.dlq.tenant))
    return Facts(known, of.dlq.name, of.origin.arn if of.origin else "", kind, tenant)


def _equal(name: str, value: str) -> str:
    """Return the condition that a field has this value; where that cannot be written, that it exists."""
    text = f"{name} {Operator.EQUALS} {json.dumps(value[: VALUE_LENGTH + 1], ensure_ascii=False)}"
    try:
        Condition.parse(text)
    except RuleIsUnclear:
        return f"{name} {Operator.EXISTS}"
    return text
