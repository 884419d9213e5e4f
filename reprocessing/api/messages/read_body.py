"""Read the body of a message for a token. The same transaction records the token in the audit log.

Every body that the API answers is read here.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Final

from django.db import transaction

from reprocessing.domain.message.envelope import Attribute, unpack_attributes
from reprocessing.models import AuditAct, Letter, Payload
from reprocessing.store.parking_lot import message_edits

logger = logging.getLogger(__name__)

_WHY: Final = "Read the body over the HTTP API."


@dataclass(frozen=True, slots=True)
class ReadBody:
    """A body whose view is recorded. `edit`: number of the edit, 0 for the captured body."""

    edit: int
    body: bytes = field(repr=False)
    attributes: dict[str, Attribute] = field(repr=False)


def read_body(letter: Letter, *, captured: bool, by: str) -> ReadBody | None:
    """Return the body that would be sent, or the captured one; None: it was deleted."""
    with transaction.atomic():
        payload = Payload.objects.filter(letter=letter).first()
        if payload is None:
            return None
        held = payload if captured or letter.revision is None else letter.revision
        edit = 0 if held is payload or letter.revision is None else letter.revision.no
        after = {"revision": edit} if edit else {}
        message_edits.record_action(letter.pk, AuditAct.REVEALED, by=by, reason=_WHY, before={}, after=after)
    logger.info("the payload of letter %s was read by %s", letter.public_id, by)
    return ReadBody(edit, bytes(held.body), unpack_attributes(bytes(held.attributes)))
