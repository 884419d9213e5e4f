"""The Celery tasks: ids in, one call, next tasks out."""

from __future__ import annotations

import logging
import os
import random
import time
import uuid
from datetime import UTC, datetime, timedelta
from functools import cache

from celery import shared_task
from celery.signals import beat_init, worker_process_shutdown, worker_ready, worker_shutdown
from django.conf import settings
from django.db import connection

from reprocessing import conf
from reprocessing.domain.errors import QueueIsOutOfReach
from reprocessing.gateways.aws.clients import configured_region
from reprocessing.gateways.redis.send_rate import Rates
from reprocessing.gateways.redis.tick_watermark import HighWater
from reprocessing.models import DeadLetterQueue, Pulse
from reprocessing.pipeline import notifications
from reprocessing.pipeline.aws import publish_metrics as publishing
from reprocessing.pipeline.maintenance import detect_restore
from reprocessing.pipeline.maintenance import purge as purging
from reprocessing.pipeline.maintenance import recover as recovery
from reprocessing.pipeline.maintenance.doctor import Patient
from reprocessing.pipeline.notifications import checkup, conditions
from reprocessing.pipeline.outcomes import resolve_outcomes as promotion
from reprocessing.pipeline.parking_lot import group_failures, run_bulk_actions
from reprocessing.pipeline.replay import late_answers, replay_slice
from reprocessing.pipeline.routing import route
from reprocessing.pipeline.runs import feed_run, plan
from reprocessing.pipeline.safety import run_health_checks
from reprocessing.store.aws import metrics
from reprocessing.store.capture import capture_lease
from reprocessing.store.dlqs import schedule
from reprocessing.store.ordering import lanes
from reprocessing.store.outcomes import acknowledgements
from reprocessing.store.parking_lot import bulk_actions
from reprocessing.store.replay import task_hints
from reprocessing.store.routing import rules
from reprocessing.store.runs import enlistment_batches
from reprocessing.store.safety import health_checks
from reprocessing.watchdog import Watchdog

logger = logging.getLogger(__name__)

CONTROL = "redrive-control"
CAPTURE = "redrive-capture"
REPLAY = "redrive-replay"

#: Seconds of one capture task: three long polls of twenty seconds fit twice; it hands over before the time limit.
CAPTURE_SLICE = 150.0
#: Batches of letters that one capture sorts by their causes; what is left, sweeps see to.
SORTED_A_CAPTURE = 20
#: Seconds between two sweeps of what was left behind, and between two purges of what is past its time.
SWEEP_EVERY, PURGE_EVERY = 10.0, 3600.0
#: Seconds that a worker that is asked to stop waits for the answers of slow targets.
PATIENCE = 10.0
#: Seconds of one turn at an operation, and operations that one tick sets going.
OPERATING_SLICE, OPERATIONS_A_TICK = 10.0, 5
#: Dlqs that one tick gives their turn, and slots of workers that hints are meant for.
DLQS_A_TICK, SLOTS = 20, 8

dice = random.SystemRandom().random


@shared_task(name="reprocessing.tick")
def tick(**_future: object) -> None:
    """What beat sends every two seconds: dispatch due dlqs and due lanes, and see to rules, health and the rest.

    That it arrived is the pulse of the control queue. First it looks whether PostgreSQL was restored from a backup.
    """
    detect_restore.tick(marks())
    Pulse.beat(CONTROL)
    now = lanes.clock()
    if turns := schedule.due(now=now, limit=DLQS_A_TICK):
        look.apply_async((turns,), queue=CAPTURE)
    if rules.turn_over(now):
        wake.apply_async(queue=CONTROL)
    _hint()
    for operation in bulk_actions.due(limit=OPERATIONS_A_TICK):
        operate.apply_async((operation,), queue=CONTROL, expires=bulk_actions.LEASE)
    if health_checks.are_due():
        check_health.apply_async(queue=CONTROL, expires=10)
    _promote()
    if notifications.is_due(conf.current()):
        notify.apply_async(queue=CONTROL, expires=10)
    if task_hints.is_due("sweep", every=SWEEP_EVERY):
        recover.apply_async(queue=CONTROL, expires=SWEEP_EVERY)
        look_for_conditions.apply_async(queue=CONTROL, expires=SWEEP_EVERY)
        if enlistment_batches.owing(limit=1):
            enlist.apply_async(queue=CONTROL, expires=SWEEP_EVERY)
        if task_hints.is_due("purge", every=PURGE_EVERY):
            purge.apply_async(queue=CONTROL, expires=PURGE_EVERY)
    if conf.current().cloudwatch and metrics.is_due("publish", every=publishing.EVERY):
        publish.apply_async(queue=CONTROL, expires=publishing.EVERY)


def _promote() -> None:
    """Have it found out what became of sent letters, where somebody waits for that."""
    if acknowledgements.is_awaited():
        promote.apply_async(queue=CONTROL, expires=10)


def _hint() -> None:
    """Tell workers of due lanes, in tasks of several. A hint that is lost or doubled harms nobody."""
    view = conf.current()
    most = view.hints_per_slot * SLOTS * view.lanes_per_task
    life = view.hint_life.total_seconds()
    turn = task_hints.next_round(most=most, least_life=life, most_life=view.hint_life_cap.total_seconds())
    if turn.width:
        due = lanes.hint(limit=turn.width, lifetime=turn.lifetime)
        for first in range(0, len(due), view.lanes_per_task):
            replay_lanes.apply_async((due[first : first + view.lanes_per_task],), queue=REPLAY)


@shared_task(name="reprocessing.look")
def look(dlq_ids: list[int], **_future: object) -> None:
    """Ask how much these dlqs hold, and have captured what that is worth. A task for each would cost more than waiting.

    Where SQS takes its time, the rest of them are another task's.
    """
    until = time.monotonic() + CAPTURE_SLICE / 2
    ids = sorted(dlq_ids)
    for number, dlq_id in enumerate(ids):
        if number and time.monotonic() > until:
            look.apply_async((ids[number:],), queue=CAPTURE)
            return
        if dlq := _dlq(dlq_id):  # each read as late as that: its turn may be another's by now
            _look(dlq)


def _look(dlq: DeadLetterQueue) -> None:
    """One that cannot be looked at keeps none behind it from its turn; it is given its own once more."""
    try:
        if (turn := schedule.take(dlq, now=lanes.clock())) is None:
            return
        if feed_run.look(dlq):
            capture.apply_async((dlq.pk,), queue=CAPTURE)
        else:
            schedule.had(turn)
    except QueueIsOutOfReach as error:
        capture_lease.note_trouble(dlq.pk, str(error))
        logger.warning("%s", error)
    except Exception:
        if not connection.is_usable():  # it is gone for all of them
            raise
        logger.exception("%s could not be looked at.", dlq.name)


@shared_task(name="reprocessing.capture")
def capture(dlq_id: int, **_future: object) -> None:
    """Take one turn at a dlq, and another one when this was not enough; where nothing may be received, have a look."""
    dlq = _dlq(dlq_id)
    if dlq is None or (turn := schedule.take(dlq, now=lanes.clock())) is None:
        return
    try:
        if not feed_run.is_wanted(dlq):
            feed_run.look(dlq)
            schedule.had(turn)
            return
        turn = schedule.keep(turn, until=lanes.clock() + timedelta(seconds=CAPTURE_SLICE))
        gathered = feed_run.letters(dlq, conf=conf.current(), dice=dice, seconds=CAPTURE_SLICE)
    except QueueIsOutOfReach as error:
        capture_lease.note_trouble(dlq.pk, str(error))
        logger.warning("%s", error)
        return
    if gathered.captured.drained:
        _promote()  # that nothing came back is evidence at once
    group_failures.letters(batches=SORTED_A_CAPTURE)
    _go_on(dlq, turn, gathered)


def _go_on(dlq: DeadLetterQueue, turn: schedule.Turn, gathered: feed_run.Gathered) -> None:
    """A turn was had once the dlq has run dry, and all that is its run's is enlisted."""
    captured = gathered.captured
    more = captured.received and not captured.drained and not captured.trouble and not captured.busy
    if more or (gathered.enlisted and gathered.enlisted.left):
        schedule.keep(turn, until=lanes.clock())
        capture.apply_async((dlq.pk,), queue=CAPTURE)
    elif captured.letters and dlq.at_once:
        schedule.at_once(dlq)
    elif captured.drained or gathered.skipped:
        schedule.had(turn)


def _dlq(dlq_id: int) -> DeadLetterQueue | None:
    dlqs = DeadLetterQueue.objects.select_related("default_origin", "interval", "crontab")
    return dlqs.filter(pk=dlq_id).first()


@shared_task(name="reprocessing.replay_lanes")
def replay_lanes(lane_ids: list[int], **_future: object) -> None:
    """Replay these lanes, each in order, one letter at a time; then, while there is time, any lane that is due."""
    if not detect_restore.look(marks()):
        return  # a hint of before the restore
    view = conf.current()
    strictly = view.lanes_per_task == 1
    turn = replay_slice.Slice(owner=_owner(), conf=view, rates=rates(), dice=dice, only=lane_ids, strictly=strictly)
    left = turn.run(seconds=view.slice.total_seconds()).left
    if left:
        replay_lanes.apply_async((left,), queue=REPLAY)
    elif strictly:
        _hint()  # one task, one lane: whoever is done with one asks for the next


@worker_process_shutdown.connect
@worker_shutdown.connect
def hear_the_last(**_: object) -> None:
    """Before a worker ends: slow targets, and destinations of notifications, may still answer."""
    late_answers.wait(PATIENCE)
    notifications.wait_for_delivery(PATIENCE)


@worker_ready.connect
@beat_init.connect
def watch_silence(**_: object) -> None:
    """Have each worker and each beat watch whether the others live."""
    if not watchdog().is_alive():
        watchdog().start()


@worker_shutdown.connect
def watch_no_more(**_: object) -> None:
    """Before a worker ends: it looks no more."""
    watchdog().stop()


@shared_task(name="reprocessing.check_health")
def check_health(**_future: object) -> None:
    """Look whether targets are well that letters wait for."""
    run_health_checks.targets(conf=conf.current())


@shared_task(name="reprocessing.notify")
def notify(**_future: object) -> None:
    """Have people told what happened, in a thread beside: a destination that hangs takes nothing of this queue."""
    notifications.start_delivery(conf.current())


@shared_task(name="reprocessing.wake")
def wake(**_future: object) -> None:
    """Ask anew about what rules stopped that hold no more."""
    route.keep_up(lanes.clock())


@shared_task(name="reprocessing.operate")
def operate(operation_id: int, **_future: object) -> None:
    """Take one turn at what somebody asked for of many letters, and another one when this was not enough."""
    if run_bulk_actions.operation(operation_id, seconds=OPERATING_SLICE):
        operate.apply_async((operation_id,), queue=CONTROL)


@shared_task(name="reprocessing.enlist")
def enlist(**_future: object) -> None:
    """Bring letters of large plans that were started onto their lanes, until the next sweep sends another."""
    ends = time.monotonic() + SWEEP_EVERY
    plan.go_on(stop=lambda: time.monotonic() >= ends)


@shared_task(name="reprocessing.promote")
def promote(**_future: object) -> None:
    """Find out what became of sent letters, as far as their consumers, or the evidence, say; their lanes go on."""
    if promotion.letters(conf=conf.current(), dice=dice):
        _hint()


@shared_task(name="reprocessing.recover")
def recover(**_future: object) -> None:
    """See to what dead workers and failed calls left behind."""
    recovery.dlqs(conf=conf.current())


@shared_task(name="reprocessing.look_for_conditions")
def look_for_conditions(**_future: object) -> None:
    """Announce conditions that hold, conclude those that are over, and now and then have the doctor look."""
    view = conf.current()
    conditions.look(view)
    every = view.doctor_every.total_seconds()
    if every and metrics.is_due("doctor", every=every):
        check_up.apply_async(queue=CONTROL, expires=every)


@shared_task(name="reprocessing.check_up")
def check_up(**_future: object) -> None:
    """Have the doctor look at the service, and at the next DLQs."""
    now = lambda: datetime.now(UTC)  # noqa: E731, TID251  # a door: it is compared with other clocks, nothing else
    checkup.checkup(Patient(names=(), control=CONTROL, conf=conf.current(), rates=rates(), now=now))


@shared_task(name="reprocessing.publish")
def publish(**_future: object) -> None:
    """Tell CloudWatch the metrics."""
    view = conf.current()
    publishing.everything(
        configured_region() or "", view.cloudwatch, now=lanes.clock(), count_lag=view.count_lag.total_seconds()
    )


@shared_task(name="reprocessing.purge")
def purge(**_future: object) -> None:
    """Forget what is past its time."""
    purging.letters(conf=conf.current())


@cache
def watchdog() -> Watchdog:
    """This process's watchdog."""
    return Watchdog(CONTROL)


@cache
def marks() -> HighWater:
    """How far this process's database had come; safe over a fork."""
    return HighWater.at(settings.REDIS_URL)


@cache
def rates() -> Rates:
    """The rates of this process's targets; safe over a fork."""
    return Rates.at(settings.REDIS_URL)


def _owner() -> str:
    return f"{os.uname().nodename}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
