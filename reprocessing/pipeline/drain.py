"""Drain a dlq in this very process: capture, plan, replay, and wait for outcomes. Needs neither worker nor beat."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from django.db import Error as DatabaseError
from django.db import connection, transaction

from reprocessing.conf import Conf
from reprocessing.domain.errors import QueueIsOutOfReach, RunIsAnother
from reprocessing.models import DeadLetterQueue, Run, Target, lanes, progress
from reprocessing.models.progress import Tally
from reprocessing.models.run import RunKind, RunState
from reprocessing.pipeline import capture, check, gather, plan, promote, recover, replay, route
from reprocessing.pipeline.capture import Captured
from reprocessing.rate import Rates
from reprocessing.sqs import QueueAddress, depth

logger = logging.getLogger(__name__)

#: Seconds of a long poll while somebody watches; one of any length asks all of SQS's servers.
LONG_POLL = 2
#: Seconds between two looks when nothing was due.
IDLE = 0.25


@dataclass(frozen=True, slots=True)
class Hands:
    """What a drain works with."""

    conf: Conf
    rates: Rates
    dice: Callable[[], float]
    owner: str
    stop: Callable[[], bool]


def collect(dlq: DeadLetterQueue, hands: Hands, *, heard: Callable[[Captured], None], seconds: float) -> Captured:
    """Capture the dlq until it has run dry, and give what was captured its places.

    Raises:
        QueueIsOutOfReach: the dlq could not be read.
    """
    conf = _brisk(hands.conf)
    found = depth(QueueAddress(url=dlq.url, region=dlq.region))
    captured = capture.letters(
        dlq, conf=conf, dice=hands.dice, seconds=seconds, stop=hands.stop, heard=heard,
        receivers=gather.receivers(found.visible, conf), alone=gather.is_ours_alone(dlq, found, conf),
    )  # fmt: skip
    if captured.trouble and not captured.received:
        raise QueueIsOutOfReach(captured.trouble)
    plan.places(dlq)
    return captured


def begin(dlq: DeadLetterQueue, *, name: str, limit: int | None, asked_by: str) -> Run:
    """The run of this name, enlisted and running: made now, or found as it was left.

    Raises:
        RunIsAnother: the name is taken by a run with another selection.
    """
    with transaction.atomic():
        run, made = Run.objects.select_for_update().get_or_create(
            name=name,
            defaults={
                "dlq": dlq, "kind": RunKind.DRAIN, "selection": _selection(dlq, limit), "asked_by": asked_by,
            },
        )  # fmt: skip
        _compare(run, dlq, limit)
        if made:
            plan.enlist(dlq, run, limit=limit)
        return again(run)


def known(dlq: DeadLetterQueue, *, name: str, limit: int | None) -> Run | None:
    """The run of this name, if it was begun before.

    Raises:
        RunIsAnother: the name is taken by a run with another selection.
    """
    run = Run.objects.filter(name=name).select_related("dlq").first()
    if run is not None:
        _compare(run, dlq, limit)
    return run


def again(run: Run) -> Run:
    """The run, running: what is done of it stays done."""
    Run.objects.filter(pk=run.pk).update(
        state=RunState.RUNNING, started_at=run.started_at or lanes.clock(), finished_at=None
    )
    run.refresh_from_db()
    return run


def _compare(run: Run, dlq: DeadLetterQueue, limit: int | None) -> None:
    selection = _selection(dlq, limit)
    if run.dlq_id != dlq.pk or run.kind != RunKind.DRAIN or run.selection != selection:
        raise RunIsAnother(
            f"The run {run.name} was asked for {_told(run)}; now it is asked for {_told_selection(selection)}. "
            "A run is repeated as it was (rerun), or another one is begun under another id."
        )


def _selection(dlq: DeadLetterQueue, limit: int | None) -> dict[str, object]:
    return {"dlq": dlq.name, "limit": limit}


def _told(run: Run) -> str:
    if run.kind == RunKind.STANDING:
        return f"whatever {run.dlq.name} holds, by beat"
    return f"released letters of {run.dlq.name}" if "released" in run.selection else _told_selection(run.selection)


def _told_selection(selection: Mapping[str, object]) -> str:
    limit = selection.get("limit")
    return f"{'all letters' if limit is None else f'{limit} letters'} of {selection.get('dlq')}"


def work(run: Run, hands: Hands, *, told: Callable[[Tally], None], along: Sequence[int] = ()) -> Tally:
    """Replay a run until each of its letters has come to an end, or `hands.stop` says so; what they have come to.

    A letter that waits behind a parked one is waited for only until nothing else is under way: a person decides there.
    The dlq's other running runs are replayed along, since their letters may stand before this run's; those of
    `along` to their end, too.

    Args:
        run: it is running.
        hands: what to work with.
        told: the run's tally, again and again.
        along: running runs of the same dlq.
    """
    beside: list[_Beside] = [_Watch(run, hands), _Checks(run, hands)]
    for one in beside:
        one.start()
    try:
        while not hands.stop():
            turn = replay.Slice(
                owner=hands.owner, conf=hands.conf, rates=hands.rates, dice=hands.dice,
                runs=progress.running(run.dlq_id), stop=hands.stop,
            )  # fmt: skip
            report = turn.run(seconds=hands.conf.slice.total_seconds())
            tally = progress.tally(run.pk)
            told(tally)
            if not tally.under_way and not any(progress.tally(other).under_way for other in along):
                break
            if not report.taken and not report.left:
                time.sleep(IDLE)
    finally:
        for one in beside:
            one.end()
    recover.sweep(run.dlq, conf=hands.conf)
    progress.finish_runs()
    return progress.tally(run.pk)


class _Beside(threading.Thread):
    """Beside the replay: something that is looked at again and again until it is over."""

    def __init__(self, run: Run, hands: Hands) -> None:
        super().__init__(name=f"{type(self).__name__} of {run.name}")
        self._hands = replace(hands, conf=_brisk(hands.conf), stop=self._is_over)
        self._asked = hands.stop
        self._over = threading.Event()

    def run(self) -> None:
        try:
            while not self._is_over():
                try:
                    self._look()
                except DatabaseError as error:
                    self._rest_after(error)
                self._over.wait(IDLE)
        finally:
            connection.close()

    def end(self) -> None:
        self._over.set()
        self.join()

    def _is_over(self) -> bool:
        return self._over.is_set() or self._asked()

    def _look(self) -> None:
        raise NotImplementedError

    def _rest_after(self, error: Exception) -> None:
        logger.warning("%s", error)
        connection.close_if_unusable_or_obsolete()
        self._over.wait(1.0)


class _Checks(_Beside):
    """Looks at rules and the health of targets; by itself, since a capture may take longer than a verdict holds."""

    def _look(self) -> None:
        route.keep_up(lanes.clock())
        check.targets(conf=self._hands.conf)


class _Watch(_Beside):
    """Captures that meet returns and prove absences, promotion, and the sweep of copies."""

    def __init__(self, run: Run, hands: Hands) -> None:
        super().__init__(run, hands)
        watched = Target.objects.filter(origins__dlq=run.dlq, watched_by__isnull=False)
        self._dlqs = {run.dlq_id, *watched.values_list("watched_by", flat=True)}

    def _look(self) -> None:
        for dlq in DeadLetterQueue.objects.filter(pk__in=self._dlqs, stopped_at=None).exclude(mode="observe"):
            self._turn(dlq)
        promote.letters(conf=self._hands.conf)

    def _turn(self, dlq: DeadLetterQueue) -> None:
        try:
            gather.letters(dlq, conf=self._hands.conf, dice=self._hands.dice, seconds=30, stop=self._hands.stop)
            recover.sweep(dlq, conf=self._hands.conf)
        except QueueIsOutOfReach as error:
            self._rest_after(error)


def _brisk(conf: Conf) -> Conf:
    return replace(conf, long_poll=min(conf.long_poll, LONG_POLL))
