"""A payload is shown to those who may see it when they ask for it, and that they did is written down with it."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import transaction

from reprocessing.domain.message.envelope import Attribute, unpack
from reprocessing.models import Act, DeadLetter, Payload, Revision
from reprocessing.store.parking_lot import editing

logger = logging.getLogger(__name__)

LOOKED: Final = "Looked at its payload."
FETCHED: Final = "Fetched the bytes of its body."
OPENED: Final = "Opened it to edit it."
COMPARED: Final = "Compared a revision with what was captured."


@dataclass(frozen=True, slots=True)
class Bytes:
    """What a letter holds: of revision `revision`, or as it was captured (0)."""

    revision: int
    body: bytes = field(repr=False)
    attributes: dict[str, Attribute] = field(repr=False)
    system: dict[str, Any] = field(repr=False)


def sent(letter: DeadLetter, *, by: str, why: str) -> Bytes | None:
    """What would be sent of a letter; None: its bytes are no longer kept. That it was looked at is recorded with it."""
    with transaction.atomic():
        payload = Payload.objects.filter(letter=letter).first()
        if payload is None:
            return None
        revision = letter.revision
        _record(letter, by, why, revision.no if revision else 0)
    return _of(payload, revision)


def captured(letter: DeadLetter, *, by: str, why: str) -> Bytes | None:
    """What a letter was captured with; likewise."""
    with transaction.atomic():
        payload = Payload.objects.filter(letter=letter).first()
        if payload is None:
            return None
        _record(letter, by, why, 0)
    return _of(payload, None)


def both(letter: DeadLetter, no: int, *, by: str, why: str) -> tuple[Bytes, Bytes] | None:
    """What a letter was captured with, and one revision of it; likewise."""
    with transaction.atomic():
        payload = Payload.objects.filter(letter=letter).first()
        revision = Revision.objects.filter(letter=letter, no=no).first()
        if payload is None or revision is None:
            return None
        _record(letter, by, why, no)
    return _of(payload, None), _of(payload, revision)


def _of(payload: Payload, revision: Revision | None) -> Bytes:
    held = payload if revision is None else revision
    no = 0 if revision is None else revision.no
    return Bytes(no, bytes(held.body), unpack(bytes(held.attributes)), payload.system)


def _record(letter: DeadLetter, by: str, why: str, no: int) -> None:
    editing.record(letter.pk, Act.REVEALED, by=by, reason=why, before={}, after={"revision": no} if no else {})
    logger.info("the payload of letter %s was shown to %s", letter.public_id, by)
