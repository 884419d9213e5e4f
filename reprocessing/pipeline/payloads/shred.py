"""Shred payloads: destroy the data keys of a DLQ and delete its payloads, or delete the payloads of single messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

from django.db.models import Count

from reprocessing.domain.errors import ErasureRefused
from reprocessing.models import AuditAct, AuditEntry, DeadLetterQueue, Letter
from reprocessing.store import rows
from reprocessing.store.approvals import guard
from reprocessing.store.ordering import lanes
from reprocessing.store.payloads import payload_keys, removal
from reprocessing.store.payloads.removal import Removed

#: Most letters in one transaction.
BATCH: Final = 500

_DESTROY = """
UPDATE redrive_payload_key
   SET wrapped = NULL, destroyed_at = redrive_now(), destroyed_by = %(by)b, destroy_reason = %(reason)b
 WHERE dlq_id = %(dlq)b AND destroyed_at IS NULL
"""

_LOCK = "SELECT id FROM redrive_dlq WHERE id = %(dlq)b FOR UPDATE"


@dataclass(frozen=True, slots=True)
class Shredded:
    """The result of `shred_dlq`: number of destroyed data keys, and of messages whose payload was deleted."""

    keys: int
    letters: int


def shred_messages(letters: Sequence[int], *, by: str, reason: str) -> Removed:
    """Delete the payloads of these letters, and discard letters in state captured or parked; return what was removed.

    Raises:
        ApprovalRefused: there are more letters than one person may discard alone, and a shred cannot be approved.
    """

    def shred() -> Removed:
        counted = Letter.objects.filter(pk__in=letters).values_list("dlq_id").annotate(n=Count("pk"))
        guard.refuse_above(dict(counted), "Shredding these messages", by=by)
        return removal.remove_content(letters, AuditAct.SHREDDED, by=by, reason=reason)

    return rows.in_transaction(shred)


def why_not_shred(dlq: DeadLetterQueue) -> str:
    """Return, as text for people, why the payloads of a DLQ cannot be shredded now; empty: they can be shredded."""
    if busy := removal.count_in_progress(dlq.pk):
        return (
            f"{busy:,} messages of {dlq.name} are queued, or are being sent, or await their outcome. Wait until the "
            f"run has finished, or abort it: manage.py show_runs {dlq.name}"
        )
    if dlq.leased_until is not None and dlq.leased_until > lanes.database_now():
        wait = max(timedelta(seconds=1), dlq.leased_until - lanes.database_now())
        return f"{dlq.name} is being captured. Try again in {wait.total_seconds():.0f} s."
    return ""


def shred_dlq(dlq: DeadLetterQueue, *, by: str, reason: str, on_progress: Callable[[int], None]) -> Shredded:
    """Destroy the data keys of a DLQ, then delete its payloads; return the counts.

    When the keys are destroyed, nobody can read the encrypted payloads any more, even those that are not deleted yet.
    If the process is killed, a second call continues. `on_progress`: called after each batch, with the number of
    messages so far.

    Raises:
        ErasureRefused: messages of the DLQ are in progress, or the DLQ is being captured.
        ApprovalRefused: the DLQ has an approval limit, and a shred cannot be approved.
    """
    keys = rows.in_transaction(partial(_destroy, dlq, by, reason))
    payload_keys.forget_unwrapped()
    done, above = 0, 0
    while some := list(
        Letter.objects.filter(dlq=dlq, pk__gt=above, payload__isnull=False)
        .order_by("pk").values_list("pk", flat=True)[:BATCH]
    ):  # fmt: skip
        done += len(shred_messages(some, by=by, reason=reason).letters)
        above = some[-1]
        on_progress(done)
    return Shredded(keys, done)


def _destroy(dlq: DeadLetterQueue, by: str, reason: str) -> int:
    rows.execute(_LOCK, {"dlq": dlq.pk})  # no capture begins meanwhile
    guard.refuse_above({dlq.pk: None}, f"Shredding {dlq.name}", by=by)
    if why := why_not_shred(DeadLetterQueue.objects.get(pk=dlq.pk)):
        raise ErasureRefused(why)
    destroyed = rows.execute(_DESTROY, {"dlq": dlq.pk, "by": by, "reason": reason})
    AuditEntry.objects.create(act=AuditAct.SHREDDED, dlq=dlq, by=by, reason=reason, after={"payload_keys": destroyed})
    return destroyed
