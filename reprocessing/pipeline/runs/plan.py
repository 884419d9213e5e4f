"""Place captured letters in lanes, and enlist whole lanes: give them to a run when the DLQ has run dry."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from reprocessing.domain.errors import PayloadKeyUnavailable, PayloadUnreadable
from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.ordering.placement import KeyPolicy, StoredPlace
from reprocessing.domain.runs.selection import ALL_LETTERS
from reprocessing.models import DeadLetterQueue, Run
from reprocessing.models.run import RunKind, RunState
from reprocessing.pipeline.capture import find_source
from reprocessing.pipeline.runs import place_letters, plan_obstacles
from reprocessing.store import rows
from reprocessing.store.aws import aws_redrives
from reprocessing.store.ordering import placement
from reprocessing.store.ordering.placement import UnplacedLetter
from reprocessing.store.runs import enlistment, enlistment_batches, leftover_lanes, plans, selection
from reprocessing.store.runs.enlistment import Enlisted
from reprocessing.store.safety import waves

_RUNS = 20  #: most started runs whose letters one call enlists


@dataclass(frozen=True, slots=True)
class EnlistResult(Enlisted):
    """How many letters a run took, on how many lanes, and how many letters were parked instead.

    A lane that got letters in two batches counts twice. `left`: whether letters are left, which the next poll enlists.
    """

    letters: int = 0
    lanes: int = 0
    parked: int = 0
    left: bool = False


@dataclass(frozen=True, slots=True)
class PlaceResult:
    """How many captured letters got a place in a lane, or a reason to park them (`placed`).

    `error`: why other letters got none, as text for people; empty: all got one.
    """

    placed: int = 0
    error: str = ""


def place_captured(dlq: DeadLetterQueue, *, stop: Callable[[], bool] = lambda: False) -> PlaceResult:
    """Determine the places of captured letters that have none; return the counts.

    All letters stay captured. A letter that cannot be sent, for example because its payload can never be decrypted, is
    parked only when a run takes it. If the key of a letter's payload is not available now, the letter gets no place yet
    (docs/adr/0059). This function tries such letters until `stop` returns True.

    Raises:
        PayloadKeyUnavailable: the DLQ has ordering keys, and the key of an encrypted letter is not available now.
    """
    policy = place_letters.policy_of(DeadLetterQueue.objects.get(pk=dlq.pk))  # it may have changed since the capture
    failed = dict[int, PayloadUnreadable]()
    done = [_place_some(dlq, policy, failed, stop, tried=tried) for tried in placement.unplaced_kinds(dlq.pk)]
    left_out = any(isinstance(error, PayloadKeyUnavailable) for error in failed.values())
    return PlaceResult(sum(done), plan_obstacles.undecryptable_messages(dlq) if left_out else "")


def _place_some(
    dlq: DeadLetterQueue, policy: KeyPolicy, failed: dict[int, PayloadUnreadable], stop: Callable[[], bool], *,
    tried: bool,
) -> int:  # fmt: skip
    """Place letters; return how many. `tried`: True: those that could not be decrypted before; False: the others.

    End after a set of letters of which none can be decrypted; the next poll continues with letters that were not tried.
    """
    bodies = place_letters.reads_bodies(policy)
    done = above = 0
    while found := placement.unplaced_letters(dlq.pk, bodies=bodies, above=above, tried=tried, failed=failed):
        placement.mark_undecryptable(found.undecryptable_now)
        if found.undecryptable_now and place_letters.is_ordered(policy):
            raise _unknown_keys(dlq)
        if _named(dlq, [letter for letter in found.readable if letter.source_id is None]):
            continue  # read the letters again, with the limits of their targets
        places = {letter.id: place_letters.place_letter(policy, letter) for letter in found.readable}
        places |= {letter: StoredPlace(ParkedReason.PAYLOAD_LOST, why) for letter, why in found.lost.items()}
        placement.set_places(places)
        done += len(places)
        above = found.last
        if found.undecryptable_now and (not places or stop()):
            break
    return done


def _unknown_keys(dlq: DeadLetterQueue) -> PayloadKeyUnavailable:
    """Return the error for letters whose ordering key cannot be decrypted now.

    Nothing of the DLQ may be sent then, since a later letter of the same key could be sent first.
    """
    return PayloadKeyUnavailable(
        f"{plan_obstacles.undecryptable_messages(dlq)} Until then, no message of {dlq.name} is enlisted: a later "
        "message of the same ordering key would be sent first. If the key is lost for good, list its messages "
        '(docs/payloads.md, "A lost key"), and destroy them: '
        f"manage.py shred_payloads {dlq.name} --message-id ID --reason WHY --confirm"
    )


def _named(dlq: DeadLetterQueue, some: Sequence[UnplacedLetter]) -> int:
    """Set the sources of letters whose source was registered after their capture; return the number of letters."""
    return placement.set_sources(find_source.Sources(dlq).trace(some)) if some else 0


def select_waiting_plans(dlq: DeadLetterQueue, *, through: int) -> int:
    """Select the letters of plans that waited for a capture of the DLQ; return the number of plans.

    `through`: only letters with ids up to this one are selected.
    """
    done = [
        plans.select_letters(run.pk, by=run.asked_by, reason=run.reason or "The DLQ has run dry.", through=through)
        for run in plans.unselected_plans(dlq.pk)
    ]
    return sum(selected is not None for selected in done)


def enlist_started_plans(*, stop: Callable[[], bool], only: int | None = None) -> int:
    """Put letters of started plans onto lanes, if they are not there yet, until `stop` returns True; return how many.

    `only`: id of the only run; None: all runs. `stop` is asked after each batch and each run; for `only`, also before.
    """
    done = 0
    if only and stop():
        return 0
    for run in [only] if only else [owing.id for owing in enlistment_batches.unenlisted_runs(limit=_RUNS)]:
        done += _enlist_started(run, stop)
        if stop():
            break
    return done


def _enlist_started(run: int, stop: Callable[[], bool]) -> int:
    """Put letters of one started plan onto lanes, until `stop` returns True or it cannot go on; return how many.

    It cannot go on if it was paused, if AWS redrives its DLQ, or if another worker enlists its letters.
    """
    done = 0
    while left := enlistment_batches.next_batches(run):
        for some in left:
            enlisted = enlistment_batches.enlist_batch(run, some)
            if enlisted is None:
                return done
            done += enlisted.letters + enlisted.parked
            if stop():
                return done
    return done


def after_seconds(seconds: float, clock: Callable[[], float] = time.monotonic) -> Callable[[], bool]:
    """Return a `stop` that returns True `seconds` after its first call.

    So the time counts from the first batch. To choose the batches of millions of letters may take longer than a batch.
    """
    began: list[float] = []

    def stop() -> bool:
        began.extend([] if began else [clock()])
        return clock() - began[0] >= seconds

    return stop


def enlist(
    dlq: DeadLetterQueue, run: Run, *, through: int | None = None, stop: Callable[[], bool] = lambda: False
) -> EnlistResult:
    """Enlist letters of the DLQ in this run, that is, put them onto lanes of the run; return the counts.

    Letters are enlisted that have a place and are in no run. `through`: only letters with ids up to this one. Later
    letters must wait, since earlier messages of their keys may still be in the DLQ.

    All is one transaction. Only an automatic run enlists many letters in batches: one batch, then more until
    `stop` returns True. It must be running, and its DLQ must be in mode automatic. If it has no letters in progress,
    its first wave begins again.

    Raises:
        NativeRedriveConflict: AWS is moving messages out of this DLQ.
    """
    if run.kind == RunKind.AUTOMATIC:
        if not rows.in_transaction(partial(_begin_anew, dlq.pk, run.pk)):
            return EnlistResult()
        if not leftover_lanes.adopt_leftovers(dlq.pk, run.pk, stop=stop):
            return EnlistResult(left=True)
        found = enlistment_batches.count_free(dlq.pk, through=through)
        if found.n > enlistment_batches.BATCH_LETTERS:
            is_running = run.state == RunState.RUNNING  # else nothing is enlisted, and to sort all letters takes long
            return _by_instalments(dlq.pk, run.pk, found.newest, stop) if is_running else EnlistResult()
    done = _at_once(dlq, run, through)
    return EnlistResult(done.letters, done.lanes, done.parked)


def _begin_anew(dlq: int, run: int) -> bool:
    """If a run has no letters in progress, begin its waves again. Return False if the run takes no more letters."""
    aws_redrives.lock_out_aws(dlq)
    if not enlistment_batches.takes_letters(run):
        return False
    waves.restart_when_empty(run)
    return True


def _at_once(dlq: DeadLetterQueue, run: Run, through: int | None) -> Enlisted:
    def work() -> Enlisted:
        aws_redrives.lock_out_aws(dlq.pk)
        selection.lock_selection(dlq.pk)  # waits for other selections, so the run is read after them
        if run.kind == RunKind.AUTOMATIC and not enlistment_batches.takes_letters(run.pk):
            return Enlisted(0, 0, 0)
        selection.select_letters(dlq.pk, run.pk, ALL_LETTERS, through=through)
        return enlistment.enlist_letters(dlq.pk, run.pk)

    return rows.in_transaction(work)


def _by_instalments(dlq: int, run: int, through: int, stop: Callable[[], bool]) -> EnlistResult:
    done, before = EnlistResult(), None
    while done != before and (some := enlistment_batches.next_automatic_batches(dlq, run, through=through)):
        before = done
        for letters in some:
            taken = enlistment_batches.enlist_automatic_batch(dlq, run, letters)
            if taken is None:
                return done
            done = EnlistResult(done.letters + taken.letters, done.lanes + taken.lanes, done.parked + taken.parked)
            if stop():
                return replace(done, left=True)
    return done
