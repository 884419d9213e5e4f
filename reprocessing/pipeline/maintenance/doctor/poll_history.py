"""Check a DLQ's schedule, its last captures, and the time left before SQS deletes its messages."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from reprocessing.conf import Conf
from reprocessing.domain.maintenance.findings import DoctorFinding, error_finding, note_finding, warning_finding
from reprocessing.domain.runs.forecast import duration_in_words
from reprocessing.models import DeadLetterQueue
from reprocessing.models.dlq import Mode
from reprocessing.pipeline.runs import plan_obstacles
from reprocessing.store.aws import aws_redrives
from reprocessing.store.dlqs import dlq_status
from reprocessing.store.dlqs.schedule import DEFAULT_INTERVAL
from reprocessing.store.ordering import lanes

_LATE: Final = timedelta(minutes=5)  #: a poll may be late by this time without a finding
_SOON, _VERY_SOON = timedelta(days=1), timedelta(hours=1)


def findings(row: DeadLetterQueue, conf: Conf) -> Iterator[DoctorFinding]:
    """Yield findings about the DLQ's polls, captures, stop, redrive by AWS, and messages that SQS will soon delete."""
    now = lanes.database_now()
    yield from _schedule(row, now)
    yield from _polls(row, now)
    if plan_obstacles.UNDECRYPTABLE in row.last_error:
        yield error_finding(row.name, row.last_error, "Others are captured as usual.", "")
    elif row.last_error and not row.last_error.startswith(aws_redrives.ERROR_PREFIX):
        yield error_finding(
            row.name, f"Its last capture failed: {row.last_error}", "None of its messages is captured.", _look(row)
        )
    if row.stopped_at:
        cure = f"manage.py resume_redrive {row.name} --reason WHY --confirm"
        yield warning_finding(
            row.name, f'It is stopped by {row.stopped_by}: "{row.stop_reason}".', "None of its messages is sent.", cure
        )
    yield from _native(row, now)
    yield from _expiry(row, now)
    yield from _uncaptured(row, conf)


def _native(row: DeadLetterQueue, now: datetime) -> Iterator[DoctorFinding]:
    listing = f"manage.py native_redrive list {row.name}"
    cancel = f"manage.py native_redrive cancel {row.name} --reason WHY --confirm"
    if row.last_error.startswith(aws_redrives.ERROR_PREFIX):
        cure = f"{listing} shows it. To redrive what is left: manage.py drain_dlq {row.name} --confirm"
        yield error_finding(
            row.name, row.last_error, "Messages that are left in the DLQ are not redriven automatically.", cure
        )
    if row.aws_redrive_since and now - row.aws_redrive_since > aws_redrives.MAX_DURATION:
        what = (
            f"AWS's own redrive of it, begun at {row.aws_redrive_since:%Y-%m-%d %H:%M} UTC, has not ended in 36 hours."
        )
        yield error_finding(
            row.name,
            what,
            "AWS stops redrives by then. Until this one ends, none of its messages is captured or sent.",
            cancel,
        )
    elif row.aws_redrive_since:
        what = (
            f"A redrive by AWS has run since {row.aws_redrive_since:%Y-%m-%d %H:%M} UTC, as {row.aws_redrive_by} asked."
        )
        cure = f"{listing} shows its progress; to end it: {cancel}"
        yield warning_finding(row.name, what, "Until it ends, none of its messages is captured or sent.", cure)


def _schedule(row: DeadLetterQueue, now: datetime) -> Iterator[DoctorFinding]:
    if row.mode == Mode.AUTOMATIC and row.interval is None and row.crontab is None:
        every = f"{DEFAULT_INTERVAL.total_seconds():g} s"
        cure = f"manage.py add_dlq {row.name} --every SECONDS --confirm"
        yield note_finding(row.name, f"It is automatic without an interval: it is polled every {every}.", cure)
    overdue = now - row.next_poll_at if row.next_poll_at else timedelta(0)
    if overdue > _LATE and (row.leased_until is None or row.leased_until <= now):
        what = f"Its poll was due {duration_in_words(overdue.total_seconds())} ago, but no worker did it."
        why = "New messages are not noticed: beat does not run, or has more DLQs than it can poll."
        say = error_finding if row.mode == Mode.AUTOMATIC else warning_finding
        yield say(row.name, what, why, "See the findings about beat and workers above.")


def _polls(row: DeadLetterQueue, now: datetime) -> Iterator[DoctorFinding]:
    """Yield a finding if workers do not poll the DLQ as scheduled.

    That is so if three intervals and 5 minutes have passed since the last poll. DLQs with a crontab are not checked: a
    crontab may leave out nights.
    """
    if (
        row.crontab is not None
        or row.depth_at is None
        or row.next_poll_at is None
        or row.last_error
        or row.aws_redrive_since
    ):
        return
    every = timedelta(seconds=row.interval.schedule.run_every.total_seconds()) if row.interval else DEFAULT_INTERVAL
    silence = now - row.depth_at
    if row.next_poll_at > now - _LATE and silence > 3 * every + _LATE:
        times = duration_in_words(every.total_seconds()), duration_in_words(silence.total_seconds())
        what = f"It should be polled every {times[0]}, but was not polled for {times[1]}."
        why = "The workers of the capture queue consume nothing: new messages are not noticed."
        cure = "Restart the workers that consume redrive-capture: celery -A redrive_service worker"
        yield error_finding(row.name, what, why, cure)


def _expiry(row: DeadLetterQueue, now: datetime) -> Iterator[DoctorFinding]:
    at = dlq_status.expiries(row.pk).get(row.pk)
    if at is None or at - now > _SOON:
        return
    left = duration_in_words(max((at - now).total_seconds(), 0.0))
    why = "PostgreSQL keeps captured messages. Uncaptured messages that SQS deletes are lost."
    cure = f"manage.py drain_dlq {row.name} --confirm, or raise the DLQ's retention to 14 days."
    say = error_finding if at - now < _VERY_SOON else warning_finding
    yield say(row.name, f"SQS deletes its first copy of an unfinished message in {left}.", why, cure)


def _uncaptured(row: DeadLetterQueue, conf: Conf) -> Iterator[DoctorFinding]:
    """Yield a finding if the DLQ has messages that are not captured, because its mode is manual or it is stopped."""
    ours = dlq_status.visible_copies(visibility=conf.receive_visibility, count_lag=conf.count_lag.total_seconds())
    n = dlq_status.uncaptured(dlq_status.dlq_statuses(row.pk)[0], ours.get(row.pk, 0))
    if not n or row.mode == Mode.OBSERVE:
        return
    since = "it failed" if row.fifo else "it was sent first"
    is_stopped = row.mode == Mode.AUTOMATIC
    cause = "because it is stopped" if is_stopped else f"and mode {row.mode} does not capture them automatically"
    what = f"{n:,} of its messages are not captured, {cause}."
    why = (
        f"SQS deletes a message {duration_in_words(row.retention)} after {since}; uncaptured messages are then lost. "
        "The alarm messages-expire (manage.py put_alarms --confirm) notifies people after three quarters of that time."
    )
    cure = f"Capture them, and send nothing: manage.py drain_dlq {row.name}, a dry run; or plan a run in the admin."
    if is_stopped:
        cure = f"manage.py resume_redrive {row.name} --reason WHY --confirm"
    yield warning_finding(row.name, what, why, cure)


def _look(row: DeadLetterQueue) -> str:
    return f"Repair that. Then manage.py drain_dlq {row.name}, a dry run, shows whether the DLQ can be captured."
