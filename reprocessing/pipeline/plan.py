"""Give captured letters their places, and enlist whole lanes into a run once the capture has drained."""

from __future__ import annotations

from reprocessing.models import DeadLetterQueue, Run, enlistment, rows
from reprocessing.models.enlistment import Enlisted
from reprocessing.pipeline import place


def places(dlq: DeadLetterQueue) -> int:
    """Compute ordering key, sequence and idempotency key of letters that lack them; how many got one or an objection.

    Letters stay captured: an objection becomes a parking reason only when a run takes them.
    """
    policy = place.policy_of(dlq)
    done = 0
    while found := enlistment.unplaced(dlq.pk, bodies=place.reads_bodies(policy)):
        enlistment.place([place.letter(policy, one) for one in found])
        done += len(found)
    return done


def enlist(dlq: DeadLetterQueue, run: Run, *, limit: int | None = None) -> Enlisted:
    """Put the dlq's placed letters that are in no run onto their lanes, as the run's, in one transaction."""
    return rows.whole(lambda: enlistment.enlist(dlq.pk, run.pk, limit=limit))
