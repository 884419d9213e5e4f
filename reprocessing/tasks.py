"""The Celery tasks: ids in, one call, next tasks out."""

from __future__ import annotations

import logging
import os
import random
import uuid
from functools import cache

from celery import shared_task
from celery.signals import worker_process_shutdown, worker_shutdown
from django.conf import settings

from reprocessing import conf
from reprocessing.domain.errors import QueueIsOutOfReach
from reprocessing.models import (
    DeadLetterQueue,
    Pulse,
    acknowledgement,
    captures,
    checks,
    dispatch,
    lanes,
    rules,
    schedule,
)
from reprocessing.pipeline import check, gather, linger, replay, route
from reprocessing.pipeline import promote as promotion
from reprocessing.pipeline import purge as purging
from reprocessing.pipeline import recover as recovery
from reprocessing.rate import Rates

logger = logging.getLogger(__name__)

CONTROL = "redrive-control"
CAPTURE = "redrive-capture"
REPLAY = "redrive-replay"

#: Seconds of one capture task: three long polls of twenty seconds fit twice; it hands over before the time limit.
CAPTURE_SLICE = 150.0
#: Seconds between two sweeps of what was left behind, and between two purges of what is past its time.
SWEEP_EVERY, PURGE_EVERY = 10.0, 3600.0
#: Seconds that a worker that is asked to stop waits for the answers of slow targets.
PATIENCE = 10.0
#: Dlqs that one tick gives their turn, and slots of workers that hints are meant for.
DLQS_A_TICK, SLOTS = 20, 8

dice = random.SystemRandom().random


@shared_task(name="reprocessing.tick")
def tick(**_future: object) -> None:
    """What beat sends every two seconds: dispatch due dlqs and due lanes, and see to rules, health and the rest.

    That it arrived is the pulse of the control queue.
    """
    Pulse.beat(CONTROL)
    for dlq in schedule.due(now=lanes.clock(), limit=DLQS_A_TICK):
        capture.apply_async((dlq,), queue=CAPTURE)
    if rules.turn_over(lanes.clock()):
        wake.apply_async(queue=CONTROL)
    _hint()
    if checks.are_due():
        check_health.apply_async(queue=CONTROL, expires=10)
    if acknowledgement.is_awaited():
        promote.apply_async(queue=CONTROL, expires=10)
    if dispatch.is_due("sweep", every=SWEEP_EVERY):
        recover.apply_async(queue=CONTROL, expires=SWEEP_EVERY)
    if dispatch.is_due("purge", every=PURGE_EVERY):
        purge.apply_async(queue=CONTROL, expires=PURGE_EVERY)


def _hint() -> None:
    """Tell workers of due lanes, in tasks of several. A hint that is lost or doubled harms nobody."""
    view = conf.current()
    most = view.hints_per_slot * SLOTS * view.lanes_per_task
    life = view.hint_life.total_seconds()
    turn = dispatch.next_round(most=most, least_life=life, most_life=view.hint_life_cap.total_seconds())
    if turn.width:
        due = lanes.hint(limit=turn.width, lifetime=turn.lifetime)
        for first in range(0, len(due), view.lanes_per_task):
            replay_lanes.apply_async((due[first : first + view.lanes_per_task],), queue=REPLAY)


@shared_task(name="reprocessing.capture")
def capture(dlq_id: int, **_future: object) -> None:
    """Take one turn at a dlq, and another one when this was not enough; where nothing may be received, have a look."""
    dlq = DeadLetterQueue.objects.select_related("default_origin").filter(pk=dlq_id).first()
    if dlq is None:
        return
    try:
        if not gather.is_wanted(dlq):
            gather.look(dlq)
            return
        captured = gather.letters(dlq, conf=conf.current(), dice=dice, seconds=CAPTURE_SLICE).captured
    except QueueIsOutOfReach as error:
        captures.note_trouble(dlq.pk, str(error))
        logger.warning("%s", error)
        return
    if captured.received and not captured.drained and not captured.trouble and not captured.busy:
        capture.apply_async((dlq_id,), queue=CAPTURE)
    elif captured.letters and dlq.at_once:
        schedule.at_once(dlq)


@shared_task(name="reprocessing.replay_lanes")
def replay_lanes(lane_ids: list[int], **_future: object) -> None:
    """Replay these lanes, each in order, one letter at a time; then, while there is time, any lane that is due."""
    view = conf.current()
    strictly = view.lanes_per_task == 1
    turn = replay.Slice(owner=_owner(), conf=view, rates=rates(), dice=dice, only=lane_ids, strictly=strictly)
    left = turn.run(seconds=view.slice.total_seconds()).left
    if left:
        replay_lanes.apply_async((left,), queue=REPLAY)
    elif strictly:
        _hint()  # one task, one lane: whoever is done with one asks for the next


@worker_process_shutdown.connect
@worker_shutdown.connect
def hear_the_last(**_: object) -> None:
    """Before a worker ends: slow targets that it still waits for may answer; what they do not is unknown."""
    linger.wait(PATIENCE)


@shared_task(name="reprocessing.check_health")
def check_health(**_future: object) -> None:
    """Look whether targets are well that letters wait for."""
    check.targets(conf=conf.current())


@shared_task(name="reprocessing.wake")
def wake(**_future: object) -> None:
    """Ask anew about what rules stopped that hold no more."""
    route.keep_up(lanes.clock())


@shared_task(name="reprocessing.promote")
def promote(**_future: object) -> None:
    """Find out what became of sent letters, as far as their consumers, or the evidence, say."""
    promotion.letters(conf=conf.current(), dice=dice)


@shared_task(name="reprocessing.recover")
def recover(**_future: object) -> None:
    """See to what dead workers and failed calls left behind."""
    recovery.dlqs(conf=conf.current())


@shared_task(name="reprocessing.purge")
def purge(**_future: object) -> None:
    """Forget what is past its time."""
    purging.letters(conf=conf.current())


@cache
def rates() -> Rates:
    """The rates of this process's targets; safe over a fork."""
    return Rates.at(settings.REDIS_URL)


def _owner() -> str:
    return f"{os.uname().nodename}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
