"""Define the texts of each kind of event: what happened, what the service does, and what a person can do.

Names in braces, such as {dlq}, are replaced by facts (`event.FACTS`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from reprocessing.domain.notifications.event import EventKind


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the admin. `row` is the name of the fact that has the row's id; empty: the page lists all rows."""

    model: str
    row: str = ""


#: The admin's dashboard.
DASHBOARD: Final = Page("")


@dataclass(frozen=True, slots=True)
class Wording:
    """The texts of notifications about one kind of event.

    Attributes:
        opened: the headline while the condition lasts, or of a moment.
        many: a plural noun for several incidents.
        over: the headline when the condition has ended; empty for moments (events without duration).
        service: what the service does about the event.
        person: what a person can do, with the command.
        page: the admin's page about the event.
        more: further sentences, each left out if one of its facts is not known.
        person_without: the text in place of `person` if a fact of `person` is not known.
    """

    opened: str
    many: str
    service: str
    person: str
    page: Page = DASHBOARD
    more: tuple[str, ...] = ()
    over: str = ""
    person_without: str = ""


_RUN: Final = Page("run", "run_id")
_PARKED: Final = Page("parkedletter")

WORDING: Final[Mapping[EventKind, Wording]] = {
    EventKind.BREAKER_OPEN: Wording(
        opened="Circuit breaker open: {target}",
        many="circuit breakers open",
        over="Circuit breaker closed: {target}",
        more=("Reason: {why}.", "Waiting messages: {messages}."),
        service="It sends nothing to this target. After each cooldown it sends one message as a canary, and closes"
        " the breaker when canaries succeed.",
        person="Check the target and its consumer. To close the breaker now: manage.py reset_breaker {dlq}"
        ' --target "{target}" --reason WHY --confirm',
        person_without="Check the target and its consumer. To close the breaker now, name one of the target's DLQs:"
        ' manage.py reset_breaker DLQ --target "{target}" --reason WHY --confirm',
        page=Page("breaker", "breaker_id"),
    ),
    EventKind.RUN_STOPPED: Wording(
        opened="Run paused: {run}, DLQ {dlq}",
        many="runs paused",
        over="Run resumed or ended: {run}, DLQ {dlq}",
        more=("Reason: {why}.", "By: {by}.", "Waiting messages: {messages}."),
        service="It sends nothing more of this run until a person resumes the run.",
        person="Fix the cause, then run: manage.py resume_run {run} --reason WHY --confirm",
        page=_RUN,
    ),
    EventKind.RUN_FINISHED: Wording(
        opened="Run finished: {run}, DLQ {dlq}",
        many="runs finished",
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
        over="Run progresses again, or has ended: {run}, DLQ {dlq}",
        more=("Reason: {why}.", "For: {seconds}.", "Waiting messages: {messages}."),
        service="It keeps trying. The run goes on by itself after the cause is gone.",
        person="Run: manage.py redrive_status {dlq}",
        page=_RUN,
    ),
    EventKind.FAILURE_GROUP_NEW: Wording(
        opened="New failure group in DLQ {dlq}: {title}",
        many="new failure groups",
        more=("Messages in the group: {messages}.",),
        service="It groups messages that failed for the same reason, and goes on with the others.",
        person="Look at the group in the admin. Fix the consumer, then redrive the group's messages.",
        page=Page("failuregroup", "group_id"),
    ),
    EventKind.FAILURE_GROUP_REOPENED: Wording(
        opened="Resolved failure group opened again in DLQ {dlq}: {title}",
        many="resolved failure groups opened again",
        more=("Messages in the group: {messages}.",),
        service="It has reopened the group, because a message failed for the same reason after the group was resolved.",
        person="Look at the group in the admin. The fix may be incomplete, or was rolled back.",
        page=Page("failuregroup", "group_id"),
    ),
    EventKind.PARKED_MANY: Wording(
        opened="Many parked messages: {messages} in DLQ {dlq}",
        many="DLQs with many parked messages",
        over="Fewer parked messages again: DLQ {dlq}",
        more=("Threshold: {threshold}.", "The oldest has waited for {seconds}."),
        service="It keeps parked messages until a person decides. They block no other message, unless the DLQ has"
        " --when-parked hold: then later messages of their keys wait.",
        person="Review them in the parking lot of the admin, or see what a release would do: manage.py"
        " release_parked {dlq} --reason WHY, a dry run.",
        page=_PARKED,
    ),
    EventKind.PARKED_OLD: Wording(
        opened="Old parked messages: DLQ {dlq}, the oldest waits for {seconds}",
        many="DLQs with old parked messages",
        over="No old parked messages any more: DLQ {dlq}",
        more=("Parked messages: {messages}.",),
        service="It keeps parked messages until a person decides.",
        person="Review them in the parking lot of the admin.",
        page=_PARKED,
    ),
    EventKind.MESSAGES_EXPIRING: Wording(
        opened="Messages expire soon in SQS: {messages} in DLQ {dlq}, the first in {seconds}",
        many="DLQs with messages that expire soon in SQS",
        over="No message expires soon in SQS any more: DLQ {dlq}",
        service="SQS deletes a message when its retention period ends. Captured messages are kept in PostgreSQL. The"
        " service cannot save a message that is not captured.",
        person="Capture the DLQ now: manage.py drain_dlq {dlq}, a dry run, which captures and sends nothing.",
    ),
    EventKind.DLQ_GROWING: Wording(
        opened="DLQ grows faster than it drains: {dlq}",
        many="DLQs that grow faster than they drain",
        over="DLQ no longer grows: {dlq}",
        more=("Within {seconds}: {arrived} arrived, {drained} left.", "Messages in it: {messages}."),
        service="It goes on at the configured rate.",
        person="Check the consumer of the source queue. Then run: manage.py redrive_status {dlq}",
    ),
    EventKind.REDRIVE_LOOP: Wording(
        opened="Redrive loop: redriven messages come back to DLQ {dlq}, run {run}",
        many="redrive loops",
        over="Redrive loop is over: DLQ {dlq}, run {run}",
        more=("Messages that came back again: {messages}.", "Reason: {why}."),
        service="It has paused the run, because redriving these messages does not help.",
        person="Fix the consumer, then run: manage.py resume_run {run} --reason WHY --confirm",
        page=_RUN,
    ),
    EventKind.BEAT_SILENT: Wording(
        opened="Beat is silent for {seconds}",
        many="beats silent",
        over="Beat works again",
        service="It captures and sends nothing by itself until beat runs. Nothing is lost.",
        person="Start beat: celery -A redrive_service beat. Then run: manage.py redrive_doctor",
    ),
    EventKind.WORKERS_SILENT: Wording(
        opened="Workers are silent: queue {queue}, for {seconds}",
        many="queues without workers",
        over="Workers consume again: queue {queue}",
        more=("Waiting tasks: {messages}.",),
        service="The tasks of this queue wait until a worker consumes them. Nothing is lost.",
        person="Start workers: celery -A redrive_service worker. Then run: manage.py check_pulse",
    ),
    EventKind.RESTORE_DETECTED: Wording(
        opened="The database was restored from a backup: sending is on hold",
        many="restores",
        over="The hold after the restore has ended: sending goes on",
        more=("Time of the backup: {backup_time}.", "Messages to decide about: {messages}."),
        service="It sends nothing, because messages may have been delivered after the backup was made.",
        person="Run: manage.py after_restore report",
    ),
    EventKind.DOCTOR_WORSE: Wording(
        opened="redrive_doctor reports new errors: {errors} (warnings: {warnings})",
        many="new findings of redrive_doctor",
        over="redrive_doctor no longer reports these errors",
        more=("{finding}",),
        service="It goes on as far as it can.",
        person="Run: manage.py redrive_doctor",
    ),
    EventKind.DLQ_DISCOVERED: Wording(
        opened="New DLQ found: {queue}, account {account}, {region}",
        many="new DLQs found",
        more=("Sources: {sources}.", "Messages in it: {messages}."),
        service="It does not watch this DLQ: SQS deletes its messages when their retention period ends.",
        person="Run: manage.py discover_dlqs --adopt {queue} (or --ignore {queue}, if nobody needs it)",
        page=Page("discoveredqueue"),
    ),
    EventKind.APPROVAL_REQUESTED: Wording(
        opened="Approval requested by {by}: {what}, DLQ {dlq}",
        many="requested approvals",
        over="The requested approval has ended, {how}: {what}, DLQ {dlq}, requested by {by}",
        more=("Messages: {messages}.",),
        service="It does nothing until a second person approves. The request expires.",
        person="Look at the request in the admin, or run: manage.py approve {approval_id} --reason WHY, a dry run.",
        page=Page("approval", "approval_id"),
    ),
    EventKind.ACTED_ALONE: Wording(
        opened="Done WITHOUT the approval that was needed, by {who}: {what}, DLQ {dlq}",
        many="actions without the approval that was needed",
        more=("Reason: {why}.", "Messages: {messages}.", "Requested by {by}."),
        service="It has done what was requested. The audit log says that nobody approved it.",
        person="Check that this was an emergency. The request has all details.",
        page=Page("approval", "approval_id"),
    ),
}
