"""Feed a dlq's run: capture what the dlq holds, give it places, and enlist it when the dlq has run dry."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import transaction

from reprocessing.conf import Conf
from reprocessing.domain.aws.metric_names import CAPTURE_ERRORS, CAPTURES
from reprocessing.domain.errors import AwsMovesTheMessages, QueueIsOutOfReach
from reprocessing.gateways.sqs import QueueAddress, depth, extend
from reprocessing.models import Attempt, DeadLetter, DeadLetterQueue, Run
from reprocessing.models.attempt import OUTCOME_IS_OPEN
from reprocessing.models.dlq import Mode
from reprocessing.models.run import RunKind, RunState
from reprocessing.pipeline.aws import count_turn, native_redrive
from reprocessing.pipeline.capture import capture
from reprocessing.pipeline.capture.capture import Captured
from reprocessing.pipeline.runs import plan
from reprocessing.pipeline.runs.plan import Fed
from reprocessing.store.capture import capture_lease, moved_by_aws
from reprocessing.store.maintenance import restore_hold
from reprocessing.store.ordering import lanes
from reprocessing.store.runs import plans
from reprocessing.store.safety import waves

logger = logging.getLogger(__name__)

#: Visible messages for each receiver at work.
_PER_RECEIVER = 100
#: Seconds that a turn whose capture took all of its time has for enlisting.
_AT_LEAST = 10.0
#: Seconds for which SQS hides a message at most, and copies that it is asked about in one turn.
_LONGEST, _ASKED_FOR = 43_200.0, 500


@dataclass(slots=True)
class Gathered:
    """What one turn at a dlq did. `skipped`: it held nothing, and nobody waits for what a capture would prove."""

    captured: Captured = field(default_factory=Captured)
    enlisted: Fed | None = None
    skipped: bool = False


def letters(
    dlq: DeadLetterQueue, *, conf: Conf, dice: Callable[[], float], seconds: float,
    stop: Callable[[], bool] = lambda: False,
) -> Gathered:  # fmt: skip
    """Take one turn at a dlq: one attribute call when it is empty and proves nothing to anybody.

    `seconds` are the capture's, and what it leaves of them is for enlisting: what does not come onto its lanes in that
    time, the next turn sees to.

    Raises:
        QueueIsOutOfReach: its depth could not be read.
    """
    with count_turn.turn(CAPTURES, CAPTURE_ERRORS, dlq.pk) as counted:
        gathered = _letters(dlq, conf, dice, seconds, stop)
        counted.failed = bool(gathered.captured.trouble)
        counted.idle = gathered.skipped or gathered.captured.busy
    return gathered


def _letters(
    dlq: DeadLetterQueue, conf: Conf, dice: Callable[[], float], seconds: float, stop: Callable[[], bool]
) -> Gathered:
    ends = time.monotonic() + seconds
    found = depth(QueueAddress(url=dlq.url, region=dlq.region, role=dlq.role_arn))
    capture_lease.note_depth(dlq.pk, visible=found.visible, in_flight=found.in_flight)
    if found.visible == 0 and not _is_waited_for(dlq):
        return Gathered(skipped=True)
    if native_redrive.is_aws_s(dlq):
        return Gathered(Captured(busy=True))
    gathered = Gathered(
        capture.letters(
            dlq, conf=conf, dice=dice, seconds=seconds, stop=stop, receivers=receivers(found.visible, conf),
            alone=lambda: is_ours_alone(dlq, conf),
        )
    )  # fmt: skip
    if not gathered.captured.busy:
        plan.places(dlq)
        if gathered.captured.drained:
            plan.choose(dlq, through=gathered.captured.through)
        if dlq.mode == Mode.AUTOMATIC and gathered.captured.drained:
            gathered.enlisted = _enlist(
                dlq, gathered.captured.through, max(ends, time.monotonic() + _AT_LEAST), stop
            )  # fmt: skip
    return gathered


def _enlist(dlq: DeadLetterQueue, through: int, until: float, stop: Callable[[], bool]) -> Fed | None:
    with suppress(AwsMovesTheMessages):  # it was handed over a moment ago
        run = standing_run(dlq)
        return plan.enlist(dlq, run, through=through, stop=lambda: stop() or time.monotonic() >= until)
    return None


def is_wanted(dlq: DeadLetterQueue) -> bool:
    """Whether beat may receive from this dlq: it is automatic, or somebody waits for what a capture of it brings."""
    if dlq.mode == Mode.OBSERVE:
        return False
    if dlq.stopped_at is not None:
        return (
            restore_hold.standing() is not None or _plan_waits(dlq) or moved_by_aws.are_sought(dlq.pk)
        )  # to look sends nothing
    return dlq.mode == Mode.AUTOMATIC or _is_waited_for(dlq)


def look(dlq: DeadLetterQueue) -> bool:
    """Note how many messages the dlq is said to hold; whether beat is to capture it: it may, and that brings something.

    Raises:
        QueueIsOutOfReach: its depth could not be read.
    """
    found = depth(QueueAddress(url=dlq.url, region=dlq.region, role=dlq.role_arn))
    capture_lease.note_depth(dlq.pk, visible=found.visible, in_flight=found.in_flight)
    return is_wanted(dlq) and (found.visible > 0 or _is_waited_for(dlq))


def receivers(visible: int, conf: Conf) -> int:
    """How many receivers a dlq with so many visible messages deserves."""
    return max(1, min(conf.receivers, math.ceil(visible / _PER_RECEIVER)))


def is_ours_alone(dlq: DeadLetterQueue, conf: Conf) -> bool:
    """Whether all that is in flight in the dlq can be ours: another reader may be hiding a letter that came back.

    To be asked under the dlq's lease: what another capture hides after SQS counted would excuse that. False, too, when
    SQS does not answer.
    """
    address = QueueAddress(url=dlq.url, region=dlq.region, role=dlq.role_arn)
    try:
        return _can_be_ours(dlq, address, conf) or (
            _hides_more(dlq, address, conf) and _can_be_ours(dlq, address, conf)
        )
    except QueueIsOutOfReach as error:
        logger.warning("%s: whether another reads it is not known, so nothing counts as drained: %s", dlq.name, error)
        return False


def _can_be_ours(dlq: DeadLetterQueue, address: QueueAddress, conf: Conf) -> bool:
    in_flight = depth(address).in_flight  # first: what is ours by then was so when SQS counted
    return in_flight == 0 or in_flight <= capture_lease.out_of_sight(dlq.pk, count_lag=conf.count_lag.total_seconds())


def _hides_more(dlq: DeadLetterQueue, address: QueueAddress, conf: Conf) -> bool:
    """Whether SQS hides copies of ours for longer than is known; for how long from now on is known then.

    Whoever extended them did not live to note it, or heard no answer. It is a copy's handle that tells: SQS extends
    none that is in sight, or gone.
    """
    perhaps = capture_lease.to_extend(dlq.pk, within=0.0, since=_LONGEST, limit=_ASKED_FOR)
    if not perhaps:
        return False
    until = lanes.clock() + timedelta(seconds=conf.receive_visibility)  # what is noted late counts from here
    hidden = extend(address, {copy.message_id: copy.handle for copy in perhaps}, conf.receive_visibility).held
    capture_lease.extended(dlq.pk, [copy for copy in perhaps if copy.message_id in hidden], until=until)
    return bool(hidden)


def standing_run(dlq: DeadLetterQueue) -> Run:
    """The run that beat feeds with whatever the dlq holds; it goes in waves as its dlq says now."""
    with transaction.atomic():
        run, _ = Run.objects.get_or_create(
            dlq=dlq,
            kind=RunKind.STANDING,
            defaults={
                "name": f"standing:{dlq.pk}",  # no id that a person can give a run
                "state": RunState.RUNNING,
                "asked_by": "beat",
                "started_at": lanes.clock(),
            },
        )
        if Run.objects.filter(pk=run.pk).exclude(waves=dlq.waves).update(waves=dlq.waves):
            run.waves = dlq.waves
            waves.begin(run.pk)
    return run


def _is_waited_for(dlq: DeadLetterQueue) -> bool:
    """Whether letters await its evidence, or wait for it to be known as drained: a plan's, or the standing run's."""
    if restore_hold.standing() is not None:
        return True
    if _plan_waits(dlq) or moved_by_aws.are_sought(dlq.pk):
        return True
    if Attempt.objects.filter(OUTCOME_IS_OPEN, target__watched_by=dlq).exists():
        return True
    if dlq.mode != Mode.AUTOMATIC:
        return False
    captured = DeadLetter.objects.filter(dlq=dlq, state="captured", run=None)
    ended = (RunState.FINISHED, RunState.ABORTED)
    back = DeadLetter.objects.filter(run__dlq=dlq, run__state__in=ended, state__in=("waiting", "sending", "awaiting"))
    return captured.exists() or back.exists()


def _plan_waits(dlq: DeadLetterQueue) -> bool:
    """Whether somebody plans a run, and the dlq has not been looked into since."""
    return any(dlq.drained_through is None or dlq.drained_through < run.created_at for run in plans.unselected(dlq.pk))
