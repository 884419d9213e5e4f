"""Read a payload for a person. The same transaction records the person in the audit log."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import transaction

from reprocessing.domain.message.envelope import Attribute, unpack_attributes
from reprocessing.models import AuditAct, Letter, Payload, Revision
from reprocessing.store.parking_lot import message_edits

logger = logging.getLogger(__name__)

LOOKED: Final = "Showed the payload."
FETCHED: Final = "Downloaded the body."
OPENED: Final = "Opened the message for editing."
COMPARED: Final = "Compared an edit with the captured message."


@dataclass(frozen=True, slots=True)
class ShownPayload:
    """A payload whose view is recorded. `revision` is the number of the edit, 0 for the captured payload."""

    revision: int
    body: bytes = field(repr=False)
    attributes: dict[str, Attribute] = field(repr=False)
    system: dict[str, Any] = field(repr=False)


def payload_to_send(letter: Letter, *, by: str, why: str) -> ShownPayload | None:
    """Return the payload that would be sent: the last edit, or else the captured payload; None: it was deleted."""
    return _shown(letter, letter.revision, by, why)


def captured_payload(letter: Letter, *, by: str, why: str) -> ShownPayload | None:
    """Return the captured payload; None: it was deleted."""
    return _shown(letter, None, by, why)


def captured_and_edited(letter: Letter, no: int, *, by: str, why: str) -> tuple[ShownPayload, ShownPayload] | None:
    """Return the captured payload and the payload of an edit; None: one of the two does not exist."""
    with transaction.atomic():
        payload = Payload.objects.filter(letter=letter).first()
        revision = Revision.objects.filter(letter=letter, no=no).first()
        if payload is None or revision is None:
            return None
        _record(letter, by, why, no)
    return _of(payload, None), _of(payload, revision)


def _shown(letter: Letter, revision: Revision | None, by: str, why: str) -> ShownPayload | None:
    with transaction.atomic():
        payload = Payload.objects.filter(letter=letter).first()
        if payload is None:
            return None
        _record(letter, by, why, revision.no if revision else 0)
    return _of(payload, revision)


def _of(payload: Payload, revision: Revision | None) -> ShownPayload:
    held = payload if revision is None else revision
    no = 0 if revision is None else revision.no
    return ShownPayload(no, bytes(held.body), unpack_attributes(bytes(held.attributes)), payload.system)


def _record(letter: Letter, by: str, why: str, no: int) -> None:
    message_edits.record_action(
        letter.pk, AuditAct.REVEALED, by=by, reason=why, before={}, after={"revision": no} if no else {}
    )
    logger.info(
        "the payload of letter %s was shown to %s", letter.public_id, by, extra={"redrive_id": letter.public_id}
    )
