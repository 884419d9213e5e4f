"""What dead workers and failed calls left behind: copies to delete or to extend, notices, letters to sort."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

from django.db import connection

from reprocessing.conf import Conf
from reprocessing.domain.errors import QueueIsOutOfReach
from reprocessing.gateways.sqs import QueueAddress, extend
from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.aws import native_redrive
from reprocessing.pipeline.capture import delete_copies
from reprocessing.pipeline.parking_lot import group_failures, parking_queue
from reprocessing.pipeline.replay.lease_keeper import unslept
from reprocessing.pipeline.routing import route
from reprocessing.store.capture import capture_lease, expiry_rescue
from reprocessing.store.maintenance import counters, parking_queue_outbox
from reprocessing.store.ordering import lanes
from reprocessing.store.parking_lot import decisions
from reprocessing.store.runs import plans, progress
from reprocessing.store.safety import circuit_breakers, failing_targets, redrive_loops, stops, waves

logger = logging.getLogger(__name__)

#: SQS hides a message for twelve hours in all, counted from its receive.
LONGEST = 43_200
_GROUP = 500
_COPIES = 1_000  # held ones that a sweep looks at
_BATCHES = 4  # of letters that a sweep sorts
_NEWS_FOR = 10.0  # seconds for which notices that were read may go out


def dlqs(*, conf: Conf, stop: Callable[[], bool] = lambda: False) -> None:
    """Sweep every dlq that may be received from. Lanes need nothing: a dead worker's is simply due again.

    What fails at one dlq is said in the log, once, and keeps none behind it from its turn.

    Raises:
        django.db.Error: Postgres is gone.
    """
    fleet()  # first: this needs no queue that answers
    group_failures.letters(batches=_BATCHES, stop=stop)
    counters.fold()
    for dlq in expiry_rescue.most_urgent_first(DeadLetterQueue.objects.exclude(mode="observe")):
        if stop():
            return
        _apart(dlq, conf)
    native_redrive.sweep()


def _apart(dlq: DeadLetterQueue, conf: Conf) -> None:
    try:
        sweep(dlq, conf=conf)
    except QueueIsOutOfReach as error:
        logger.warning("%s: not all that was left behind is seen to: %s", dlq.name, error)
    except Exception:
        if not connection.is_usable():  # it is gone for all of them
            raise
        logger.exception("%s: not all that was left behind is seen to.", dlq.name)


def fleet(book: route.Book | None = None) -> route.Book:
    """See to what belongs to no dlq: looks that died with their worker, rules that begin or end, runs, plans.

    Returns:
        The rules as they are now; what others stopped is not looked for again under the book that is handed in.
    """
    circuit_breakers.sweep()
    waves.sweep()
    delete_copies.everywhere(failing_targets.give_up_on_failing_targets().deletable)
    redrive_loops.pause_looping_runs()
    book = route.keep_up(lanes.clock(), book)
    progress.finish_runs()
    plans.sweep()
    return book


def sweep(dlq: DeadLetterQueue, *, conf: Conf) -> None:
    """Delete what is finished or about to expire, extend what is under way, free held lanes, tell what was parked."""
    capture_lease.sweep(dlq.pk, limit=_COPIES)
    expiry_rescue.take(dlq.pk, limit=_GROUP)
    while deletable := capture_lease.to_delete(dlq.pk, limit=_GROUP):
        if delete_copies.copies(dlq, deletable) < len(deletable):
            break
    _extend(dlq, conf)
    decisions.let_go(dlq.pk)
    _notify(dlq)


def _extend(dlq: DeadLetterQueue, conf: Conf) -> None:
    """Once, to the limit: what is unfinished when two thirds of its time out of sight are over."""
    within = conf.receive_visibility / 3
    longest = LONGEST - conf.receive_visibility
    while found := capture_lease.to_extend(dlq.pk, within=within, limit=_GROUP):
        address = QueueAddress(url=dlq.url, region=dlq.region, role=dlq.role_arn)
        until = lanes.clock() + timedelta(seconds=longest)  # what is noted late counts from when it was asked for
        done = extend(address, {one.message_id: one.handle for one in found}, longest)
        capture_lease.extended(dlq.pk, [one for one in found if one.message_id in done.held], until=until)
        if len(done.held) < len(found):
            return


def _is_stopped(dlq: DeadLetterQueue) -> bool:
    return stops.stopped(dlq.pk) is not None or stops.stopped(None) is not None


def _notify(dlq: DeadLetterQueue) -> None:
    """Nothing is sent while it is stopped; asked anew before each group."""
    while dlq.parking_url and _tell(dlq):
        pass


def _tell(dlq: DeadLetterQueue) -> bool:
    """Tell its parking queue of one group; whether there may be another.

    Whoever freezes in between sends nothing of what it read before: others may have told of it by now, and of what
    came after it, or all is stopped. What does not go stays owed.
    """
    clock = unslept()
    until = clock() + _NEWS_FOR
    if _is_stopped(dlq) or not (owed := parking_queue_outbox.owed(dlq.pk, limit=_GROUP)):
        return False
    sent = parking_queue.parking_queue(dlq, owed, may_start=lambda: clock() < until)
    parking_queue_outbox.sent(sent)
    if left := len(owed) - len(sent):
        logger.warning("%s: its parking queue did not take %d of %d notices.", dlq.name, left, len(owed))
    return not left
