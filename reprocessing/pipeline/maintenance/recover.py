"""The sweep, which runs every 10 s: finish the work of killed workers, and repeat calls to AWS that failed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial

from django.db import connection

from reprocessing.conf import Conf
from reprocessing.domain.errors import PayloadUnreadable, QueueUnreachable, StepsFailed
from reprocessing.gateways.sqs import QueueAddress, extend
from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.aws import follow_redrives
from reprocessing.pipeline.capture import delete_copies
from reprocessing.pipeline.parking_lot import group_failures, parking_queue
from reprocessing.pipeline.replay.lease_keeper import suspend_aware_clock
from reprocessing.pipeline.routing import route
from reprocessing.pipeline.runs import plan
from reprocessing.pipeline.search import reindex
from reprocessing.store.aws import metrics
from reprocessing.store.capture import capture_lease, expiry_rescue
from reprocessing.store.maintenance import counters, parking_queue_outbox
from reprocessing.store.ordering import lanes
from reprocessing.store.parking_lot import decisions
from reprocessing.store.runs import plans, progress
from reprocessing.store.safety import circuit_breakers, failing_targets, redrive_loops, stops, waves

logger = logging.getLogger(__name__)

MAX_HIDDEN_SECONDS = 43_200  #: SQS hides a message for twelve hours at most, counted from its receive.
_GROUP = 500  #: most copies or notices in one batch
_COPIES = 1_000  #: most copies of one DLQ for which a sweep checks whether their letters are finished
_FAILING_FOR = 10.0  #: seconds for which a sweep goes on to delete copies of a DLQ although SQS deletes only some
_EXPIRING = 10_000  #: most copies of one DLQ that a sweep marks because SQS will soon delete them
#: Most batches of letters that a sweep assigns to failure groups; while lanes are replayed, it assigns one. A batch
#: takes a quarter of a second, and most letters that are being replayed are delivered without a group.
_BATCHES = 4
_REINDEX_FOR = 3.0  #: max seconds for which a sweep indexes search fields again after a setting changed
_NOTICE_BATCHES = 10  #: most batches of notices that one sweep sends to a parking queue: other DLQs wait meanwhile
#: The name of the lease of a sweep, and the seconds after which it ends if it is not renewed.
_SWEEP, _SWEEP_LEASE = "sweep in progress", 60.0
_NOTICE_SECONDS = 10.0  #: a worker sends notices to the parking queue only for this many seconds after it read them


def sweep_alone(*, conf: Conf, ended_by: tuple[type[Exception], ...] = ()) -> None:
    """Do the sweep (`sweep_all`), unless another worker does it now: then do nothing.

    So a region whose SQS does not answer keeps only one worker busy. If a worker is killed in a sweep, the next sweep
    begins after 60 s. The same happens if one step takes longer; then two sweeps overlap, and a standard parking queue
    may get a notice twice.
    """
    if not metrics.claim_if_due(_SWEEP, every=_SWEEP_LEASE):
        return
    try:
        sweep_all(conf=conf, ended_by=ended_by, before_step=partial(metrics.claim_if_due, _SWEEP, every=0.0))
    finally:
        metrics.make_due(_SWEEP)


def sweep_all(
    *, conf: Conf, ended_by: tuple[type[Exception], ...] = (), before_step: Callable[[], object] = lambda: None
) -> None:  # fmt: skip
    """Do the sweep: first for the service as a whole, then for each DLQ that is not in mode observe.

    An error of one step or DLQ is logged, and the sweep continues. DLQs with an error text come last: SQS may not
    answer for them, so that each may take a minute. `ended_by`: exceptions that end the sweep, such as that of a time
    limit. `before_step`: called before each step.

    Raises:
        StepsFailed: the sweep was done, except for the steps that the text names. They failed with unexpected errors.
        django.db.Error: PostgreSQL does not answer.
    """
    failed = [name for name, is_done in _steps(conf, ended_by, before_step) if not is_done]
    if failed:
        raise StepsFailed(f"These steps of the sweep failed: {', '.join(failed)}. The next sweep tries again.")


def _steps(
    conf: Conf, ended_by: tuple[type[Exception], ...], before_step: Callable[[], object]
) -> Iterator[tuple[str, bool]]:
    """Take the steps of a sweep, and yield the name of each, and whether it ended without an unexpected error."""

    def take(name: str, step: Callable[[], object], **extra: str) -> tuple[str, bool]:
        before_step()
        return _try(ended_by, name, step, **extra)

    yield take("The service", sweep_service)
    yield take("Failure groups", partial(group_failures.assign_groups, batches=_BATCHES, stop=lanes.are_leased))
    yield take("Counters", counters.fold_deltas)
    yield take("AWS's redrives", follow_redrives.sweep)
    urgent_first = expiry_rescue.most_urgent_first(DeadLetterQueue.objects.exclude(mode="observe"))
    for dlq in sorted(urgent_first, key=lambda dlq: bool(dlq.last_error)):
        yield take(dlq.name, partial(sweep_dlq, dlq, conf=conf), dlq=dlq.name)
    yield take("Search fields", partial(reindex.reindex_dlqs, seconds=_REINDEX_FOR))


def _try(
    ended_by: tuple[type[Exception], ...], name: str, step: Callable[[], object], **extra: str
) -> tuple[str, bool]:  # fmt: skip
    """Take a step of a sweep. Return its name, and whether it ended without an unexpected error.

    An error is logged, unless PostgreSQL does not answer; the next sweep tries again.
    """
    try:
        step()
    except (QueueUnreachable, PayloadUnreadable) as error:
        logger.warning("%s: the sweep failed: %s", name, error, extra=extra)
    except ended_by:
        raise
    except Exception:
        if not connection.is_usable():
            raise
        logger.exception("%s: the sweep failed.", name, extra=extra)
        return name, False
    return name, True


def sweep_service(book: route.RuleBook | None = None) -> route.RuleBook:
    """Do the part of a sweep that is not about one DLQ: update breakers, waves, runs, rules and plans.

    Return the current rules. If the next call gets them (`book`), it does not apply unchanged rules again.
    """
    circuit_breakers.move_all_breakers()
    waves.judge_all_waves()
    delete_copies.delete_from_dlqs(failing_targets.give_up_on_failing_targets().deletable)
    redrive_loops.pause_looping_runs()
    book = route.refresh_rules(lanes.database_now(), book)
    progress.finish_runs()
    plans.give_up_old_plans()
    return book


def sweep_dlq(dlq: DeadLetterQueue, *, conf: Conf, clock: Callable[[], float] = time.monotonic) -> None:
    """Do the part of a sweep that is about one DLQ.

    A copy is a letter's message in the DLQ. Delete copies of letters that are finished, or whose copy SQS will soon
    delete. Keep other copies hidden. Let key queues continue that no parked message holds up any more. Send notices
    about parked letters to the parking queue. If SQS deletes only some copies of a batch, deleting goes on for 10 s,
    measured by `clock`.
    """
    capture_lease.mark_finished_copies(dlq.pk, limit=_COPIES)
    expiry_rescue.mark_expiring_copies(dlq.pk, limit=_EXPIRING)
    is_late = plan.after_seconds(_FAILING_FOR, clock)
    if _delete_copies(dlq, above=None, is_late=is_late):
        _delete_copies(dlq, above="", is_late=is_late)
    _extend(dlq, conf)
    decisions.advance_held_lanes(dlq.pk)
    for _ in range(_NOTICE_BATCHES if dlq.parking_url else 0):
        if not _send_notices(dlq):
            break


def _delete_copies(dlq: DeadLetterQueue, *, above: str | None, is_late: Callable[[], bool]) -> bool:
    """Delete the copies that are to be deleted, in the order of their message ids, from `above` on (None: from any).

    Return False if SQS deleted no copy of a batch, or if it deleted only some when `is_late` returns True: it may not
    answer, and other DLQs wait for this sweep. SQS may also refuse some copies for ever (their queue was deleted, and
    created again). So each sweep begins at another message id, to get to the copies behind them.
    """
    while deletable := capture_lease.copies_to_delete(dlq.pk, above=above, limit=_GROUP):
        deleted = delete_copies.delete_from_dlq(dlq, deletable)
        if not deleted or (deleted < len(deletable) and is_late()):
            return False
        above = deletable[-1].message_id
    return True


def _extend(dlq: DeadLetterQueue, conf: Conf) -> None:
    """Extend the visibility timeout of the messages of unfinished letters in the DLQ before it ends.

    Each extension is nearly as long as SQS allows (12 hours).
    """
    within = conf.receive_visibility / 3
    longest = MAX_HIDDEN_SECONDS - conf.receive_visibility
    while found := capture_lease.copies_to_extend(dlq.pk, within=within, limit=_GROUP):
        address = QueueAddress(url=dlq.url, region=dlq.region, role=dlq.role_arn)
        until = lanes.database_now() + timedelta(seconds=longest)  # SQS will hide them until then, or later
        done = extend(address, {copy.message_id: copy.handle for copy in found}, longest)
        capture_lease.mark_extended(dlq.pk, [copy for copy in found if copy.message_id in done.held], until=until)
        if len(done.held) < len(found):
            return


def _send_notices(dlq: DeadLetterQueue) -> bool:
    """Send one batch of notices to the parking queue: which letters were parked, and which left the parking lot.

    Return True if another batch may follow. Return False if there is nothing to send, if the parking queue refused a
    notice, or if sends are stopped. A worker that freezes for 10 s after it read the notices sends none, since another
    worker may have sent them meanwhile.
    """
    clock = suspend_aware_clock()
    until = clock() + _NOTICE_SECONDS
    if stops.stop_of(dlq.pk) is not None or stops.stop_of(None) is not None:
        return False
    if not (owed := parking_queue_outbox.pending_messages(dlq.pk, limit=_GROUP)):
        return False
    sent = parking_queue.send_notices(dlq, owed, may_start=lambda: clock() < until)
    parking_queue_outbox.record_sent(sent)
    if left := len(owed) - len(sent):
        logger.warning(
            "%s: its parking queue did not take %d of %d notices.", dlq.name, left, len(owed), extra={"dlq": dlq.name}
        )
    return not left
