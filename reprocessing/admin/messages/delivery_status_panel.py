"""The panel of a letter's page that answers: did it work, how do we know, since when, and what did consumers say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from reprocessing.admin.messages.message_page import may_see_payloads
from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.models import DeadLetter
from reprocessing.models.system import AFTER_A_RESTORE, Word
from reprocessing.store.outcomes import delivery_status
from reprocessing.store.outcomes.delivery_status import Reason


@dataclass(frozen=True, slots=True)
class Said:
    """A person's word: who said what became of the letter, when, and why."""

    by: str
    word: str
    at: datetime
    reason: str


def panel(letter: DeadLetter, user: AbstractBaseUser | AnonymousUser, *, shown: bool) -> dict[str, Any]:
    """What is known, for all who see the letter; reasons quote what it held: they are shown when its payload is."""
    reasons = [_readable(one) for one in delivery_status.reasons(letter)] if shown and may_see_payloads(user) else None
    return {"known": delivery_status.of(letter), "word": _word(letter), "reasons": reasons}


def _word(letter: DeadLetter) -> Said | None:
    """What a person said of it after a restore; None: nobody was asked, or has said anything yet."""
    found = letter.reviews.filter(after__has_key=AFTER_A_RESTORE).order_by("-pk").first()
    return Said(found.by, Word(found.after[AFTER_A_RESTORE]).label, found.at, found.reason) if found else None


def _readable(one: Reason) -> Reason:
    return replace(
        one,
        type=visible(one.type),
        message=visible(one.message),
        fingerprint=visible(one.fingerprint),
        message_id=one.message_id and visible(one.message_id),
    )
