"""State of the service: heartbeats, ticks, hints, counts, doubts after a restore, parking outbox, signed-in people."""

from __future__ import annotations

from datetime import timedelta
from typing import Final, LiteralString

from django.contrib.auth.models import User
from django.db import models
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from reprocessing.models.letter import Letter

# The present time, not the transaction's start: a heartbeat committed meanwhile would seem to be in the future.
_DATABASE_CLOCK = models.Func(function="clock_timestamp", output_field=models.DateTimeField())


class Heartbeat(models.Model):
    """When a worker last took a task from one of the service's own Celery queues."""

    queue = models.TextField(primary_key=True)
    consumed_at = models.DateTimeField()

    class Meta:
        db_table = "redrive_heartbeat"
        constraints = [models.CheckConstraint(condition=~models.Q(queue=""), name="heartbeat_has_queue")]

    def __str__(self) -> str:
        return self.queue

    @staticmethod
    def record(queue: str) -> None:
        """Record that a worker takes a task from this queue now, by the database's clock."""
        Heartbeat.objects.bulk_create(
            [Heartbeat(queue=queue, consumed_at=_DATABASE_CLOCK)], update_conflicts=True, unique_fields=["queue"],
            update_fields=["consumed_at"],
        )  # fmt: skip

    @staticmethod
    def ages(queue: str) -> QuerySet[Heartbeat, timedelta]:
        """Return the time since a worker took a task from this queue, by the database's clock; no row: never."""
        age = models.ExpressionWrapper(_DATABASE_CLOCK - models.F("consumed_at"), output_field=models.DurationField())
        return Heartbeat.objects.filter(queue=queue).values_list(age, flat=True)

    @staticmethod
    def is_recent(age: timedelta | None, *, within: timedelta) -> bool:
        """Return whether a worker took a task at most `within` ago; False for None, or a heartbeat in the future."""
        return age is not None and timedelta(0) <= age <= within


class TickCount(models.Model):
    """One row. `ticks`: how many ticks (rounds of beat) were committed. `database`: id, equal in restored copies."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    database = models.UUIDField(db_default=models.Func(function="gen_random_uuid", output_field=models.UUIDField()))
    ticks = models.BigIntegerField(db_default=0)

    class Meta:
        db_table = "redrive_tick_count"
        default_permissions = ()
        constraints = [models.CheckConstraint(condition=Q(id=1), name="one_tick_count_row")]

    def __str__(self) -> str:
        return f"{self.ticks} ticks"


class TaskHints(models.Model):
    """One row about task hints, the Celery tasks that tell workers which lanes have letters to send.

    `width`: max lanes that get a hint in one tick of beat. `lifetime`: seconds for which a hint is valid.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    width = models.IntegerField()
    lifetime = models.FloatField()
    swept_at = models.DateTimeField(db_default=Now())
    purged_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "redrive_task_hints"
        constraints = [models.CheckConstraint(condition=Q(id=1), name="one_task_hints_row")]

    def __str__(self) -> str:
        return f"{self.width} lanes for {self.lifetime:g} s"


#: Key in audit log entries of letters: the decision after a restore, kept when the `RestoreDoubt` is deleted.
AFTER_A_RESTORE: Final[LiteralString] = "after_a_restore"


class RestoreDecision(models.TextChoices):
    """A person's decision about a letter after a restore."""

    DELIVERED = "delivered", "delivered"
    PARKED = "parked", "parked for a person"
    REPLAY = "replay", "redrive"


class RestoreDoubt(models.Model):
    """A letter whose state is uncertain after a restore from a backup, until the hold (`GlobalStop` 2) is released.

    Attributes:
        receives: how often SQS had delivered the letter's held copy when the hold began; null: no held copy.
        arrived: the letter was captured after the hold began, from an older message.
        came_back: number of an attempt that is not in the database, and whose message came back.
        word: the decision of a person (`RestoreDecision`); empty: none yet.
    """

    letter = models.OneToOneField(Letter, primary_key=True, on_delete=models.PROTECT, related_name="doubt")
    receives = models.IntegerField(null=True, blank=True)
    arrived = models.BooleanField(db_default=False)
    came_back = models.IntegerField(null=True, blank=True)
    word = models.TextField(choices=RestoreDecision.choices, db_default="", blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "redrive_restore_doubt"
        default_permissions = ()
        constraints = [
            models.CheckConstraint(
                condition=Q(word="", decided_at=None) | (~Q(word="") & Q(decided_at__isnull=False)),
                name="restore_decision_has_time",
            )
        ]
        indexes = [models.Index(F("letter"), condition=Q(word=""), name="undecided_restore_doubts")]

    def __str__(self) -> str:
        return f"doubt about {self.letter_id}"


#: True of a copy c that was not received since the hold began: the copy may have changed in SQS since the backup.
COPY_IS_UNSEEN: Final[LiteralString] = (
    "EXISTS (SELECT FROM redrive_restore_doubt x WHERE x.letter_id = c.letter_id AND c.receives <= x.receives)"
)


class ParkingEvent(models.TextChoices):
    """What a message to a parking queue says about a letter."""

    PARKED = "parked", "parked: send a copy to the parking queue"
    LEFT = "left", "left the parking lot: mark the copy in the parking queue as settled"


class ParkingQueueMessage(models.Model):
    """A message to a parking queue. A sent message cannot be withdrawn, so a second message marks it as settled."""

    letter = models.ForeignKey(Letter, on_delete=models.PROTECT, related_name="notices")
    parking_event = models.TextField(choices=ParkingEvent.choices)
    made_at = models.DateTimeField(db_default=Now())
    sent_at = models.DateTimeField(null=True, blank=True)
    trouble = models.TextField(db_default="", blank=True)

    class Meta:
        db_table = "redrive_parking_queue_message"
        indexes = [models.Index(F("id"), condition=Q(sent_at=None), name="unsent_parking_queue_messages")]

    def __str__(self) -> str:
        return f"{self.parking_event}: {self.letter_id}"


# The counts and sums below change with every letter, so that no page counts millions of rows.
class _Kind(models.Model):
    """Base class: `n` letters have these values. `group_id` is 0 for letters in no failure group."""

    dlq_id = models.BigIntegerField()
    group_id = models.BigIntegerField()
    state = models.TextField()
    reason = models.TextField()
    presumed = models.BooleanField()
    n = models.BigIntegerField()

    class Meta:
        abstract = True
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.n} {self.state}"


class LetterCount(_Kind):
    """The number of letters with these values, without the changes that are still in `LetterCountDelta`."""

    class Meta(_Kind.Meta):
        db_table = "redrive_letter_count"
        constraints = [
            models.UniqueConstraint(
                fields=["dlq_id", "group_id", "state", "reason", "presumed"], name="one_letter_count_per_kind"
            )
        ]


class LetterCountDelta(_Kind):
    """A change of a letter count by one statement; it is added to `LetterCount` later."""

    class Meta(_Kind.Meta):
        db_table = "redrive_letter_count_delta"


class _Hourly(models.Model):
    """Base class: `n` letters of a DLQ had the event `what` in an hour: `captured`, `failed`, or a finished state."""

    dlq_id = models.BigIntegerField()
    hour = models.DateTimeField()
    what = models.TextField()
    n = models.BigIntegerField()

    class Meta:
        abstract = True
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.n} {self.what}"


class HourlyCount(_Hourly):
    """The number of events in an hour, without the changes that are still in `HourlyCountDelta`."""

    class Meta(_Hourly.Meta):
        db_table = "redrive_hourly_count"
        constraints = [models.UniqueConstraint(fields=["dlq_id", "hour", "what"], name="one_count_per_hour_and_event")]


class HourlyCountDelta(_Hourly):
    """A change of an hourly count by one statement; it is added to `HourlyCount` later."""

    class Meta(_Hourly.Meta):
        db_table = "redrive_hourly_count_delta"


class Metric(models.Model):
    """The value of one time series of a metric: a sum that only grows.

    Attributes:
        place: id of the DLQ or target; 0: the metric has neither.
        part: see `domain.aws.metric_names.Sample`.
        told: the part of `value` that was published to CloudWatch.
    """

    name = models.TextField()
    place = models.BigIntegerField()
    part = models.TextField()
    value = models.FloatField()
    told = models.FloatField(db_default=0)

    class Meta:
        db_table = "redrive_metric"
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["name", "place", "part"], name="one_metric_per_name_and_label"),
            models.CheckConstraint(condition=models.Q(value__gte=0), name="metric_value_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.part}: {self.value:g}"


class ProviderIdentity(models.Model):
    """The person of an OpenID provider whom a user is: the provider's issuer, and its `sub` for the person.

    No e-mail address: a provider may give an address to somebody else, and a person may change it.
    """

    user = models.OneToOneField(User, primary_key=True, on_delete=models.CASCADE, related_name="provider_identity")
    issuer = models.TextField()
    subject = models.TextField()

    class Meta:
        db_table = "redrive_provider_identity"
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="one_user_of_a_provider_identity"),
            models.CheckConstraint(
                condition=~Q(issuer="") & ~Q(subject=""), name="provider_identity_has_issuer_and_subject"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subject} of {self.issuer}"
