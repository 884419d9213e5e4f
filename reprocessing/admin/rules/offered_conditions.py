"""Fields and values of a DLQ's newest messages, offered as conditions of a rule.

Everybody who may see messages is offered the names of fields. People who may see payloads can also request the values
of the fields. The audit log records this, and masked values stay masked. Encrypted messages are read only if values
are requested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.core import signing
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from reprocessing.admin.messages.message_page import may_see_payloads
from reprocessing.admin.rules.condition_builder import BuilderRow
from reprocessing.domain.message.envelope import unpack_attributes
from reprocessing.domain.message.identity import LetterFacts
from reprocessing.domain.routing.message_fields import MessageFields, read_selector
from reprocessing.domain.routing.offered_fields import OfferedField, OfferedFields, offered_fields
from reprocessing.models import DeadLetterQueue
from reprocessing.store.parking_lot import message_edits
from reprocessing.store.payloads import viewed_content
from reprocessing.store.routing import routable_letters
from reprocessing.store.routing.routable_letters import RoutableLetter

#: Max messages that are read to find fields, and about how many bytes of them are loaded.
SAMPLE: Final = 30
_BYTES: Final = 512 * 1024
#: Name of the hidden field that says for which messages the audit log has already recorded that the person saw values.
SHOWN: Final = "shown_values"
_SALT, _SECONDS = "redrive.rule-values", 3_600


@dataclass(frozen=True, slots=True)
class Offers:
    """What the page of a rule offers: fields of recent messages, and perhaps their values.

    Attributes:
        found: the fields. They have values only if `shows_values` is true.
        messages: how many messages were read to find the fields.
        needs_dlq: whether nothing is offered because no DLQ is chosen yet.
        may_show: whether the person may request the values.
        mark: a signed text for the hidden field `SHOWN`, with the ids of the messages whose values are shown; empty:
            no values are shown.
    """

    found: OfferedFields = field(default_factory=OfferedFields)
    messages: int = 0
    needs_dlq: bool = False
    may_show: bool = False
    mark: str = ""

    @property
    def shows_values(self) -> bool:
        """Return whether values are offered, not only names."""
        return bool(self.mark)

    def of_rows(self, rows: Sequence[BuilderRow]) -> list[OfferedField | None]:
        """Return, for each row of the form, the offered field with the name in the row; None: there is none."""
        known = {offered.name: offered for offered in self.found.fields}
        return [known.get(row.parts.field) if row.parts else None for row in rows]


def offers(request: HttpRequest, dlq: DeadLetterQueue | None, *, for_all: bool, sent: Mapping[str, Any]) -> Offers:
    """Return what the page offers for a rule of this DLQ.

    If `dlq` is None and `for_all` is true, the rule is for all DLQs. If `dlq` is None and `for_all` is false, the
    person has not chosen a DLQ yet, and nothing is offered.

    Raises:
        PermissionDenied: the person asks for values, and may not see payloads.
    """
    if not request.user.has_perm("reprocessing.view_letter"):
        return Offers()
    if dlq is None and not for_all:
        return Offers(needs_dlq=True)
    may, key = may_see_payloads(request.user), dlq.pk if dlq else None
    if "show_values" in sent and not may:
        raise PermissionDenied
    asks = may and "show_values" in sent
    seen = _seen(request, key, str(sent.get(SHOWN, ""))) if may and not asks else []
    shows = asks or bool(seen)
    chosen = seen or routable_letters.newest_ids(key, SAMPLE)
    letters = routable_letters.load_chosen(chosen, chunk=_BYTES, sealed=shows)
    if asks:
        seen = _record(request, letters)
    found = offered_fields(_facts(letters, dlq), values=shows)
    mark = signing.dumps([request.user.pk, key, seen], salt=_SALT) if seen else ""
    return Offers(found, len(letters), may_show=may, mark=mark)


def _record(request: HttpRequest, letters: Sequence[RoutableLetter]) -> list[int]:
    """Record in the audit log that this person sees values of these messages. Return the ids of the messages."""
    ids = [letter.letter_id for letter in letters]
    message_edits.record_views(ids, by=request.user.get_username(), reason="Offered values for a rule.")
    return ids


def _seen(request: HttpRequest, dlq: int | None, mark: str) -> list[int]:
    """Return the ids of the messages whose values this page has already shown to this person, from the text `mark`.

    The audit log has recorded that. The list is empty if `mark` is forged, over an hour old, or made for another person
    or DLQ.
    """
    try:
        user, of, ids = signing.loads(mark, salt=_SALT, max_age=_SECONDS)
    except (signing.BadSignature, ValueError, TypeError):
        return []
    return list(ids) if (user, of) == (request.user.pk, dlq) else []


def _facts(letters: Sequence[RoutableLetter], dlq: DeadLetterQueue | None) -> list[MessageFields]:
    """Return, for each message, the values that rules can compare. Values of masked fields are masked."""
    dlqs = {dlq.pk: dlq} if dlq else DeadLetterQueue.objects.in_bulk({letter.dlq_id for letter in letters})
    return [_masked(letter, dlqs[letter.dlq_id]) for letter in letters if letter.dlq_id in dlqs]


def _masked(letter: RoutableLetter, dlq: DeadLetterQueue) -> MessageFields:
    shown = viewed_content.masked(dlq, letter.body, unpack_attributes(letter.attributes))
    known = LetterFacts(letter.message_id, shown.body, shown.attributes, letter.system)
    kind, tenant = read_selector(dlq.message_type), read_selector(dlq.tenant)
    return MessageFields(known, dlq.name, letter.source, kind, tenant)
