"""The panel on a message's page: whether the message was delivered, how this is known, and what consumers reported."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from reprocessing.admin.messages.message_page import may_see_payloads
from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.domain.payloads.masking import MASK
from reprocessing.models import Letter
from reprocessing.models.system import AFTER_A_RESTORE, RestoreDecision
from reprocessing.store.outcomes import delivery_status
from reprocessing.store.outcomes.delivery_status import ConsumerReason
from reprocessing.store.payloads import viewed_content


def panel(letter: Letter, user: AbstractBaseUser | AnonymousUser, *, shown: bool, revealed: bool) -> dict[str, Any]:
    """Return the template context of the panel.

    Consumer reports can quote the payload. So they are included only if the page shows the payload (`shown`). Masking
    rules cannot find values in the text of a report. So if the DLQ has masking rules, the whole text is masked, unless
    the page reveals masked values (`revealed`).
    """
    reasons = None
    if shown and may_see_payloads(user):
        masks = bool(viewed_content.rules_of(letter.dlq)) and not revealed
        reasons = [_readable(reason, masks=masks) for reason in delivery_status.reasons_of(letter)]
    return {"known": delivery_status.status_of(letter), "word": _word(letter), "reasons": reasons}


def _word(letter: Letter) -> dict[str, Any] | None:
    """Return what a person decided about this message after a restore of PostgreSQL; None: there was no decision.

    The command after_restore records such decisions.
    """
    found = letter.reviews.filter(after__has_key=AFTER_A_RESTORE).order_by("-pk").first()
    if found is None:
        return None
    return {
        "by": found.by,
        "word": RestoreDecision(found.after[AFTER_A_RESTORE]).label,
        "at": found.at,
        "reason": found.reason,
    }


def _readable(reason: ConsumerReason, *, masks: bool) -> ConsumerReason:
    message = MASK if masks and reason.message else visible(reason.message)
    return replace(
        reason, type=visible(reason.type), message=message, fingerprint=visible(reason.fingerprint),
        message_id=reason.message_id and visible(reason.message_id),
    )  # fmt: skip
