"""The Celery tasks. Beat sends the task `tick` every 2 s; `tick` enqueues the other tasks when it is time for them.

A lane is the queue of the messages with one ordering key. A hint is a task `replay_lanes` with ids of lanes.
`since`: when a poll or capture was enqueued, as ISO 8601 (see `schedule.begin_poll`).
"""

from __future__ import annotations

import logging
import os
import random
import time
import uuid
from datetime import UTC, datetime, timedelta

from celery import exceptions, shared_task
from django.db import connection

from reprocessing import conf
from reprocessing.domain.errors import PayloadUnreadable, QueueUnreachable
from reprocessing.gateways.aws.clients import configured_region
from reprocessing.gateways.redis.shared_clients import restore_watermark, send_rates
from reprocessing.models import DeadLetterQueue, Heartbeat
from reprocessing.pipeline import notifications
from reprocessing.pipeline.approvals import decide
from reprocessing.pipeline.aws import publish_metrics as publishing
from reprocessing.pipeline.dlqs import discover
from reprocessing.pipeline.maintenance import detect_restore
from reprocessing.pipeline.maintenance import purge as purging
from reprocessing.pipeline.maintenance import recover as recovery
from reprocessing.pipeline.maintenance.doctor import CheckContext
from reprocessing.pipeline.notifications import checkup, conditions
from reprocessing.pipeline.outcomes import resolve_outcomes as promotion
from reprocessing.pipeline.parking_lot import group_failures, run_bulk_actions
from reprocessing.pipeline.replay import replay_slice
from reprocessing.pipeline.routing import route
from reprocessing.pipeline.runs import feed_run, plan
from reprocessing.pipeline.safety import run_health_checks
from reprocessing.store.aws import metrics
from reprocessing.store.capture import capture_lease
from reprocessing.store.dlqs import discovery_scopes, schedule
from reprocessing.store.ordering import lanes
from reprocessing.store.outcomes import acknowledgements
from reprocessing.store.parking_lot import bulk_actions
from reprocessing.store.replay import task_hints
from reprocessing.store.routing import rules
from reprocessing.store.runs import enlistment_batches
from reprocessing.store.safety import health_checks
from reprocessing.watchdog import watch_processes
from reprocessing.worker_signals import connect_signals

logger = logging.getLogger(__name__)

CONTROL, CAPTURE, REPLAY = "redrive-control", "redrive-capture", "redrive-replay"

#: Max seconds of one capture task: two long polls of 20 s with three retries (the tasks' time limit is longer); max
#: batches of messages that it assigns to failure groups (`recover` assigns the rest).
CAPTURE_SLICE, GROUPING_BATCHES = 150.0, 20
#: Seconds between two runs of the task `recover`; seconds after which an enqueued poll expires (docs/adr/0064).
RECOVER_EVERY, POLL_LIFE = 10.0, 3600.0
#: Max bulk actions that one tick starts; max seconds of a task of one of them.
BULK_ACTIONS_A_TICK, BULK_ACTION_SLICE = 5, 10.0
#: Max DLQs that one tick polls; how many worker slots it enqueues hints for.
DLQS_A_TICK, SLOTS = 20, 8

dice = random.SystemRandom().random
watch_processes(CONTROL)
connect_signals()


@shared_task(name="reprocessing.tick")
def tick(**_future: object) -> None:
    """Detect a restore of PostgreSQL; enqueue the tasks for which it is time. Beat sends this task every 2 s."""
    detect_restore.count_tick(restore_watermark())
    Heartbeat.record(CONTROL)
    _enqueue_checks()  # before the other steps, so that people are notified if these fail
    now = lanes.database_now()
    if due := schedule.claim_due(now=now, limit=DLQS_A_TICK):
        poll_dlqs.apply_async((due,), kwargs={"since": now.isoformat()}, queue=CAPTURE, expires=POLL_LIFE)
    if rules.raise_version_if_due(now):
        reroute_letters.apply_async(queue=CONTROL)
    _hint()
    for action in bulk_actions.lease_due(limit=BULK_ACTIONS_A_TICK):
        run_bulk_action.apply_async((action,), queue=CONTROL, expires=bulk_actions.LEASE_SECONDS)
    if health_checks.are_due():
        check_targets.apply_async(queue=CONTROL, expires=10)
    _promote()
    if conf.current().cloudwatch and metrics.claim_if_due("publish", every=publishing.PUBLISH_EVERY):
        publish_to_cloudwatch.apply_async(queue=CONTROL, expires=publishing.PUBLISH_EVERY)


def _enqueue_checks() -> None:
    if notifications.is_due(conf.current()):
        send_notifications.apply_async(queue=CONTROL, expires=10)
    if task_hints.claim_if_due("sweep", every=RECOVER_EVERY):
        recover.apply_async(queue=CONTROL, expires=RECOVER_EVERY)
        check_conditions.apply_async(queue=CONTROL, expires=RECOVER_EVERY)
        if enlistment_batches.unenlisted_runs(limit=1):
            enlist_letters.apply_async(queue=CONTROL, expires=RECOVER_EVERY)
        if task_hints.claim_if_due("purge", every=purging.PURGE_EVERY):
            delete_expired.apply_async(queue=CONTROL, expires=purging.PURGE_EVERY)


def _promote() -> None:
    if acknowledgements.has_open_outcomes():
        resolve_outcomes.apply_async(queue=CONTROL, expires=10)


def _hint() -> None:
    """Enqueue hints (replay tasks with ids of lanes that can be sent). A lost or repeated hint is harmless."""
    view = conf.current()
    most = view.hints_per_slot * SLOTS * view.lanes_per_task
    life = view.hint_life.total_seconds()
    hints = task_hints.next_hint_round(most=most, least_life=life, most_life=view.hint_life_cap.total_seconds())
    if hints.width:
        due = lanes.hint(limit=hints.width, lifetime=hints.lifetime)
        for first in range(0, len(due), view.lanes_per_task):
            replay_lanes.apply_async((due[first : first + view.lanes_per_task],), queue=REPLAY)


@shared_task(name="reprocessing.poll_dlqs")
def poll_dlqs(dlq_ids: list[int], *, since: str | None = None, **_future: object) -> None:
    """Record the message counts of these DLQs, and enqueue captures. After 75 s, a new task continues."""
    ids, until = sorted(dlq_ids), time.monotonic() + CAPTURE_SLICE / 2
    for number, dlq_id in enumerate(ids):
        if number and time.monotonic() > until:
            poll_dlqs.apply_async((ids[number:],), kwargs={"since": since}, queue=CAPTURE, expires=POLL_LIFE)
            return
        if dlq := schedule.find_dlq(dlq_id):  # read just before its poll, because another task may have polled it
            _poll(dlq, since)


def _poll(dlq: DeadLetterQueue, since: str | None) -> None:
    """Record the message counts of one DLQ, and enqueue a capture if the DLQ needs one.

    A failure becomes the DLQ's error text, and the polls of other DLQs go on, unless PostgreSQL is down.
    """
    try:
        if (poll := schedule.begin_poll(dlq, now=(now := lanes.database_now()), since=since)) is None:
            return
        if feed_run.record_depth(dlq):
            capture.apply_async((dlq.pk,), kwargs={"since": now.isoformat()}, queue=CAPTURE)
        else:
            schedule.end_poll(poll)
    except QueueUnreachable as error:
        capture_lease.note_error(dlq.pk, str(error))
        logger.warning("%s", error, extra={"dlq": dlq.name})
    except Exception as error:
        if isinstance(error, exceptions.SoftTimeLimitExceeded) or not connection.is_usable():
            raise  # the time is up, or PostgreSQL is down: no DLQ can be polled
        capture_lease.note_error(dlq.pk, capture_lease.unexpected_error(error))
        logger.exception("%s could not be polled.", dlq.name, extra={"dlq": dlq.name})


@shared_task(name="reprocessing.capture")
def capture(dlq_id: int, *, since: str | None = None, **_future: object) -> None:
    """Capture one DLQ for at most 150 s; if messages are left, enqueue another task.

    If the DLQ may not be captured now, such as in mode observe, the task only records its message counts.
    """
    dlq = schedule.find_dlq(dlq_id)
    if dlq is None or (poll := schedule.begin_poll(dlq, now=lanes.database_now(), since=since)) is None:
        return
    try:
        if not feed_run.is_wanted(dlq):
            feed_run.record_depth(dlq)
            schedule.end_poll(poll)
            return
        poll = schedule.extend_poll(poll, until=lanes.database_now() + timedelta(seconds=CAPTURE_SLICE))
        gathered = feed_run.poll_dlq(dlq, conf=conf.current(), dice=dice, seconds=CAPTURE_SLICE)
    except (QueueUnreachable, PayloadUnreadable) as error:
        capture_lease.note_error(dlq.pk, str(error))
        logger.warning("%s", error, extra={"dlq": dlq.name})
        return
    if gathered.captured.drained:
        _promote()  # sent messages that are not in the empty DLQ may have been delivered
    if gathered.enlisted and gathered.enlisted.letters:
        _hint()  # the next tick would be up to 2 s later
    _continue(dlq, poll, gathered)
    if not gathered.skipped and not (gathered.enlisted and gathered.enlisted.letters):  # letters to send need no group
        group_failures.assign_groups(batches=GROUPING_BATCHES)


def _continue(dlq: DeadLetterQueue, poll: schedule.OpenPoll, gathered: feed_run.PollResult) -> None:
    """Enqueue another capture if messages are left; else end the poll of the DLQ.

    If messages were captured, and the DLQ has the setting `at_once`, the DLQ is polled again now.
    """
    captured = gathered.captured
    more = captured.received and not captured.drained and not captured.error and not captured.busy
    if more or (gathered.enlisted and gathered.enlisted.left):
        schedule.extend_poll(poll, until=(now := lanes.database_now()))
        capture.apply_async((dlq.pk,), kwargs={"since": now.isoformat()}, queue=CAPTURE)
    elif captured.letters and dlq.at_once:
        schedule.poll_now(dlq)
    elif captured.drained or gathered.skipped:
        schedule.end_poll(poll)


@shared_task(name="reprocessing.replay_lanes")
def replay_lanes(lane_ids: list[int], **_future: object) -> None:
    """Send the messages of these lanes, each lane in order, then those of other lanes that wait for a worker.

    The task ends after the setting SLICE (5 s), and enqueues a task for lanes that still wait for a worker.
    """
    if not detect_restore.is_database_current(restore_watermark()):
        return  # the hint is older than the restore
    view = conf.current()
    strictly, owner = view.lanes_per_task == 1, f"{os.uname().nodename}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
    replay = replay_slice.Slice(owner=owner, conf=view, rates=send_rates(), dice=dice, only=lane_ids, strictly=strictly)
    if left := replay.run(seconds=view.slice.total_seconds()).left:
        replay_lanes.apply_async((left,), queue=REPLAY)
    elif strictly:  # with one lane per task, the next lanes need new tasks
        _hint()


@shared_task(name="reprocessing.check_targets")
def check_targets(**_future: object) -> None:
    """Run the due health checks of targets to which messages wait to be sent."""
    run_health_checks.run_due(conf=conf.current())


@shared_task(name="reprocessing.send_notifications")
def send_notifications(**_future: object) -> None:
    """Start a thread that sends notifications, so that a slow destination blocks no task."""
    notifications.start_delivery(conf.current())


@shared_task(name="reprocessing.reroute_letters")
def reroute_letters(**_future: object) -> None:
    """Apply the current rules to held and delayed messages again, because the time of a rule has begun or ended."""
    route.refresh_rules(lanes.database_now())


@shared_task(name="reprocessing.run_bulk_action")
def run_bulk_action(operation_id: int, **_future: object) -> None:
    """Work on a bulk action for at most 10 s, and enqueue a task for the remaining messages."""
    if run_bulk_actions.run_bulk_action(operation_id, seconds=BULK_ACTION_SLICE):
        run_bulk_action.apply_async((operation_id,), queue=CONTROL)


@shared_task(name="reprocessing.enlist_letters")
def enlist_letters(**_future: object) -> None:
    """For about 10 s, put messages of started runs onto their lanes, if they are not there yet."""
    plan.enlist_started_plans(stop=plan.after_seconds(RECOVER_EVERY))


@shared_task(name="reprocessing.resolve_outcomes")
def resolve_outcomes(**_future: object) -> None:
    """Find out the outcomes of sent messages, and enqueue hints for lanes that can continue."""
    if promotion.resolve_letters(conf=conf.current(), dice=dice):
        _hint()


@shared_task(name="reprocessing.recover")
def recover(**_future: object) -> None:
    """Do what killed workers and failed calls to AWS left undone; end requests for approval that have expired."""
    try:
        decide.end_expired()
    finally:
        recovery.sweep_alone(conf=conf.current(), ended_by=(exceptions.SoftTimeLimitExceeded,))


@shared_task(name="reprocessing.check_conditions")
def check_conditions(**_future: object) -> None:
    """Enqueue `run_doctor` and `discover_dlqs` in time; open and end incidents, such as old parked messages."""
    view = conf.current()
    if (every := view.doctor_every.total_seconds()) and metrics.claim_if_due("doctor", every=every):
        run_doctor.apply_async(queue=CONTROL, expires=every)
    if view.discover_every and discovery_scopes.due_scopes() and metrics.claim_if_due("discover", every=CAPTURE_SLICE):
        discover_dlqs.apply_async(queue=CAPTURE, expires=CAPTURE_SLICE)
    conditions.check_conditions(view)


@shared_task(name="reprocessing.discover_dlqs")
def discover_dlqs(**_future: object) -> None:
    """Scan accounts and regions for DLQs when it is time, for at most 75 s. Enqueue a task for the others."""
    if not discover.scan_due_scopes(conf.current(), dice=dice, seconds=CAPTURE_SLICE / 2):
        discover_dlqs.apply_async(queue=CAPTURE)


@shared_task(name="reprocessing.run_doctor")
def run_doctor(**_future: object) -> None:
    """Run the checks of redrive_doctor for the service and for up to five DLQs. The next run checks the next DLQs."""
    now = lambda: datetime.now(UTC)  # noqa: E731, TID251  # only compared with other clocks
    limits = (exceptions.SoftTimeLimitExceeded,)
    checkup.checkup(CheckContext(control=CONTROL, conf=conf.current(), rates=send_rates(), now=now, ended_by=limits))


@shared_task(name="reprocessing.publish_to_cloudwatch")
def publish_to_cloudwatch(**_future: object) -> None:
    """Publish the service's metrics to CloudWatch, in the namespace of the setting CLOUDWATCH."""
    view, region = conf.current(), configured_region() or ""
    publishing.publish_all(region, view.cloudwatch, now=lanes.database_now(), count_lag=view.count_lag.total_seconds())


@shared_task(name="reprocessing.delete_expired")
def delete_expired(**_future: object) -> None:
    """Delete finished messages, with their attempts, that are older than the setting HISTORY (90 days)."""
    purging.purge_expired(conf=conf.current())
