"""Write notifications of incidents to the outbox, a table. Send each destination one text with its notifications."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from reprocessing.conf import Conf
from reprocessing.domain.notifications.delivery import Delivery, Failed, Sent
from reprocessing.domain.notifications.destination import Destination
from reprocessing.domain.notifications.text import compose, trial_text
from reprocessing.pipeline.notifications.links import links
from reprocessing.pipeline.notifications.send import Letterhead, send
from reprocessing.store.notifications import notification_writer, sending
from reprocessing.store.notifications.sending import LeasedDestination, PendingText
from reprocessing.store.ordering import lanes

logger = logging.getLogger(__name__)

#: Most seconds that a destination may take for one text, and that one call of `deliver` waits for all texts.
SEND_SECONDS, CALL_SECONDS = 15.0, 30.0
#: Most destinations to which one call of `deliver` sends, each in its own thread.
_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class _Job:
    """A destination that this process has leased, and its pending notifications."""

    claimed: LeasedDestination
    owed: PendingText


def is_due(conf: Conf) -> bool:
    """Return whether `deliver` has something to do.

    That is so if an incident (an open problem) has no notification yet, or if a notification can be sent now.
    """
    return sending.is_due(conf.destinations)


def deliver(conf: Conf, *, seconds: float = SEND_SECONDS) -> int:
    """Write and send due notifications; return how many texts were sent. Call it outside transactions.

    A text is sent at least once. If a process dies after the send, before the result is recorded, a later call sends
    the text again when the destination's lease has ended. Several processes may call this function at the same time.
    """
    notification_writer.file_notifications()
    if given_up := sending.give_up_old():
        logger.warning("%d notifications were given up: they could not be sent for a day.", given_up)
    jobs, now = _claimed(conf), lanes.database_now()
    done: queue.SimpleQueue[tuple[_Job, Delivery]] = queue.SimpleQueue()
    for job in jobs:
        name = f"notification to {job.claimed.destination}"
        threading.Thread(target=_send, args=(conf, job, now, seconds, done), name=name, daemon=True).start()
    return _record(jobs, done, within=seconds + CALL_SECONDS - SEND_SECONDS)


def send_trial(conf: Conf, name: str, *, seconds: float = SEND_SECONDS) -> Delivery:
    """Send a test text to a destination now, and return the result.

    The text counts towards no limit, and is not stored.
    """
    text = trial_text(conf.place, name, links(conf.public_url))
    now = lanes.database_now()
    head = Letterhead(conf.place, name, f"test-{name}-{now.timestamp():.0f}", now)
    return send(conf.destinations[name], text, (), head, seconds=seconds)


def _claimed(conf: Conf) -> Sequence[_Job]:
    jobs = []
    for claimed in sending.lease_destinations(conf.destinations, limit=_AT_ONCE):
        owed = sending.pending_text(claimed.route_id)
        if owed is None:
            sending.release_destination(claimed, lanes.database_now())
        else:
            jobs.append(_Job(claimed, owed))
    return jobs


def _send(conf: Conf, job: _Job, now: datetime, seconds: float, done: queue.SimpleQueue[tuple[_Job, Delivery]]) -> None:
    """Send one text, and put the result into `done`. This function runs in a thread without a database connection."""
    name = job.claimed.destination
    destination: Destination = conf.destinations[name]
    head = Letterhead(conf.place, name, f"{job.claimed.route_id}-{job.owed.key}", now)
    came: Delivery = Failed("its text could not be written")
    try:
        text = compose(job.owed.sections, place=conf.place, link=links(conf.public_url))
        came = send(destination, text, job.owed.sections, head, seconds=seconds)
    finally:
        done.put((job, came))


def _record(jobs: Sequence[_Job], done: queue.SimpleQueue[tuple[_Job, Delivery]], *, within: float) -> int:
    """Record the result of each text when it arrives; return how many texts were sent.

    If a text has no result after `within` seconds, it counts as failed, although its thread continues.
    """
    left = {job.claimed.route_id: job for job in jobs}
    until = time.monotonic() + within
    sent = 0
    while left:
        try:
            job, came = done.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            for job in left.values():
                _write(job, Failed(f"it had not answered within {within:g} s"))
            break
        del left[job.claimed.route_id]
        sent += isinstance(came, Sent)
        _write(job, came)
    return sent


def _write(job: _Job, came: Delivery) -> None:
    sending.record_result(job.claimed, job.owed.ids, came, lanes.database_now())
    if isinstance(came, Failed):
        logger.warning("Sending to the destination %s failed: %s. It is retried.", job.claimed.destination, came.why)
