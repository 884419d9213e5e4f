"""Give captured letters their places, and enlist whole lanes into a run once the capture has drained."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reprocessing.domain.envelope import unpack
from reprocessing.domain.selection import ALL, Selection
from reprocessing.models import (
    DeadLetterQueue,
    Run,
    enlistment,
    instalments,
    native,
    plans,
    rows,
    selection,
    waves,
)
from reprocessing.models.enlistment import Enlisted, Unplaced
from reprocessing.models.run import RunKind
from reprocessing.pipeline import place, trace

#: Runs that one turn looks at.
_RUNS = 20


def places(dlq: DeadLetterQueue) -> int:
    """Compute ordering key, sequence and idempotency key of letters that lack them; how many got one or an objection.

    Letters stay captured: an objection becomes a parking reason only when a run takes them.
    """
    policy = place.policy_of(dlq)
    done = 0
    while found := enlistment.unplaced(dlq.pk, bodies=place.reads_bodies(policy)):
        if _named(dlq, [one for one in found if one.origin_id is None]):
            continue  # they are read again, with what their targets ask for
        enlistment.place([place.letter(policy, one) for one in found])
        done += len(found)
    return done


def _named(dlq: DeadLetterQueue, some: Sequence[Unplaced]) -> int:
    """Letters whose origin was named after they were captured get it; how many."""
    if not some:
        return 0
    origins = trace.Origins(dlq)
    traced = [(one.id, origins.of(bytes(one.body), unpack(bytes(one.attributes)), one.system)) for one in some]
    return enlistment.name({pk: origin.pk for pk, origin in traced if origin is not None})


def choose(dlq: DeadLetterQueue) -> int:
    """Select the letters of the dlq's plans that wait for them, now that it has run dry; how many plans got theirs."""
    waiting = plans.unselected(dlq.pk)
    why = "The dlq has run dry."
    done = [plans.select(one.pk, by=one.asked_by, reason=one.reason or why) for one in waiting]
    return len([one for one in done if one is not None])


def go_on(*, stop: Callable[[], bool], only: int | None = None) -> int:
    """Enlist what large plans that were started, or `only` this one, have left, until `stop` says so; how many."""
    done = 0
    for run in [only] if only else [one.id for one in instalments.owing(limit=_RUNS)]:
        while not stop() and (left := instalments.ahead(run)):
            for some in left:
                enlisted = None if stop() else instalments.pay(run, some)
                if enlisted is None:
                    return done
                done += enlisted.letters + enlisted.parked
    return done


def enlist(dlq: DeadLetterQueue, run: Run, *, limit: int | None = None) -> Enlisted:
    """Put the dlq's placed letters that are in no run onto their lanes, as the run's, in one transaction.

    A standing run that goes in waves, and has nothing under way, begins with one letter again.

    Raises:
        AwsMovesTheMessages: out of this dlq.
    """

    def work() -> Enlisted:
        native.keep_out(dlq.pk)
        if run.kind == RunKind.STANDING:
            waves.begin_anew(run.pk)
        selection.select(dlq.pk, run.pk, ALL if limit is None else Selection(limit=limit))
        return enlistment.enlist(dlq.pk, run.pk)

    return rows.whole(work)
