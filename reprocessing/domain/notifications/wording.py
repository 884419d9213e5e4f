"""What is said of each kind of event: what happened, what the service does about it, and what a person can do.

Names in braces are facts (`event.FACTS`). A sentence of `more` is said where all of its facts are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from reprocessing.domain.notifications.event import EventKind


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the admin: of the row whose id is the fact `row`, or the list of all of them where there is no fact."""

    model: str
    row: str = ""


#: The dashboard.
DASHBOARD: Final = Page("")


@dataclass(frozen=True, slots=True)
class Wording:
    """What is said of one kind of event.

    Attributes:
        opened: what happened.
        many: the same of several, in a few words.
        over: what is so when it is over; empty for moments.
        service: what the service does about it.
        person: what a person can do, with the command.
        page: where the admin shows it.
    """

    opened: str
    many: str
    over: str
    more: tuple[str, ...]
    service: str
    person: str
    page: Page


_RUN: Final = Page("run", "run_id")
_PARKED: Final = Page("parkedletter")

WORDING: Final[Mapping[EventKind, Wording]] = {
    EventKind.BREAKER_OPEN: Wording(
        opened="Circuit breaker open: {target}",
        many="circuit breakers open",
        over="Circuit breaker closed: {target}",
        more=("Reason: {why}.", "Messages that wait: {messages}."),
        service="It sends nothing to this target. After each cooldown it sends one message as a canary, and goes on"
        " when the canary goes well.",
        person="Check the target and its consumer. To close the breaker by hand, open its page in the admin.",
        page=Page("breaker", "breaker_id"),
    ),
    EventKind.RUN_STOPPED: Wording(
        opened="Run paused: {run}, DLQ {dlq}",
        many="runs paused",
        over="Run goes on or has ended: {run}, DLQ {dlq}",
        more=("Reason: {why}.", "By: {by}.", "Messages that wait: {messages}."),
        service="It sends nothing more of this run until a person resumes the run.",
        person="Mend the cause, then run: manage.py resume_run {run} --reason WHY --confirm",
        page=_RUN,
    ),
    EventKind.RUN_FINISHED: Wording(
        opened="Run finished: {run}, DLQ {dlq}",
        many="runs finished",
        over="",
        more=(
            "Delivered: {delivered}.",
            "Presumed delivered: {presumed}.",
            "Duplicates: {duplicates}.",
            "Parked: {parked}.",
            "Discarded: {discarded}.",
            "It took {seconds}.",
        ),
        service="Nothing more: every message of the run is delivered, parked, discarded or a duplicate.",
        person="Review parked messages in the admin. Details: manage.py show_runs --run {run}",
        page=_RUN,
    ),
    EventKind.RUN_STALLED: Wording(
        opened="Run does not progress: {run}, DLQ {dlq}",
        many="runs that do not progress",
        over="Run progresses again: {run}, DLQ {dlq}",
        more=("Reason: {why}.", "For: {seconds}.", "Messages that wait: {messages}."),
        service="It keeps trying. The run goes on by itself when the cause is gone.",
        person="Run: manage.py redrive_status {dlq}",
        page=_RUN,
    ),
    EventKind.FAILURE_GROUP_NEW: Wording(
        opened="New failure group: number {group_id}, DLQ {dlq}",
        many="new failure groups",
        over="",
        more=("Messages: {messages}.",),
        service="It groups messages that failed for the same reason, and goes on with the others.",
        person="Look at the group in the admin. Mend the consumer, then redrive the group's messages.",
        page=Page("lettergroup", "group_id"),
    ),
    EventKind.FAILURE_GROUP_REOPENED: Wording(
        opened="Resolved failure group opened again: number {group_id}, DLQ {dlq}",
        many="resolved failure groups opened again",
        over="",
        more=("Messages: {messages}.",),
        service="It has reopened the group, because a message failed for the same reason after the group was resolved.",
        person="Look at the group in the admin. The fix may be incomplete, or was rolled back.",
        page=Page("lettergroup", "group_id"),
    ),
    EventKind.PARKED_MANY: Wording(
        opened="Many parked messages: {messages} in DLQ {dlq}",
        many="DLQs with many parked messages",
        over="Few parked messages again: DLQ {dlq}",
        more=("Threshold: {threshold}.", "The oldest has waited for {seconds}."),
        service="It keeps parked messages until a person decides. They block no other message, unless the DLQ is set to"
        " hold a key behind a parked message.",
        person="Review them in the parking lot of the admin, or see what a release would do: manage.py"
        " release_parked {dlq} --reason WHY, a dry run.",
        page=_PARKED,
    ),
    EventKind.PARKED_OLD: Wording(
        opened="Parked messages wait for long: DLQ {dlq}, the oldest for {seconds}",
        many="DLQs whose parked messages wait for long",
        over="No parked message waits for long any more: DLQ {dlq}",
        more=("Parked messages: {messages}.",),
        service="It keeps parked messages until a person decides.",
        person="Review them in the parking lot of the admin.",
        page=_PARKED,
    ),
    EventKind.MESSAGES_EXPIRING: Wording(
        opened="Messages are about to expire in SQS: {messages} in DLQ {dlq}, the first in {seconds}",
        many="DLQs with messages about to expire in SQS",
        over="No message is about to expire in SQS any more: DLQ {dlq}",
        more=(),
        service="SQS deletes a message when its retention period ends. The service saves those that it has captured. It"
        " cannot save those that it has not received.",
        person="Capture the DLQ now: manage.py drain_dlq {dlq}, a dry run, which captures and sends nothing.",
        page=DASHBOARD,
    ),
    EventKind.DLQ_GROWING: Wording(
        opened="DLQ grows faster than it drains: {dlq}",
        many="DLQs that grow faster than they drain",
        over="DLQ does not grow any more: {dlq}",
        more=("Within {seconds}: {arrived} arrived, {drained} left.", "Messages in it: {messages}."),
        service="It goes on at the configured rate.",
        person="Check the consumer of the source queue. Then run: manage.py redrive_status {dlq}",
        page=DASHBOARD,
    ),
    EventKind.REDRIVE_LOOP: Wording(
        opened="Redrive loop: the same messages come back to DLQ {dlq}, run {run}",
        many="redrive loops",
        over="Redrive loop is over: DLQ {dlq}, run {run}",
        more=("Messages that came back again: {messages}.", "Reason: {why}."),
        service="It has paused the run, because redriving these messages does not help.",
        person="Mend the consumer, then run: manage.py resume_run {run} --reason WHY --confirm",
        page=_RUN,
    ),
    EventKind.BEAT_SILENT: Wording(
        opened="Beat is silent for {seconds}",
        many="beats silent",
        over="Beat works again",
        more=(),
        service="Nothing is captured, and nothing that waits is sent, until beat runs. Nothing is lost.",
        person="Start beat: celery -A redrive_service beat. Then run: manage.py redrive_doctor",
        page=DASHBOARD,
    ),
    EventKind.WORKERS_SILENT: Wording(
        opened="Workers are silent: queue {queue}, for {seconds}",
        many="queues without workers",
        over="Workers consume again: queue {queue}",
        more=("Tasks that wait: {messages}.",),
        service="Nothing of this queue is worked on until a worker consumes it. Nothing is lost.",
        person="Start workers: celery -A redrive_service worker. Then run: manage.py check_pulse",
        page=DASHBOARD,
    ),
    EventKind.RESTORE_DETECTED: Wording(
        opened="The database was restored from a backup: sending is on hold",
        many="restores",
        over="The hold after the restore has ended: sending goes on",
        more=("The backup's time: {backup_time}.", "Messages to decide on: {messages}."),
        service="It sends nothing, because messages of the lost hours may have been delivered.",
        person="Run: manage.py after_restore report",
        page=DASHBOARD,
    ),
    EventKind.DOCTOR_WORSE: Wording(
        opened="redrive_doctor finds more wrong: {errors} errors, {warnings} warnings",
        many="verdicts of redrive_doctor got worse",
        over="redrive_doctor finds no more wrong than before",
        more=("First: {finding}",),
        service="It goes on as far as it can.",
        person="Run: manage.py redrive_doctor",
        page=DASHBOARD,
    ),
}
