"""Poll a DLQ: capture it, place its letters, and enlist them in a run once the DLQ has run dry."""

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
from reprocessing.domain.errors import NativeRedriveConflict, QueueUnreachable
from reprocessing.gateways.sqs import QueueAddress, depth, extend
from reprocessing.models import Attempt, DeadLetterQueue, Letter, Run
from reprocessing.models.attempt import AWAITS_OUTCOME
from reprocessing.models.dlq import Mode
from reprocessing.models.run import RunKind, RunState
from reprocessing.pipeline.aws import native_redrive, record_turn_metrics
from reprocessing.pipeline.capture import capture
from reprocessing.pipeline.capture.capture import Captured
from reprocessing.pipeline.runs import plan
from reprocessing.pipeline.runs.plan import EnlistResult
from reprocessing.store.capture import capture_lease, moved_by_aws
from reprocessing.store.maintenance import restore_hold
from reprocessing.store.ordering import lanes
from reprocessing.store.runs import plans
from reprocessing.store.safety import waves

logger = logging.getLogger(__name__)

_PER_RECEIVER = 100  #: one more receiver for this many visible messages
_AT_LEAST = 10.0  #: shortest time for enlisting in seconds, even if the capture took all the time
_LONGEST = 43_200.0  #: most seconds for which SQS hides a message
_ASKED_FOR = 500  #: most copies that SQS is asked about in one poll


@dataclass(slots=True)
class TurnResult:
    """The result of one poll. `skipped`: there was no capture, since the DLQ was empty and nothing waits for one."""

    captured: Captured = field(default_factory=Captured)
    enlisted: EnlistResult | None = None
    skipped: bool = False


def take_turn(
    dlq: DeadLetterQueue, *, conf: Conf, dice: Callable[[], float], seconds: float,
    stop: Callable[[], bool] = lambda: False,
) -> TurnResult:  # fmt: skip
    """Poll a DLQ once. That costs one SQS call if the DLQ is empty and nothing waits for a capture.

    The capture takes at most `seconds`. Enlisting gets the rest of this time; the next poll continues it.

    Raises:
        QueueUnreachable: the DLQ's depth could not be read.
    """
    with record_turn_metrics.counted_turn(CAPTURES, CAPTURE_ERRORS, dlq.pk) as counted:
        gathered = _letters(dlq, conf, dice, seconds, stop)
        counted.failed = bool(gathered.captured.trouble)
        counted.idle = gathered.skipped or gathered.captured.busy
    return gathered


def _letters(
    dlq: DeadLetterQueue, conf: Conf, dice: Callable[[], float], seconds: float, stop: Callable[[], bool]
) -> TurnResult:
    ends = time.monotonic() + seconds
    visible = _note_depth(dlq)
    if visible == 0 and not _is_waited_for(dlq):
        return TurnResult(skipped=True)
    if native_redrive.is_moved_by_aws(dlq):
        return TurnResult(Captured(busy=True))
    gathered = TurnResult(
        capture.letters(
            dlq, conf=conf, dice=dice, seconds=seconds, stop=stop, receivers=receiver_count(visible, conf),
            alone=lambda: is_ours_alone(dlq, conf),
        )
    )  # fmt: skip
    if not gathered.captured.busy:
        plan.place_captured(dlq)
        if gathered.captured.drained:
            plan.select_waiting_plans(dlq, through=gathered.captured.newest_letter)
        if dlq.mode == Mode.AUTOMATIC and gathered.captured.drained:
            until = max(ends, time.monotonic() + _AT_LEAST)
            gathered.enlisted = _enlist(dlq, gathered.captured.newest_letter, until, stop)
    return gathered


def _enlist(dlq: DeadLetterQueue, through: int, until: float, stop: Callable[[], bool]) -> EnlistResult | None:
    with suppress(NativeRedriveConflict):  # the DLQ was handed to AWS a moment ago
        run = standing_run(dlq)
        return plan.enlist(dlq, run, through=through, stop=lambda: stop() or time.monotonic() >= until)
    return None


def is_wanted(dlq: DeadLetterQueue) -> bool:
    """Return whether beat may receive from this DLQ: in mode automatic, or when something waits for a capture."""
    if dlq.mode == Mode.OBSERVE:
        return False
    if dlq.stopped_at is not None:
        return _is_looked_into(dlq)
    return dlq.mode == Mode.AUTOMATIC or _is_waited_for(dlq)


def record_depth(dlq: DeadLetterQueue) -> bool:
    """Record the DLQ's depth; return whether beat must capture the DLQ.

    Raises:
        QueueUnreachable: the depth could not be read.
    """
    visible = _note_depth(dlq)
    return is_wanted(dlq) and (visible > 0 or _is_waited_for(dlq))


def _note_depth(dlq: DeadLetterQueue) -> int:
    found = depth(QueueAddress(url=dlq.url, region=dlq.region, role=dlq.role_arn))
    capture_lease.note_depth(dlq.pk, visible=found.visible, in_flight=found.in_flight)
    return found.visible


def receiver_count(visible: int, conf: Conf) -> int:
    """Return the number of receivers for so many visible messages."""
    return max(1, min(conf.receivers, math.ceil(visible / _PER_RECEIVER)))


def is_ours_alone(dlq: DeadLetterQueue, conf: Conf) -> bool:
    """Return whether no other reader hides messages of the DLQ, such as a returned letter.

    The caller must hold the DLQ's capture lease, so that no other capture of this service hides copies. Return False
    if SQS does not answer.
    """
    address = QueueAddress(url=dlq.url, region=dlq.region, role=dlq.role_arn)
    try:
        return _can_be_ours(dlq, address, conf) or (
            _hides_more(dlq, address, conf) and _can_be_ours(dlq, address, conf)
        )
    except QueueUnreachable as error:
        logger.warning(
            "%s: whether another reads it is not known, so nothing counts as drained: %s",
            dlq.name, error, extra={"dlq": dlq.name},
        )  # fmt: skip
        return False


def _can_be_ours(dlq: DeadLetterQueue, address: QueueAddress, conf: Conf) -> bool:
    in_flight = depth(address).in_flight  # read before this service's copies are counted
    return in_flight == 0 or in_flight <= capture_lease.count_invisible(
        dlq.pk, count_lag=conf.count_lag.total_seconds()
    )


def _hides_more(dlq: DeadLetterQueue, address: QueueAddress, conf: Conf) -> bool:
    """Return whether SQS hides this service's copies for longer than is recorded, and record the new time.

    A worker may have extended copies, and died before it recorded that. SQS extends only copies that are hidden.
    """
    perhaps = capture_lease.copies_to_extend(dlq.pk, within=0.0, since=_LONGEST, limit=_ASKED_FOR)
    if not perhaps:
        return False
    until = lanes.database_now() + timedelta(seconds=conf.receive_visibility)  # before SQS is asked
    hidden = extend(address, {copy.message_id: copy.handle for copy in perhaps}, conf.receive_visibility).held
    capture_lease.mark_extended(dlq.pk, [copy for copy in perhaps if copy.message_id in hidden], until=until)
    return bool(hidden)


def standing_run(dlq: DeadLetterQueue) -> Run:
    """Return the DLQ's standing run, with waves or without them as the DLQ's settings say now."""
    with transaction.atomic():
        run, _ = Run.objects.get_or_create(
            dlq=dlq, kind=RunKind.STANDING,
            defaults={
                "name": f"standing:{dlq.pk}",  # no id that a person can give a run
                "state": RunState.RUNNING, "asked_by": "beat", "started_at": lanes.database_now(),
            },
        )  # fmt: skip
        if Run.objects.filter(pk=run.pk).exclude(waves=dlq.waves).update(waves=dlq.waves):
            run.waves = dlq.waves
            waves.begin(run.pk)
    return run


def _is_waited_for(dlq: DeadLetterQueue) -> bool:
    """Return whether sent letters need a capture as evidence, or captured letters wait until the DLQ has run dry."""
    if _is_looked_into(dlq) or Attempt.objects.filter(AWAITS_OUTCOME, target__watched_by=dlq).exists():
        return True
    if dlq.mode != Mode.AUTOMATIC:
        return False
    captured = Letter.objects.filter(dlq=dlq, state="captured", run=None)
    ended = (RunState.FINISHED, RunState.ABORTED)
    back = Letter.objects.filter(run__dlq=dlq, run__state__in=ended, state__in=("waiting", "sending", "awaiting"))
    return captured.exists() or back.exists()


def _is_looked_into(dlq: DeadLetterQueue) -> bool:
    """Return whether the DLQ is captured even if it is stopped: after a restore, for a plan, or after AWS's redrive."""
    if restore_hold.current_hold() is not None or moved_by_aws.letters_wait_for_capture(dlq.pk):
        return True
    waiting = plans.unselected_plans(dlq.pk)
    return any(dlq.drained_through is None or dlq.drained_through < run.created_at for run in waiting)
