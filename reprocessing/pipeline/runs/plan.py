"""Give captured letters their places, and enlist whole lanes into a run when the DLQ has been captured empty."""

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

_RUNS = 20  #: that one turn looks at


@dataclass(frozen=True, slots=True)
class Fed(Enlisted):
    """What was enlisted; each batch counts its lanes. `left`: it was stopped, and the next turn continues."""

    letters: int = 0
    lanes: int = 0
    parked: int = 0
    left: bool = False


def places(dlq: DeadLetterQueue) -> int:
    """Compute the keys of letters that lack them; return how many got a place or an objection.

    Letters stay captured: an objection becomes a parking reason only when a run takes them.
    """
    policy = place_letters.policy_of(dlq)
    done = 0
    while found := enlistment.unplaced(dlq.pk, bodies=place_letters.reads_bodies(policy)):
        if _named(dlq, [letter for letter in found if letter.origin_id is None]):
            continue  # they are read again, with their targets' limits
        enlistment.place([place_letters.letter(policy, letter) for letter in found])
        done += len(found)
    return done


def _named(dlq: DeadLetterQueue, some: Sequence[Unplaced]) -> int:
    """Give letters the source queue that was added after they were captured; return how many got it."""
    if not some:
        return 0
    origins = find_source.Origins(dlq)
    traced = {
        letter.id: origins.of(bytes(letter.body), unpack(bytes(letter.attributes)), letter.system) for letter in some
    }
    return enlistment.name({pk: origin.pk for pk, origin in traced.items() if origin is not None})


def choose(dlq: DeadLetterQueue, *, through: int) -> int:
    """Select the letters of the DLQ's waiting plans, with ids up to `through`; return how many plans were selected."""
    done = [
        plans.select(run.pk, by=run.asked_by, reason=run.reason or "The dlq has run dry.", through=through)
        for run in plans.unselected(dlq.pk)
    ]
    return sum(selected is not None for selected in done)


def go_on(*, stop: Callable[[], bool], only: int | None = None) -> int:
    """Enlist what started plans, or `only` this one, have left, until `stop`; return how many letters."""
    done = 0
    for run in [only] if only else [owing.id for owing in enlistment_batches.owing(limit=_RUNS)]:
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
    """Put the DLQ's placed letters that are in no run onto their lanes, for this run, in one transaction.

    Only letters with ids up to `through`: later ones may have an earlier letter of their lane still in the DLQ. A
    standing run takes more than one batch in batches, at least one and then until `stop`, while it runs and its DLQ is
    in mode automatic. In waves, it begins with one letter again if it has nothing in progress.

    Raises:
        AwsMovesTheMessages: out of this DLQ.
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
    """Begin new waves; return False if the run takes no letters any more."""
    aws_redrives.keep_out(dlq)
    if not enlistment_batches.is_fed(run):
        return False
    waves.begin_anew(run)
    return True


def _at_once(dlq: DeadLetterQueue, run: Run, limit: int | None, through: int | None) -> Enlisted:
    def work() -> Enlisted:
        aws_redrives.keep_out(dlq.pk)
        selection.take_turn(dlq.pk)  # wait before the run is read
        if run.kind == RunKind.STANDING and not enlistment_batches.is_fed(run.pk):
            return Enlisted(0, 0, 0)
        selection.select(dlq.pk, run.pk, ALL if limit is None else Selection(limit=limit), through=through)
        return enlistment.enlist(dlq.pk, run.pk)

    return rows.whole(work)


def _by_instalments(dlq: int, run: int, through: int, stop: Callable[[], bool]) -> Fed:
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
