"""Remove a source queue from its DLQ, unless unfinished letters depend on it."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from django.db.models import Count, Q

from reprocessing.domain.errors import SourceInUse
from reprocessing.domain.lifecycle import LetterState
from reprocessing.models import AuditEntry, DeadLetterQueue, Letter, Source
from reprocessing.models.audit import AuditAct
from reprocessing.store.ordering import lanes


def find_source(dlq: DeadLetterQueue, text: str) -> Source:
    """Return the DLQ's source queue with this ARN, name or URL.

    Raises:
        SourceInUse: the DLQ has no such source queue, or several.
    """
    known = list(dlq.sources.select_related("target").order_by("arn"))
    found = [source for source in known if text in {source.arn, str(source), source.target.url}]
    if len(found) != 1:
        if found:
            raise SourceInUse(
                f'{dlq.name} has {len(found)} sources "{text}". Give an ARN: {", ".join(one.arn for one in found)}.'
            )
        there_are = f"It has: {', '.join(source.arn for source in known)}." if known else "It has none."
        raise SourceInUse(f'{dlq.name} has no source "{text}". {there_are}')
    return found[0]


def unfinished_letters(source: Source) -> Mapping[str, int]:
    """Return how many unfinished or parked letters came from this source queue, by state."""
    unfinished = Letter.objects.filter(Q(finished_at=None) | Q(state=LetterState.PARKED), dlq=source.dlq_id)
    found = unfinished.filter(source=source).values_list("state").annotate(n=Count("id")).order_by("state")
    return dict(found)


def refuse_if_needed(source: Source) -> None:
    """Refuse to remove a source queue if letters depend on it.

    Raises:
        SourceInUse: unfinished or parked letters came from the source queue.
    """
    if needed := unfinished_letters(source):
        letters = ", ".join(f"{n:,} {state}" for state, n in needed.items())
        name = source.dlq.name
        raise SourceInUse(
            f"Nothing was done: messages of {name} from {source} are not finished: {letters}. Finish the run "
            f"(manage.py redrive_status {name} shows it), and release or discard what is parked; or send them "
            f"elsewhere: manage.py add_dlq {name} --source {source.arn} --to TARGET --confirm"
        )


def remove_source(source: Source, *, by: str, reason: str) -> None:
    """Remove a source queue from its DLQ. If it was the DLQ's default source, the DLQ has no default source any more.

    The row stays for the history; `add_dlq --source` restores it.

    Raises:
        SourceInUse: unfinished or parked letters came from the source queue, or it was removed before.
    """
    with transaction.atomic():
        dlq = DeadLetterQueue.objects.select_for_update().get(pk=source.dlq_id)
        locked = Source.objects.select_for_update().filter(pk=source.pk).select_related("dlq").first()
        if locked is None:
            raise SourceInUse(f"{source} was removed from {dlq.name} before: nothing to change.")
        refuse_if_needed(locked)
        locked.removed_at = lanes.database_now()
        locked.save(update_fields=["removed_at"])
        DeadLetterQueue.objects.filter(pk=dlq.pk, default_source=locked).update(default_source=None)
        AuditEntry.objects.create(
            act=AuditAct.CHANGED, dlq=dlq, by=by, reason=reason, before={f"{dlq.name}.source": locked.arn},
            after={f"{dlq.name}.source": None},
        )  # fmt: skip
