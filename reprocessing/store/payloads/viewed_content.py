"""Read the content of a letter for a person: masked, or revealed. Every view is recorded in the audit log.

Every page, command and interface that shows a body or an attribute reads it here.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any, Final

from reprocessing import conf
from reprocessing.domain.message import json_view
from reprocessing.domain.message.envelope import Attribute, Attributes, unpack_attributes
from reprocessing.domain.message.json_view import JsonValue, Unreadable
from reprocessing.domain.payloads import masking
from reprocessing.domain.payloads.mask_rules import MaskRules, mask_rules
from reprocessing.domain.payloads.masking import MaskedContent
from reprocessing.domain.payloads.sealing import Part
from reprocessing.models import AuditAct, DeadLetterQueue, Letter, Payload, Revision
from reprocessing.store.parking_lot import message_edits
from reprocessing.store.payloads import content

logger = logging.getLogger(__name__)
#: The revision number of the content that would be sent: the last edit, or else the captured message (number 0).
TO_SEND: Final = -1
CAPTURED: Final = 0


@dataclass(frozen=True, slots=True)
class ViewedContent:
    """The content of a letter for a person.

    `revision`: the number of the edit; 0: as captured. `is_masked`: a value is masked in `body` or `attributes`.
    """

    revision: int
    body: bytes = field(repr=False)
    attributes: dict[str, Attribute] = field(repr=False)
    system: dict[str, Any] = field(repr=False)
    is_masked: bool = False


def view_content(
    letter: Letter, revision: int = TO_SEND, *, by: str, why: str, revealed: bool = False
) -> ViewedContent | None:
    """Return a letter's content for a person, and record the view; None: the content, or the edit, does not exist.

    `revision`: the number of an edit, `CAPTURED`, or `TO_SEND` (the last edit, or else the captured content). Values
    are masked by the rules of the letter's DLQ, unless `revealed`. `why`: the person's reason. The caller has checked
    that the person sees the DLQ and has the permission view_payload, for `revealed` also reveal_payload.

    Raises:
        PayloadUnreadable: the content is encrypted, and its key is missing or was destroyed.
    """
    held = _read(letter, revision)
    if held is None:
        return None
    _record(letter, held.revision, by, why, revealed=revealed)
    return held if revealed else _masked(held, rules_of(letter.dlq))


def view_edit(
    letter: Letter, no: int, *, by: str, why: str, revealed: bool = False
) -> tuple[ViewedContent, ViewedContent] | None:
    """Return the captured content and the content of edit `no`, and record the view; None: one of them does not exist.

    For the arguments, the permissions to check and the errors, see `view_content`.
    """
    captured, edited = _read(letter, CAPTURED), _read(letter, no) if no > CAPTURED else None
    if captured is None or edited is None:
        return None
    _record(letter, no, by, why, revealed=revealed)
    rules = rules_of(letter.dlq)
    return (captured, edited) if revealed else (_masked(captured, rules), _masked(edited, rules))


def has_masked_values(letter: Letter) -> bool:
    """Return whether masking rules hide any value in the captured or edited content. Raises PayloadUnreadable."""
    rules = rules_of(letter.dlq)
    found = (_read(letter, revision) for revision in (TO_SEND, CAPTURED)) if rules else ()
    return any(held is not None and _masked(held, rules).is_masked for held in found)


def public_document(letter: Letter) -> JsonValue | Unreadable:
    """Return a letter's body as JSON with masked values, or why it cannot be read. No audit log entry is written.

    Use it only to read the fields that the DLQ's setting `public_fields` names, which everybody may see.
    """
    held = _read(letter, TO_SEND)
    document = Unreadable("the payload was deleted") if held is None else json_view.read(held.body)
    rules = rules_of(letter.dlq)
    return document if isinstance(document, Unreadable) else masking.masked_document(document, rules)


def rules_of(dlq: DeadLetterQueue) -> MaskRules:
    """Return the masking rules of a DLQ: its own rules, and the rules of the settings for all DLQs."""
    return mask_rules((*conf.current().masked_fields, *map(str, dlq.masked_fields)))


def masks_fields(dlq: int | None) -> bool:
    """Return whether any field is masked in this DLQ (None: in any DLQ)."""
    found = DeadLetterQueue.objects.filter(**({} if dlq is None else {"pk": dlq})).exclude(masked_fields=[])
    return bool(conf.current().masked_fields) or found.exists()


def masked(dlq: DeadLetterQueue, body: bytes, attributes: Attributes) -> MaskedContent:
    """Return a letter's body and attributes with masked values, for lists and files; the caller records the view."""
    return masking.mask(body, attributes, rules_of(dlq))


def masked_by(rules: MaskRules, body: bytes, attributes: Attributes) -> MaskedContent:
    """Return content with values masked by `rules` (from `rules_of`, which callers read once for many letters)."""
    return masking.mask(body, attributes, rules)


def record_view(letter: int, *, by: str, why: str, revealed: bool = False) -> None:
    """Record that a person viewed a letter's content, which the caller has read and masked (see `masked`).

    `revealed`: the person saw the content without masks.
    """
    after = {"revealed": True} if revealed else {}
    message_edits.record_action(letter, AuditAct.REVEALED, by=by, reason=why, before={}, after=after)


def _record(letter: Letter, no: int, by: str, why: str, *, revealed: bool) -> None:
    after = {**({"revision": no} if no else {}), **({"revealed": True} if revealed else {})}
    message_edits.record_action(letter.pk, AuditAct.REVEALED, by=by, reason=why, before={}, after=after)
    logger.info(
        "the payload of letter %s was shown to %s", letter.public_id, by, extra={"redrive_id": letter.public_id}
    )


def _masked(held: ViewedContent, rules: MaskRules) -> ViewedContent:
    found = masking.mask(held.body, held.attributes, rules)
    return ViewedContent(held.revision, found.body, found.attributes, held.system, found.is_masked)


def _read(letter: Letter, revision: int) -> ViewedContent | None:
    payload = Payload.objects.filter(letter=letter).first()
    edits = Revision.objects.filter(letter=letter)
    edit = letter.revision if revision == TO_SEND else edits.filter(no=revision).first()
    if payload is None or (revision > CAPTURED and edit is None):
        return None
    held, of = edit or payload, letter.message_id
    packed = content.opened_bytes(bytes(held.attributes), Part.ATTRIBUTES, of=of)
    return ViewedContent(
        edit.no if edit else CAPTURED,
        content.opened_bytes(bytes(held.body), Part.BODY, of=of),
        unpack_attributes(packed),
        content.opened_system(payload.system, of=of),
    )
