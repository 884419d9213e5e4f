"""State of the service: heartbeats, ticks, task hints, doubts after a restore, outbox of the parking queues."""

from __future__ import annotations

from datetime import timedelta
from typing import Final, LiteralString

from django.db import models
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from reprocessing.models.letter import DeadLetter

# Read when it is evaluated: a heartbeat committed since the statement began is not in its future.
_DATABASE_CLOCK = models.Func(function="clock_timestamp", output_field=models.DateTimeField())


class Pulse(models.Model):
    """When a task of one of the service's own queues was last consumed: a heartbeat that also proves consumption."""

    queue = models.TextField(primary_key=True)
    beaten_at = models.DateTimeField()

    class Meta:
        constraints = [models.CheckConstraint(condition=~models.Q(queue=""), name="a_pulse_names_its_queue")]

    def __str__(self) -> str:
        return self.queue

    @staticmethod
    def beat(queue: str) -> None:
        """Record that a task of this queue is consumed now, by the database's clock."""
        Pulse.objects.bulk_create(
            [Pulse(queue=queue, beaten_at=_DATABASE_CLOCK)], update_conflicts=True, unique_fields=["queue"],
            update_fields=["beaten_at"],
        )  # fmt: skip

    @staticmethod
    def ages(queue: str) -> QuerySet[Pulse, timedelta]:
        """Return how long ago a task of this queue was consumed, by the database's clock; no row: never."""
        age = models.ExpressionWrapper(_DATABASE_CLOCK - models.F("beaten_at"), output_field=models.DurationField())
        return Pulse.objects.filter(queue=queue).values_list(age, flat=True)

    @staticmethod
    def is_recent(age: timedelta | None, *, within: timedelta) -> bool:
        """Return whether a heartbeat of this age proves consumption; one in the future, or none, does not."""
        return age is not None and timedelta(0) <= age <= within


class Tide(models.Model):
    """One row. `database` identifies this database and its restored copies. `ticks`: committed ticks of beat."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    database = models.UUIDField(db_default=models.Func(function="gen_random_uuid", output_field=models.UUIDField()))
    ticks = models.BigIntegerField(db_default=0)

    class Meta:
        db_table = "redrive_tide"
        default_permissions = ()
        constraints = [models.CheckConstraint(condition=Q(id=1), name="there_is_one_tide")]

    def __str__(self) -> str:
        return f"{self.ticks} ticks"


class Dispatch(models.Model):
    """One row. `width`: lanes for which a tick sends task hints. `lifetime`: seconds that a hint is valid."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    width = models.IntegerField()
    lifetime = models.FloatField()
    swept_at = models.DateTimeField(db_default=Now())
    purged_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "redrive_dispatch"
        constraints = [models.CheckConstraint(condition=Q(id=1), name="there_is_one_dispatch")]

    def __str__(self) -> str:
        return f"{self.width} lanes for {self.lifetime:g} s"


#: Key in audit log entries of letters: the decision after a restore, kept when the doubt is deleted.
AFTER_A_RESTORE: Final[LiteralString] = "after_a_restore"


class Word(models.TextChoices):
    """What a person decided about a letter."""

    DELIVERED = "delivered", "delivered"
    PARKED = "parked", "parked for a person"
    REPLAY = "replay", "redrive"


class Doubt(models.Model):
    """A letter whose state is uncertain after a restore, until the hold is released.

    `receives`: receive count of its held copy when the hold began; null: no copy. `arrived`: captured after the hold
    from an older message. `came_back`: number of a lost attempt that returned. `word`: the decision; empty: open.
    """

    letter = models.OneToOneField(DeadLetter, primary_key=True, on_delete=models.PROTECT, related_name="doubt")
    receives = models.IntegerField(null=True, blank=True)
    arrived = models.BooleanField(db_default=False)
    came_back = models.IntegerField(null=True, blank=True)
    word = models.TextField(choices=Word.choices, db_default="", blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "redrive_doubt"
        default_permissions = ()
        constraints = [
            models.CheckConstraint(
                condition=Q(word="", decided_at=None) | (~Q(word="") & Q(decided_at__isnull=False)),
                name="a_word_about_a_doubt_says_when",
            )
        ]
        indexes = [models.Index(F("letter"), condition=Q(word=""), name="doubts_nobody_decided")]

    def __str__(self) -> str:
        return f"doubt about {self.letter_id}"


#: Of a copy c: not received since the hold began, so its state may have changed.
UNSEEN: Final[LiteralString] = (
    "EXISTS (SELECT FROM redrive_doubt x WHERE x.letter_id = c.letter_id AND c.receives <= x.receives)"
)


class News(models.TextChoices):
    """What happened to a parked letter."""

    PARKED = "parked", "parked: send a copy to the parking queue"
    LEFT = "left", "left: mark the copy in the parking queue as settled"


class Notice(models.Model):
    """A pending message to a parking queue. A message there cannot be withdrawn: a second one marks it as settled."""

    letter = models.ForeignKey(DeadLetter, on_delete=models.PROTECT, related_name="notices")
    news = models.TextField(choices=News.choices)
    made_at = models.DateTimeField(db_default=Now())
    sent_at = models.DateTimeField(null=True, blank=True)
    trouble = models.TextField(db_default="", blank=True)

    class Meta:
        db_table = "redrive_notice"
        indexes = [models.Index(F("id"), condition=Q(sent_at=None), name="notices_not_sent")]

    def __str__(self) -> str:
        return f"{self.news}: {self.letter_id}"
