"""Poll a DLQ: capture it, place its letters in lanes, and give them to a run when the DLQ has run dry."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import transaction

from reprocessing.conf import Conf
from reprocessing.domain.aws.metric_names import CAPTURE_ERRORS, CAPTURES
from reprocessing.domain.errors import NativeRedriveConflict, PayloadUnreadable, QueueUnreachable
from reprocessing.gateways.sqs import QueueAddress, depth, extend
from reprocessing.models import Attempt, DeadLetterQueue, Letter, Run
from reprocessing.models.attempt import AWAITS_OUTCOME
from reprocessing.models.dlq import Mode
from reprocessing.models.run import RunKind, RunState
from reprocessing.pipeline.aws import follow_redrives, record_metrics
from reprocessing.pipeline.capture import capture
from reprocessing.pipeline.capture.capture import Captured
from reprocessing.pipeline.runs import plan
from reprocessing.pipeline.runs.plan import EnlistResult
from reprocessing.store.capture import capture_lease, moved_by_aws
from reprocessing.store.maintenance import restore_hold
from reprocessing.store.ordering import lanes
from reprocessing.store.runs import leftover_lanes, plans
from reprocessing.store.safety import waves

logger = logging.getLogger(__name__)

_PER_RECEIVER = 100  #: one receiver thread is used for so many visible messages
_AT_LEAST = 10.0  #: shortest time (s) for enlisting, even if the capture took all the time
_LONGEST = 43_200.0  #: most seconds for which SQS hides a message
_ASKED_FOR = 500  #: most copies whose visibility timeout one check changes


@dataclass(slots=True)
class PollResult:
    """The result of one poll of a DLQ.

    `skipped`: True: there was no capture, since the DLQ was empty and nothing else needed a capture. `enlisted`: how
    many letters the automatic run took; None: there was nothing to take.
    """

    captured: Captured = field(default_factory=Captured)
    enlisted: EnlistResult | None = None
    skipped: bool = False


def poll_dlq(
    dlq: DeadLetterQueue, *, conf: Conf, dice: Callable[[], float], seconds: float,
    stop: Callable[[], bool] = lambda: False,
) -> PollResult:  # fmt: skip
    """Poll a DLQ once. If the DLQ is empty and nothing needs a capture, this costs only one SQS call.

    The capture takes at most `seconds`. Then letters are enlisted (put onto lanes for a run), in the rest of this time,
    but for at least 10 s; the next poll enlists letters that are left. `dice`: returns random numbers for backoffs.
    `stop`: returns whether to end early.

    Raises:
        QueueUnreachable: the DLQ's depth could not be read.
        PayloadKeyUnavailable: new messages cannot be encrypted. Nothing was received.
    """
    with _errors_noted(dlq), record_metrics.measured_work(CAPTURES, CAPTURE_ERRORS, dlq.pk) as counted:
        gathered = _letters(dlq, conf, dice, seconds, stop)
        counted.failed = bool(gathered.captured.error)
        counted.idle = gathered.skipped or gathered.captured.busy
    return gathered


@contextmanager
def _errors_noted(dlq: DeadLetterQueue) -> Iterator[None]:
    """Record the type of an unexpected exception as the DLQ's error text. The callers record the other exceptions."""
    try:
        yield
    except (QueueUnreachable, PayloadUnreadable):
        raise
    except Exception as error:
        capture_lease.note_error(dlq.pk, capture_lease.unexpected_error(error))
        raise


def _letters(
    dlq: DeadLetterQueue, conf: Conf, dice: Callable[[], float], seconds: float, stop: Callable[[], bool]
) -> PollResult:
    ends = time.monotonic() + seconds
    visible = _note_depth(dlq)
    if visible == 0 and not _is_waited_for(dlq):
        return PollResult(skipped=True)
    if follow_redrives.is_moved_by_aws(dlq):
        return PollResult(Captured(busy=True))
    gathered = PollResult(
        capture.letters(
            dlq, conf=conf, dice=dice, seconds=seconds, stop=stop, receivers=receiver_count(visible, conf),
            alone=lambda: is_ours_alone(dlq, conf),
        )
    )  # fmt: skip
    if not gathered.captured.busy:
        until = max(ends, time.monotonic() + _AT_LEAST)
        placed = plan.place_captured(dlq, stop=lambda: stop() or time.monotonic() >= until)
        if gathered.captured.drained:
            plan.select_waiting_plans(dlq, through=gathered.captured.newest_letter)
        if dlq.mode == Mode.AUTOMATIC and gathered.captured.drained:
            until = max(ends, time.monotonic() + _AT_LEAST)
            gathered.enlisted = _enlist(dlq, gathered.captured.newest_letter, until, stop)
        if placed.error:
            capture_lease.note_error(dlq.pk, placed.error)
            logger.warning("%s", placed.error, extra={"dlq": dlq.name})
    return gathered


def _enlist(dlq: DeadLetterQueue, through: int, until: float, stop: Callable[[], bool]) -> EnlistResult | None:
    with suppress(NativeRedriveConflict):  # the DLQ was handed to AWS a moment ago
        run = automatic_run(dlq)
        return plan.enlist(dlq, run, through=through, stop=lambda: stop() or time.monotonic() >= until)
    return None


def is_wanted(dlq: DeadLetterQueue) -> bool:
    """Return whether beat may receive from this DLQ: it is in mode automatic, or something needs a capture.

    If the DLQ is stopped, only three things need a capture: a restore of PostgreSQL, a plan, and AWS's own redrive.
    """
    if dlq.mode == Mode.OBSERVE:
        return False
    if dlq.stopped_at is not None:
        return _is_looked_into(dlq)
    return dlq.mode == Mode.AUTOMATIC or _is_waited_for(dlq)


def record_depth(dlq: DeadLetterQueue) -> bool:
    """Record SQS's message counts of the DLQ (its depth); return whether beat must capture the DLQ.

    Raises:
        QueueUnreachable: the depth could not be read.
    """
    with _errors_noted(dlq):
        visible = _note_depth(dlq)
        return is_wanted(dlq) and (visible > 0 or _is_waited_for(dlq))


def _note_depth(dlq: DeadLetterQueue) -> int:
    found = depth(QueueAddress(url=dlq.url, region=dlq.region, role=dlq.role_arn))
    capture_lease.note_depth(dlq.pk, visible=found.visible, in_flight=found.in_flight)
    return found.visible


def receiver_count(visible: int, conf: Conf) -> int:
    """Return how many receiver threads to use for so many visible messages: one per 100, at most `conf.receivers`."""
    return max(1, min(conf.receivers, math.ceil(visible / _PER_RECEIVER)))


def is_ours_alone(dlq: DeadLetterQueue, conf: Conf) -> bool:
    """Return whether no other reader hides messages of the DLQ: a hidden message may be a sent letter that came back.

    Return False if SQS does not answer. The caller must have the DLQ's capture lease, so that no other capture of this
    service hides messages.
    """
    address = QueueAddress(url=dlq.url, region=dlq.region, role=dlq.role_arn)
    try:
        if _can_be_ours(dlq, address, conf) or (_hides_more(dlq, address, conf) and _can_be_ours(dlq, address, conf)):
            return True
        why = "another reader, or a killed worker, hides messages of it"
    except QueueUnreachable as error:
        why = f"whether another reads it is not known: {error}"
    logger.warning("%s: nothing counts as drained, because %s", dlq.name, why, extra={"dlq": dlq.name})
    return False


def _can_be_ours(dlq: DeadLetterQueue, address: QueueAddress, conf: Conf) -> bool:
    in_flight = depth(address).in_flight  # asked for before this service counts the copies that it hides
    return in_flight == 0 or in_flight <= capture_lease.count_invisible(
        dlq.pk, count_lag=conf.count_lag.total_seconds()
    )


def _hides_more(dlq: DeadLetterQueue, address: QueueAddress, conf: Conf) -> bool:
    """Extend the visibility timeout of copies (letters' messages in the DLQ); return whether SQS has extended any.

    SQS extends only copies that are hidden. PostgreSQL did not know that these copies are hidden, because a killed
    worker received them. Their new timeout is recorded.
    """
    perhaps = capture_lease.copies_to_extend(dlq.pk, within=0.0, since=_LONGEST, limit=_ASKED_FOR)
    if not perhaps:
        return False
    until = lanes.database_now() + timedelta(seconds=conf.receive_visibility)  # SQS will hide them until then, or later
    hidden = extend(address, {copy.message_id: copy.handle for copy in perhaps}, conf.receive_visibility).held
    capture_lease.mark_extended(dlq.pk, [copy for copy in perhaps if copy.message_id in hidden], until=until)
    return bool(hidden)


def automatic_run(dlq: DeadLetterQueue) -> Run:
    """Return the DLQ's automatic run, which takes all new messages and does not end.

    If there is none, create it. Whether it has waves depends on the DLQ's settings.
    """
    with transaction.atomic():
        run, _ = Run.objects.get_or_create(
            dlq=dlq, kind=RunKind.AUTOMATIC,
            defaults={
                "name": f"automatic:{dlq.pk}",  # people cannot give a run such a name
                "state": RunState.RUNNING, "asked_by": "beat", "started_at": lanes.database_now(),
            },
        )  # fmt: skip
        if Run.objects.filter(pk=run.pk).exclude(waves=dlq.waves).update(waves=dlq.waves):
            run.waves = dlq.waves
            waves.begin(run.pk)
    return run


def _is_waited_for(dlq: DeadLetterQueue) -> bool:
    """Return whether something needs a capture.

    A capture is needed for the outcomes of sent letters, and before captured letters are enlisted (given to a run).
    A paused automatic run gets such letters after somebody has resumed it, so until then they need no capture.
    """
    if _is_looked_into(dlq) or Attempt.objects.filter(AWAITS_OUTCOME, target__watched_by=dlq).exists():
        return True
    if dlq.mode != Mode.AUTOMATIC:
        return False
    captured = Letter.objects.filter(dlq=dlq, state="captured", run=None)
    paused = Run.objects.filter(dlq=dlq, kind=RunKind.AUTOMATIC, state=RunState.PAUSED)
    return (captured.exists() or leftover_lanes.has_leftovers(dlq.pk)) and not paused.exists()


def _is_looked_into(dlq: DeadLetterQueue) -> bool:
    """Return whether even a stopped DLQ needs a capture: after a restore, for a plan, or after AWS's own redrive."""
    if restore_hold.current_hold() is not None or moved_by_aws.letters_wait_for_capture(dlq.pk):
        return True
    waiting = plans.unselected_plans(dlq.pk)
    return any(dlq.drained_through is None or dlq.drained_through < run.created_at for run in waiting)
