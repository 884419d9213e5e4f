"""What a person is told: incidents, where they go, and what was told of each (docs/adr/0034)."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from reprocessing.domain.notifications.event import EventKind
from reprocessing.models.dlq import DeadLetterQueue


class Incident(models.Model):
    """One thing that happened, from its beginning to its end.

    `times`: how often it was announced. `due_at`: when the notifications about it are to be written; None: nothing is
    to be told. `filed_at`: when those about its beginning were.
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
                fields=["kind", "subject"],
                condition=Q(ended_at=None),
                name="one_incident_is_open_for_each_kind_and_subject",
            ),
            models.CheckConstraint(
                condition=~Q(kind="") & ~Q(subject=""), name="an_incident_says_what_happened_to_what"
            ),
            models.CheckConstraint(condition=Q(times__gte=1), name="an_incident_was_announced"),
            models.CheckConstraint(
                condition=Q(ended_at=None) | Q(ended_at__gte=F("opened_at")),
                name="an_incident_ends_after_its_beginning",
            ),
        ]
        indexes = [
            models.Index(F("due_at"), condition=Q(due_at__isnull=False), name="incidents_to_be_told"),
            models.Index(F("ended_at"), condition=Q(ended_at__isnull=False), name="incidents_that_are_over"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


class NotificationRoute(models.Model):
    """Which events, of which DLQs, go to a destination, and how far sending to it is.

    `destination`: the name that the environment has a URL for. `kinds`: no kind is every kind. `dlqs`: none is every
    DLQ and the service as a whole. `next_at`: when the next text may go if it is urgent; another one goes a minute
    after `sent_at` at the earliest. `leased_until`: somebody sends to it now,
    under the `fence`. `failures`: how many texts in a row could not be sent, and `trouble` why.
    """

    destination = models.TextField(unique=True)
    kinds = ArrayField(models.TextField(), default=list, blank=True)
    dlqs = models.ManyToManyField(DeadLetterQueue, blank=True, related_name="notification_routes")
    next_at = models.DateTimeField(db_default=Now())
    leased_until = models.DateTimeField(null=True, blank=True)
    fence = models.BigIntegerField(db_default=0)
    failures = models.IntegerField(db_default=0)
    trouble = models.TextField(db_default="", blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "redrive_notification_route"
        constraints = [
            models.CheckConstraint(condition=~Q(destination=""), name="a_route_names_its_destination"),
            models.CheckConstraint(
                condition=Q(kinds__contained_by=[kind.value for kind in EventKind]), name="a_route_knows_its_events"
            ),
            models.CheckConstraint(
                condition=Q(failures=0, trouble="") | (Q(failures__gt=0) & ~Q(trouble="")),
                name="a_destination_that_fails_says_why",
            ),
        ]

    def __str__(self) -> str:
        return self.destination


class Phase(models.TextChoices):
    """Which part of an incident is told."""

    OPENED = "opened", "opened"
    REMINDED = "reminded", "reminded"
    ENDED = "ended", "ended"


class Notification(models.Model):
    """One part of one incident that is owed to one destination, sent to it, or given up. Many are sent as one text."""

    incident = models.ForeignKey(Incident, on_delete=models.CASCADE, related_name="notifications")
    route = models.ForeignKey(NotificationRoute, on_delete=models.CASCADE, related_name="notifications", db_index=False)
    phase = models.TextField(choices=Phase.choices)
    filed_at = models.DateTimeField(db_default=Now())
    sent_at = models.DateTimeField(null=True, blank=True)
    given_up_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "redrive_notification"
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["incident", "route", "phase"],
                condition=~Q(phase=Phase.REMINDED.value) | Q(sent_at=None, given_up_at=None),
                name="a_part_of_an_incident_is_told_once",
            ),
            models.CheckConstraint(
                condition=Q(sent_at=None) | Q(given_up_at=None), name="what_was_sent_is_not_given_up"
            ),
        ]
        indexes = [
            models.Index(
                F("route"), F("id"), condition=Q(sent_at=None, given_up_at=None), name="notifications_that_are_owed"
            ),
            models.Index(F("route"), F("sent_at"), condition=Q(sent_at__isnull=False), name="notifications_sent"),
            models.Index(F("given_up_at"), condition=Q(given_up_at__isnull=False), name="notifications_given_up"),
        ]

    def __str__(self) -> str:
        return f"{self.route}: {self.incident} {self.phase}"
