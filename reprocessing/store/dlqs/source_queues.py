"""Remove a source queue from its DLQ, unless unfinished letters depend on it."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from django.db.models import Count, Q

from reprocessing.domain.errors import OriginIsNeeded
from reprocessing.domain.lifecycle import LetterState
from reprocessing.models import DeadLetter, DeadLetterQueue, Origin, Review
from reprocessing.models.audit import Act
from reprocessing.store.ordering import lanes


def find(dlq: DeadLetterQueue, text: str) -> Origin:
    """Return the DLQ's source queue of this ARN, name or URL.

    Raises:
        OriginIsNeeded: there is none.
    """
    known = list(dlq.origins.select_related("target").order_by("arn"))
    found = [origin for origin in known if text in {origin.arn, str(origin), origin.target.url}]
    if len(found) != 1:
        there_are = f"It has: {', '.join(origin.arn for origin in known)}." if known else "It has none."
        raise OriginIsNeeded(f'{dlq.name} has no origin "{text}". {there_are}')
    return found[0]


def needed_by(origin: Origin) -> Mapping[str, int]:
    """Return how many unfinished or parked letters of this source queue there are, by state."""
    unfinished = DeadLetter.objects.filter(Q(finished_at=None) | Q(state=LetterState.PARKED), dlq=origin.dlq_id)
    found = unfinished.filter(origin=origin).values_list("state").annotate(n=Count("id")).order_by("state")
    return dict(found)


def refuse_needed(origin: Origin) -> None:
    """Refuse a source queue that letters depend on.

    Raises:
        OriginIsNeeded: letters depend on it.
    """
    if needed := needed_by(origin):
        letters = ", ".join(f"{n:,} {state}" for state, n in needed.items())
        name = origin.dlq.name
        raise OriginIsNeeded(
            f"Nothing was done: messages of {name} from {origin} are not finished: {letters}. Finish the run "
            f"(manage.py redrive_status {name} shows it), and release or discard what is parked; or send them "
            f"elsewhere: manage.py add_dlq {name} --origin {origin.arn} --to TARGET --confirm"
        )


def remove(origin: Origin, *, by: str, reason: str) -> None:
    """Remove a source queue, also as the default. Its row stays for history; `add_dlq --origin` restores it.

    Raises:
        OriginIsNeeded: unfinished letters depend on it.
    """
    with transaction.atomic():
        dlq = DeadLetterQueue.objects.select_for_update().get(pk=origin.dlq_id)
        locked = Origin.objects.select_for_update().filter(pk=origin.pk).select_related("dlq").first()
        if locked is None:
            raise OriginIsNeeded(f"{origin} was removed from {dlq.name} before: nothing to change.")
        refuse_needed(locked)
        locked.removed_at = lanes.clock()
        locked.save(update_fields=["removed_at"])
        DeadLetterQueue.objects.filter(pk=dlq.pk, default_origin=locked).update(default_origin=None)
        Review.objects.create(
            act=Act.CHANGED, dlq=dlq, by=by, reason=reason, before={f"{dlq.name}.origin": locked.arn},
            after={f"{dlq.name}.origin": None},
        )  # fmt: skip
