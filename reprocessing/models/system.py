"""State of the service: heartbeats, ticks, task hints, counts, doubts after a restore, parking queues, sign-ins."""

from __future__ import annotations

from datetime import timedelta
from typing import Final, LiteralString

from django.contrib.auth.models import User
from django.db import models
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from reprocessing.models.letter import Letter

# The present time, not the start of the transaction: else a heartbeat that was committed since then would seem to be in
# the future.
_DATABASE_CLOCK = models.Func(function="clock_timestamp", output_field=models.DateTimeField())


class Heartbeat(models.Model):
    """When a worker last took a task from the Celery queue `queue`, one of the service's own queues."""

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
        """Return the time since a worker last took a task from this queue, as one row; no row: no worker ever did."""
        age = models.ExpressionWrapper(_DATABASE_CLOCK - models.F("consumed_at"), output_field=models.DurationField())
        return Heartbeat.objects.filter(queue=queue).values_list(age, flat=True)

    @staticmethod
    def is_recent(age: timedelta | None, *, within: timedelta) -> bool:
        """Return whether a worker took a task at most `within` ago.

        `age`: the time since the last task. If it is None (no worker ever took a task) or negative, return False.
        """
        return age is not None and timedelta(0) <= age <= within


class TickCount(models.Model):
    """The number of ticks (tasks of beat, one every 2 s) that this database has counted, in the table's only row.

    The count shows a restore: a restored database has counted fewer ticks than Redis has stored. `database`: a random
    id, which a database restored from a backup keeps.
    """

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
    """Limits of task hints, in the table's only row. Task hints are Celery tasks: they name lanes with letters to send.

    `width`: max lanes that get a hint at a time (every 2 s). `lifetime`: seconds for which a hint is valid. `swept_at`,
    `purged_at`: when the recovery and the purge task were last enqueued; `purged_at` is earlier if a purge left rows.
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


#: JSON key of the decision after a restore, in a letter's audit log entry. The entry stays; `RestoreDoubt` is deleted.
AFTER_A_RESTORE: Final[LiteralString] = "after_a_restore"


class RestoreDecision(models.TextChoices):
    """A person's decision about a letter after a restore."""

    DELIVERED = "delivered", "delivered"
    PARKED = "parked", "parked for a person"
    SEND_AGAIN = "replay", "redrive"


class RestoreDoubt(models.Model):
    """A letter whose state is uncertain after a restore. The row is deleted when the hold (`GlobalStop` 2) is released.

    Attributes:
        receives: how often SQS had delivered the letter's message in the DLQ when the hold began; null: this
            service kept no message of the letter invisible in the DLQ.
        arrived: whether the letter was captured after the hold began, from a message that is older than the hold.
        came_back: number of the attempt, made after the backup, after which the message came back; null: it did not.
        word: a person's decision (`RestoreDecision`); empty: no decision yet.
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


#: SQL condition: the copy `c` was not received since the hold began, so it may have changed in SQS since the backup.
COPY_IS_UNSEEN: Final[LiteralString] = (
    "EXISTS (SELECT FROM redrive_restore_doubt x WHERE x.letter_id = c.letter_id AND c.receives <= x.receives)"
)


class ParkingEvent(models.TextChoices):
    """What a message to a parking queue says about a letter: the letter was parked, or has left the parking lot."""

    PARKED = "parked", "parked: send a copy to the parking queue"
    LEFT = "left", "left the parking lot: mark the copy in the parking queue as settled"


class ParkingQueueMessage(models.Model):
    """A message to a DLQ's parking queue, an SQS queue that gets copies of parked letters.

    A sent message cannot be withdrawn: a second message says that the letter left. `dlq`: the letter's, for an index.
    """

    letter = models.ForeignKey(Letter, on_delete=models.PROTECT, related_name="notices")
    dlq = models.ForeignKey("DeadLetterQueue", on_delete=models.PROTECT, db_index=False, db_constraint=False)
    parking_event = models.TextField(choices=ParkingEvent.choices)
    made_at = models.DateTimeField(db_default=Now())
    sent_at = models.DateTimeField(null=True, blank=True)
    last_error = models.TextField(db_default="", blank=True)

    class Meta:
        db_table = "redrive_parking_queue_message"
        indexes = [models.Index(F("dlq"), F("id"), condition=Q(sent_at=None), name="unsent_parking_queue_messages")]

    def __str__(self) -> str:
        return f"{self.parking_event}: {self.letter_id}"


# Every change of a letter updates the counts below, so that no page of the admin counts millions of rows.
class _LetterCountBase(models.Model):
    """Base class of counts: `n` letters have this DLQ, failure group, state and reason. `group_id` 0: no group."""

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


class LetterCount(_LetterCountBase):
    """How many letters have this DLQ, failure group, state and reason; `LetterCountDelta` has the newest changes."""

    class Meta(_LetterCountBase.Meta):
        db_table = "redrive_letter_count"
        constraints = [
            models.UniqueConstraint(
                fields=["dlq_id", "group_id", "state", "reason", "presumed"], name="one_letter_count_per_kind"
            )
        ]


class LetterCountDelta(_LetterCountBase):
    """A change of a letter count by one SQL statement. A task later adds it to `LetterCount` and deletes it."""

    class Meta(_LetterCountBase.Meta):
        db_table = "redrive_letter_count_delta"


class _HourlyCountBase(models.Model):
    """Base class of counts: in the hour that began at `hour`, the event `what` happened to `n` letters of a DLQ.

    `what`: for example `captured`, `failed` or `parked` (`metric_names.LETTER_COUNTERS`).
    """

    dlq_id = models.BigIntegerField()
    hour = models.DateTimeField()
    what = models.TextField()
    n = models.BigIntegerField()

    class Meta:
        abstract = True
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.n} {self.what}"


class HourlyCount(_HourlyCountBase):
    """The number of events of a DLQ's letters in an hour; `HourlyCountDelta` has the newest changes."""

    class Meta(_HourlyCountBase.Meta):
        db_table = "redrive_hourly_count"
        constraints = [models.UniqueConstraint(fields=["dlq_id", "hour", "what"], name="one_count_per_hour_and_event")]


class HourlyCountDelta(_HourlyCountBase):
    """A change of an hourly count by one SQL statement. A task later adds it to `HourlyCount` and deletes it."""

    class Meta(_HourlyCountBase.Meta):
        db_table = "redrive_hourly_count_delta"


class Metric(models.Model):
    """A named number: a Prometheus series (a sum that only grows), or the state of a periodic action or of a task.

    Attributes:
        place: id of the DLQ or target; 0: the metric is about neither.
        part: a histogram's bucket (upper bound in seconds, `+Inf` or `sum`), an event of letters such as `captured`, or
            an AWS service; else empty.
        told: how much of `value` was already published to CloudWatch, which gets only the difference.
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
    """A Django user who signs in by an OpenID provider: the provider's `issuer`, and its id (`sub`) of the person.

    The e-mail address is not used, because a provider may give it to somebody else, and a person may change it.

    `confirmed_at`: time of the last sign-in or re-check at which the provider confirmed the person's access.
    """

    user = models.OneToOneField(User, primary_key=True, on_delete=models.CASCADE, related_name="provider_identity")
    issuer = models.TextField()
    subject = models.TextField()
    confirmed_at = models.DateTimeField(db_default=Now())

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
