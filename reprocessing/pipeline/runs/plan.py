"""Give captured letters their places, and enlist whole lanes into a run once the capture has drained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from reprocessing.domain.message.envelope import unpack
from reprocessing.domain.runs.selection import ALL, Selection
from reprocessing.models import DeadLetterQueue, Run
from reprocessing.models.run import RunKind
from reprocessing.pipeline.capture import find_source
from reprocessing.pipeline.runs import place_letters
from reprocessing.store import rows
from reprocessing.store.aws import aws_redrives
from reprocessing.store.runs import enlistment, enlistment_batches, leftover_lanes, plans, selection
from reprocessing.store.runs.enlistment import Enlisted, Unplaced
from reprocessing.store.safety import waves

#: Runs that one turn looks at.
_RUNS = 20


@dataclass(frozen=True, slots=True)
class Fed(Enlisted):
    """What a run was given; each instalment counts its lanes. `left`: it was stopped, and the next turn goes on."""

    letters: int = 0
    lanes: int = 0
    parked: int = 0
    left: bool = False


def places(dlq: DeadLetterQueue) -> int:
    """Compute ordering key, sequence and idempotency key of letters that lack them; how many got one or an objection.

    Letters stay captured: an objection becomes a parking reason only when a run takes them.
    """
    policy = place_letters.policy_of(dlq)
    done = 0
    while found := enlistment.unplaced(dlq.pk, bodies=place_letters.reads_bodies(policy)):
        if _named(dlq, [one for one in found if one.origin_id is None]):
            continue  # they are read again, with what their targets ask for
        enlistment.place([place_letters.letter(policy, one) for one in found])
        done += len(found)
    return done


def _named(dlq: DeadLetterQueue, some: Sequence[Unplaced]) -> int:
    """Letters whose origin was named after they were captured get it; how many."""
    if not some:
        return 0
    origins = find_source.Origins(dlq)
    traced = [(one.id, origins.of(bytes(one.body), unpack(bytes(one.attributes)), one.system)) for one in some]
    return enlistment.name({pk: origin.pk for pk, origin in traced if origin is not None})


def choose(dlq: DeadLetterQueue, *, through: int) -> int:
    """Select the letters of the dlq's plans that wait for them, now that it has run dry; how many plans got theirs.

    Letters up to `through`, by id: what came later has not run dry.
    """
    waiting = plans.unselected(dlq.pk)
    why = "The dlq has run dry."
    done = [plans.select(one.pk, by=one.asked_by, reason=one.reason or why, through=through) for one in waiting]
    return len([one for one in done if one is not None])


def go_on(*, stop: Callable[[], bool], only: int | None = None) -> int:
    """Enlist what large plans that were started, or `only` this one, have left, until `stop` says so; how many."""
    done = 0
    for run in [only] if only else [one.id for one in enlistment_batches.owing(limit=_RUNS)]:
        while not stop() and (left := enlistment_batches.ahead(run)):
            for some in left:
                enlisted = None if stop() else enlistment_batches.pay(run, some)
                if enlisted is None:
                    return done
                done += enlisted.letters + enlisted.parked
    return done


def enlist(
    dlq: DeadLetterQueue, run: Run, *, limit: int | None = None, through: int | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Fed:  # fmt: skip
    """Put the dlq's placed letters that are in no run onto their lanes, as the run's, in one transaction.

    Those up to `through`, by id: what came later has not run dry, and keeps back what is behind it in its lane.
    What is more than an instalment a standing run takes by instalments, while it runs and its dlq is automatic: one,
    and more until `stop` says so. What it has not taken is in no run. One that goes in waves, and has nothing under
    way, begins with one letter again. Nothing is given to the standing run of a dlq that is not automatic any more.

    Raises:
        AwsMovesTheMessages: out of this dlq.
    """
    if run.kind == RunKind.STANDING:
        if not rows.whole(partial(_begin_anew, dlq.pk, run.pk)):
            return Fed()
        if not leftover_lanes.adopt(dlq.pk, run.pk, stop=stop):
            return Fed(left=True)
        found = enlistment_batches.free(dlq.pk, through=through)
        if found.n > enlistment_batches.SIZE:
            return _by_instalments(dlq.pk, run.pk, found.newest, stop)
    done = _at_once(dlq, run, limit, through)
    return Fed(done.letters, done.lanes, done.parked)


def _begin_anew(dlq: int, run: int) -> bool:
    """False: the run may be given nothing any more."""
    aws_redrives.keep_out(dlq)
    if not enlistment_batches.is_fed(run):
        return False
    waves.begin_anew(run)
    return True


def _at_once(dlq: DeadLetterQueue, run: Run, limit: int | None, through: int | None) -> Enlisted:
    def work() -> Enlisted:
        aws_redrives.keep_out(dlq.pk)
        selection.take_turn(dlq.pk)  # what was waited for is over when the run is asked, as with an instalment
        if run.kind == RunKind.STANDING and not enlistment_batches.is_fed(run.pk):
            return Enlisted(0, 0, 0)
        selection.select(dlq.pk, run.pk, ALL if limit is None else Selection(limit=limit), through=through)
        return enlistment.enlist(dlq.pk, run.pk)

    return rows.whole(work)


def _by_instalments(dlq: int, run: int, through: int, stop: Callable[[], bool]) -> Fed:
    """What is captured by now, or was when the dlq had run dry: what comes later keeps back what is behind it."""
    done, before = Fed(), None
    while done != before and (some := enlistment_batches.to_take(dlq, run, through=through)):
        before = done
        for letters in some:
            taken = enlistment_batches.take(dlq, run, letters)
            if taken is None:
                return done
            done = Fed(done.letters + taken.letters, done.lanes + taken.lanes, done.parked + taken.parked)
            if stop():
                return replace(done, left=True)
    return done
