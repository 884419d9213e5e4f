"""Read the types of letters, such as order.paid, for titles of pages, and find a delivered letter of the same type.

A type is found as failure groups find it (ADR 0051), in content with masked values. People without permission to see
payloads also see types. Content is not decrypted for these people: they see the type of the letter's failure group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from reprocessing.domain.errors import InvalidSelector, PayloadUnreadable
from reprocessing.domain.message.envelope import unpack_attributes
from reprocessing.domain.message.identity import LetterFacts, Selector
from reprocessing.domain.parking_lot import failure_fingerprint
from reprocessing.domain.parking_lot.failure_fingerprint import TYPE_CAUSES
from reprocessing.domain.payloads import masking, sealing
from reprocessing.domain.payloads.mask_rules import MaskRules
from reprocessing.domain.routing.message_fields import BODY_LIMIT
from reprocessing.models import DeadLetterQueue, Letter
from reprocessing.store import rows
from reprocessing.store.payloads import content, viewed_content

#: How many of a DLQ's newest finished letters are searched for a delivered letter of a type.
LOOKED_AT: Final = 1_000
# How many delivered letters, and bytes of their bodies, are read in a search at most.
_READ, _BYTES = 200, 4_194_304

_CONTENT = """
SELECT l.id, l.message_id, l.size, CASE WHEN l.size <= %(most)b::int THEN coalesce(v.body, p.body) END AS body,
       coalesce(v.attributes, p.attributes) AS attributes, p.system
  FROM redrive_letter l JOIN redrive_payload p ON p.letter_id = l.id
  LEFT JOIN redrive_revision v ON v.id = l.revision_id
 WHERE l.id = %(letter)b
"""

# The conditions of the inner query are those of the index ended_letters_by_dlq_and_time. With LIMIT 1, each payload is
# read by its primary key: a join might scan all payloads.
_DELIVERED = """
SELECT l.id, l.message_id, l.size, coalesce(v.body, p.body) AS body,
       coalesce(v.attributes, p.attributes) AS attributes, p.system
  FROM (SELECT id, message_id, size, revision_id, finished_at
          FROM (SELECT *, sum(size) OVER (ORDER BY finished_at DESC, id DESC) AS through
                  FROM (SELECT id, message_id, state, size, revision_id, finished_at FROM redrive_letter
                         WHERE dlq_id = %(dlq)b AND finished_at IS NOT NULL AND state <> 'parked'
                         ORDER BY finished_at DESC, id DESC LIMIT %(looked_at)b) newest
                 WHERE state = 'delivered' AND id <> %(letter)b AND size <= %(most)b::int) delivered
         WHERE through <= %(bytes)b::bigint
         ORDER BY finished_at DESC, id DESC LIMIT %(read)b) l
  CROSS JOIN LATERAL (SELECT * FROM redrive_payload WHERE letter_id = l.id LIMIT 1) p
  LEFT JOIN redrive_revision v ON v.id = l.revision_id
 ORDER BY l.finished_at DESC, l.id DESC
"""


@dataclass(frozen=True, slots=True)
class _Content:
    """The content of a letter that would be sent: the last edit, or the captured content. `body` None: too large."""

    id: int
    message_id: str
    size: int
    body: bytes | None = field(repr=False)
    attributes: bytes = field(repr=False)
    system: Mapping[str, Any] = field(repr=False)


def type_of(letter: Letter, *, opens: bool) -> str:
    """Return the type of a letter, such as order.paid; an empty text: the type is not known.

    `opens`: the person may see payloads, so encrypted content may be decrypted. If the content cannot be read, the type
    is that of the letter's failure group.
    """
    held = rows.first(_Content, _CONTENT, {"letter": letter.pk, "most": BODY_LIMIT})
    if held is None or (not opens and sealing.key_id(bytes(held.attributes)) is not None):
        return type_of_group(letter)
    try:
        (held,) = content.opened([held])
    except PayloadUnreadable:
        return type_of_group(letter)
    return _type(held, letter.dlq, viewed_content.rules_of(letter.dlq))


def last_delivered_of_type(letter: Letter, kind: str) -> int | None:
    """Return the id of the last delivered letter of this type in the DLQ of `letter`; None: no such letter is found.

    Only the newest 1,000 finished letters are searched, and of these at most 200 delivered letters, or 4 MiB. `letter`
    itself is not returned.
    """
    asked = {
        "dlq": letter.dlq_id, "letter": letter.pk, "most": BODY_LIMIT, "looked_at": LOOKED_AT, "read": _READ,
        "bytes": _BYTES,
    }  # fmt: skip
    found, _ = content.opened_or_why(rows.fetch(_Content, _DELIVERED, asked))
    rules = viewed_content.rules_of(letter.dlq)
    return next((held.id for held in found if _type(held, letter.dlq, rules) == kind), None)


def _type(held: _Content, dlq: DeadLetterQueue, rules: MaskRules) -> str:
    shown = masking.mask(bytes(held.body or b""), unpack_attributes(bytes(held.attributes)), rules)
    facts = LetterFacts(held.message_id, shown.body, shown.attributes, held.system)
    return failure_fingerprint.type_of(facts, held.size, _selector(dlq.message_type))


def type_of_group(letter: Letter) -> str:
    """Return the title of the letter's failure group if it is a message type or task, else an empty text."""
    group = letter.group
    return group.title if group is not None and group.cause in TYPE_CAUSES else ""


@lru_cache(maxsize=256)
def _selector(text: str) -> Selector | None:
    """Return how a DLQ's message type is read from a letter; None if the setting is empty or not valid."""
    try:
        return Selector.parse(text) if text else None
    except InvalidSelector:
        return None
