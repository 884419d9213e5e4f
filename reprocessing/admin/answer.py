"""The panel of a letter's page that answers: did it work, how do we know, since when, and what did consumers say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from reprocessing.admin.letter_page import may_see_payloads
from reprocessing.admin.reading import visible
from reprocessing.models import DeadLetter, hearings
from reprocessing.models.hearings import Reason


def panel(letter: DeadLetter, user: AbstractBaseUser | AnonymousUser) -> dict[str, Any]:
    """What is known, for all who see the letter; reasons quote what it held: for those who may see payloads."""
    reasons = [_readable(one) for one in hearings.reasons(letter)] if may_see_payloads(user) else None
    return {"known": hearings.of(letter), "reasons": reasons}


def _readable(one: Reason) -> Reason:
    return replace(
        one,
        type=visible(one.type),
        message=visible(one.message),
        fingerprint=visible(one.fingerprint),
        message_id=one.message_id and visible(one.message_id),
    )
