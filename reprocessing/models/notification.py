"""Incidents, the notifications about incidents, and the destinations that get notifications (docs/adr/0034)."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from reprocessing.domain.notifications.event import EventKind
from reprocessing.models.dlq import DeadLetterQueue


class Incident(models.Model):
    """One event that people are notified of, from its beginning to its end.

    Attributes:
        kind: a value of `EventKind`; `subject`: what the event is about, such as `run:5`.
        facts: the values that the text of the notification shows.
        times: how often the event was observed.
        due_at: when the next notifications about the incident (beginning, reminder or end) are to be written; null: no
            further notifications.
        filed_at: when the notifications about the beginning of the incident were written; null: not yet.
    """

    kind = models.TextField()
    subject = models.TextField()
    dlq = models.ForeignKey(DeadLetterQueue, null=True, blank=True, on_delete=models.CASCADE, db_index=False)
    facts = models.JSONField()
    times = models.IntegerField(db_default=1)
    opened_at = models.DateTimeField(db_default=Now())
    changed_at = models.DateTimeField(db_default=Now())
    due_at = models.DateTimeField(null=True, blank=True)
    filed_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "redrive_incident"
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "subject"], condition=Q(ended_at=None), name="one_open_incident_per_kind_and_subject"
            ),
            models.CheckConstraint(condition=~Q(kind="") & ~Q(subject=""), name="incident_has_kind_and_subject"),
            models.CheckConstraint(condition=Q(times__gte=1), name="incident_announced_at_least_once"),
            models.CheckConstraint(
                condition=Q(ended_at=None) | Q(ended_at__gte=F("opened_at")), name="incident_ends_after_it_opens"
            ),
        ]
        indexes = [
            models.Index(F("due_at"), condition=Q(due_at__isnull=False), name="incidents_by_due_time"),
            models.Index(F("ended_at"), condition=Q(ended_at__isnull=False), name="incidents_by_end"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


class NotificationRoute(models.Model):
    """Which events of which DLQs a notification destination gets, and whether the last text could be sent.

    Attributes:
        destination: a name; the environment variable REDRIVE_NOTIFY_<NAME> has the URL.
        kinds: the kinds of events; empty: all kinds.
        dlqs: events of these DLQs are sent; empty: events of all DLQs and of the service itself.
        next_at: when the next urgent text may be sent. Texts that are not urgent wait until a minute after `sent_at`.
        leased_until: until when one worker may send to the destination; `fence`: the number of the lease.
        failures: how many texts in a row could not be sent.
        last_error: why the last text could not be sent.
    """

    destination = models.TextField(unique=True)
    kinds = ArrayField(models.TextField(), default=list, blank=True)
    dlqs = models.ManyToManyField(DeadLetterQueue, blank=True, related_name="notification_routes")
    next_at = models.DateTimeField(db_default=Now())
    leased_until = models.DateTimeField(null=True, blank=True)
    fence = models.BigIntegerField(db_default=0)
    failures = models.IntegerField(db_default=0)
    last_error = models.TextField(db_default="", blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "redrive_notification_route"
        constraints = [
            models.CheckConstraint(condition=~Q(destination=""), name="route_has_destination"),
            models.CheckConstraint(
                condition=Q(kinds__contained_by=[kind.value for kind in EventKind]), name="route_events_are_known"
            ),
            models.CheckConstraint(
                condition=Q(failures=0, last_error="") | (Q(failures__gt=0) & ~Q(last_error="")),
                name="failing_destination_has_error",
            ),
        ]

    def __str__(self) -> str:
        return self.destination


class NotificationPhase(models.TextChoices):
    """What a notification says about its incident: it began, it lasts, or it ended."""

    OPENED = "opened", "opened"
    REMINDED = "reminded", "reminded"
    ENDED = "ended", "ended"


class Notification(models.Model):
    """The notification of one destination about one phase of an incident.

    It is pending until it is sent, or given up after a day. One text can contain many notifications.
    """

    incident = models.ForeignKey(Incident, on_delete=models.CASCADE, related_name="notifications")
    route = models.ForeignKey(NotificationRoute, on_delete=models.CASCADE, related_name="notifications", db_index=False)
    phase = models.TextField(choices=NotificationPhase.choices)
    filed_at = models.DateTimeField(db_default=Now())
    sent_at = models.DateTimeField(null=True, blank=True)
    given_up_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "redrive_notification"
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["incident", "route", "phase"],
                condition=~Q(phase=NotificationPhase.REMINDED.value) | Q(sent_at=None, given_up_at=None),
                name="one_notification_per_incident_route_and_phase",
            ),
            models.CheckConstraint(
                condition=Q(sent_at=None) | Q(given_up_at=None), name="sent_notification_is_not_given_up"
            ),
        ]
        indexes = [
            models.Index(
                F("route"), F("id"), condition=Q(sent_at=None, given_up_at=None), name="pending_notifications"
            ),
            models.Index(
                F("route"), F("sent_at"), condition=Q(sent_at__isnull=False), name="notifications_by_sent_time"
            ),
            models.Index(
                F("given_up_at"), condition=Q(given_up_at__isnull=False), name="notifications_by_give_up_time"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.route}: {self.incident} {self.phase}"


class DlqSample(models.Model):
    """The message counts of a DLQ at one time, from which its growth is computed.

    `uncaptured`: number of messages that are only in SQS. `captured`: number of messages captured so far. `unfinished`:
    number of captured messages that are not finished.
    """

    dlq = models.ForeignKey(DeadLetterQueue, on_delete=models.CASCADE, db_index=False)
    taken_at = models.DateTimeField(db_default=Now())
    uncaptured = models.BigIntegerField()
    captured = models.BigIntegerField()
    unfinished = models.BigIntegerField()

    class Meta:
        db_table = "redrive_dlq_sample"
        default_permissions = ()
        constraints = [models.CheckConstraint(condition=Q(uncaptured__gte=0), name="dlq_sample_not_negative")]
        indexes = [models.Index(F("dlq"), F("taken_at"), name="dlq_samples_by_time")]

    def __str__(self) -> str:
        return f"{self.dlq_id} at {self.taken_at}"
