"""Encrypt (seal) texts in a target's answers, which may quote a payload, and decrypt them for a person."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from reprocessing.domain.errors import PayloadUnreadable
from reprocessing.domain.payloads.masking import MASK
from reprocessing.domain.payloads.sealing import Part
from reprocessing.domain.replay import attempt_detail
from reprocessing.models import Letter
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.payloads import content, viewed_content
from reprocessing.store.payloads.content import Sealer

#: Stored in place of a text that could not be encrypted. The outcome of the attempt is still recorded.
NOT_KEPT: Final = "the text was not kept, because payload keys were not available"
#: Shown in place of a text while a page does not show the payload.
HIDDEN: Final = "its text may quote the payload, and is shown only with the payload"
_LONGEST: Final = 500


@dataclass(frozen=True, slots=True)
class AnswerText:
    """A text from a target's answer, about a letter of a DLQ."""

    dlq_id: int
    message_id: str
    text: str = field(repr=False)


def sealed(texts: Sequence[AnswerText]) -> list[str]:
    """Return the texts, cut to 500 characters, and encrypted with the data keys of their DLQs, if encryption is on.

    A text whose data key is not available is replaced by the sentence `NOT_KEPT`. Call this function outside a
    transaction, because AWS KMS may be called.
    """
    sealers = _sealers({answer.dlq_id for answer in texts})
    return [
        sealer.text(answer.text[:_LONGEST], Part.ANSWER, of=answer.message_id) if sealer else NOT_KEPT
        for answer in texts
        for sealer in [sealers[answer.dlq_id]]
    ]


def detail_for(letter: Letter, detail: str, *, shown: bool, revealed: bool) -> str:
    """Return why a letter, or one of its attempts, failed (`detail`), as far as a person may read it.

    A text from the target may quote the payload, so the text is left out unless the page shows the payload (`shown`).
    If the DLQ masks fields, the whole text is masked, because masking rules cannot find a field's value in a text.
    `revealed`: the person sees values without masks.
    """
    said, text = attempt_detail.split(detail)
    if not text:
        return said
    if not shown:
        return f"{said}: {HIDDEN}"
    if viewed_content.rules_of(letter.dlq) and not revealed:
        return f"{said}: {MASK}"
    try:
        return f"{said}: {content.opened_text(text, Part.ANSWER, of=letter.message_id)}"
    except PayloadUnreadable as error:
        return f"{said}: {error}"


def _sealers(dlqs: Collection[int]) -> dict[int, Sealer | None]:
    found: dict[int, Sealer | None] = {}
    today = database_now().date() if dlqs else None
    for dlq in dlqs:
        try:
            found[dlq] = content.sealer_of(dlq, today) if today else None
        except PayloadUnreadable:
            found[dlq] = None
    return found
