"""Watched DLQs with their policies, source queues, and samples of their size."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar, Protocol

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django_celery_beat.models import CrontabSchedule, IntervalSchedule

from reprocessing.domain.message.arn import name_of
from reprocessing.domain.replay.backoff import Backoff
from reprocessing.models.target import FORTNIGHT, Target


class Mode(models.TextChoices):
    """What may happen without a person."""

    OBSERVE = "observe", "observe: read queue attributes only"
    MANUAL = "manual", "manual: redrive when a person starts a run"
    AUTOMATIC = "automatic", "automatic: capture and redrive on a schedule"


class DeleteWhen(models.TextChoices):
    """When the copy in the DLQ is deleted."""

    TERMINAL = "terminal", "when the message is finished"
    CAPTURED = "captured", "as soon as the message is captured"


class MissingKey(models.TextChoices):
    """What happens to a letter without the configured ordering key."""

    PARK = "park", "park the message"
    LANE = "lane", "send it without ordering"


class Jitter(models.TextChoices):
    """How a backoff is spread."""

    FULL = "full", "full: between 0 and the whole delay"
    NONE = "none", "none: the whole delay"


class ParkedHead(models.TextChoices):
    """What happens to a lane whose head is parked."""

    ASIDE = "aside", "continue with the key's next message"
    HOLD = "hold", "hold the key until a person decides"


class StalePolicy(models.TextChoices):
    """What happens to a letter that is captured after a later one of its lane was delivered."""

    PARK = "park", "park it"
    DELIVER = "deliver", "deliver it late"


class OwnBackoff(Protocol):
    """A letter's own backoff, all of it or none: seconds, seconds, jitter."""

    @property
    def backoff_base(self) -> float | None: ...  # noqa: D102
    @property
    def backoff_cap(self) -> float | None: ...  # noqa: D102
    @property
    def backoff_jitter(self) -> str | None: ...  # noqa: D102


#: A stop has its time, person and reason, or there is none.
STOP_IS_COMPLETE = Q(stopped_at=None, stopped_by="", stop_reason="") | (
    Q(stopped_at__isnull=False) & ~Q(stopped_by="") & ~Q(stop_reason="")
)


class DeadLetterQueue(models.Model):
    """One watched DLQ. Durations are seconds.

    `quiet_for` null: the target's visibility timeout. `receive_ceiling` null: no limit. `message_type`, `tenant`:
    fields for rules. `wave_success`: share of a wave that must succeed before the next wave. `open_fields`: JMESPath
    expressions of body fields shown to people without the permission view_payload. `give_up_after`: how long automatic
    redrive retries a failing target before it pauses; null: for ever.

    `native_at`: since when AWS redrives the DLQ to `native_to` (empty: the source queues), as task `native_handle`
    (empty: not known yet). `native_after`: start of the newest earlier task, by AWS's clock. `native_asked_at`: last
    call to AWS. `native_known_at`: last answer. `native_unknown`: why AWS has not answered since. `let_go_at`: since
    when AWS may have moved letters.

    `swept_through`: end of invisibility up to which the last sweep checked held copies. `uncaptured_since`: since when
    every check has found messages that are not captured.
    """

    name = models.SlugField(unique=True, max_length=100)
    url = models.TextField(unique=True)
    arn = models.TextField(unique=True)
    region = models.TextField()
    role_arn = models.TextField(default="", blank=True)
    fifo = models.BooleanField(default=False)
    retention = models.IntegerField(default=345_600)
    mode = models.TextField(choices=Mode.choices, default=Mode.MANUAL)

    ordering_key = models.TextField(default="none")
    sequence = models.TextField(default="system:SentTimestamp")
    idempotency_key = models.TextField(default="message-id")
    missing_key = models.TextField(choices=MissingKey.choices, default=MissingKey.PARK)
    default_origin = models.ForeignKey(
        "Origin", null=True, blank=True, on_delete=models.SET_NULL, related_name="default_of"
    )

    delete_when = models.TextField(choices=DeleteWhen.choices, default=DeleteWhen.TERMINAL)
    max_attempts = models.PositiveIntegerField(default=3)
    backoff_base = models.FloatField(default=60)
    backoff_cap = models.FloatField(default=21_600)
    backoff_jitter = models.TextField(choices=Jitter.choices, default=Jitter.FULL)
    quiet_for = models.FloatField(null=True, blank=True)
    parked_head = models.TextField(choices=ParkedHead.choices, default=ParkedHead.ASIDE)
    stale = models.TextField(choices=StalePolicy.choices, default=StalePolicy.PARK)
    receive_ceiling = models.PositiveIntegerField(null=True, blank=True)
    message_type = models.TextField(default="", blank=True)
    tenant = models.TextField(default="", blank=True)
    waves = models.BooleanField(default=True)
    wave_success = models.FloatField(default=0.8)
    give_up_after = models.FloatField(null=True, blank=True, default=86_400)
    open_fields = models.JSONField(default=list, blank=True)
    custody_limit = models.PositiveIntegerField(default=20_000)
    parking_url = models.TextField(default="", blank=True)

    interval = models.ForeignKey(IntervalSchedule, null=True, blank=True, on_delete=models.PROTECT)
    crontab = models.ForeignKey(CrontabSchedule, null=True, blank=True, on_delete=models.PROTECT)
    at_once = models.BooleanField(default=False)

    stopped_at = models.DateTimeField(null=True, blank=True)
    stopped_by = models.TextField(default="", blank=True)
    stop_reason = models.TextField(default="", blank=True)

    native_at = models.DateTimeField(null=True, blank=True)
    native_by = models.TextField(db_default="", default="", blank=True)
    native_reason = models.TextField(db_default="", default="", blank=True)
    native_to = models.TextField(db_default="", default="", blank=True)
    native_handle = models.TextField(db_default="", default="", blank=True)
    native_after = models.DateTimeField(null=True, blank=True)
    native_asked_at = models.DateTimeField(null=True, blank=True)
    native_known_at = models.DateTimeField(null=True, blank=True)
    native_unknown = models.TextField(db_default="", default="", blank=True)
    let_go_at = models.DateTimeField(null=True, blank=True)

    next_poll_at = models.DateTimeField(null=True, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)
    fence = models.BigIntegerField(default=0)
    unclean_until = models.DateTimeField(null=True, blank=True)
    drained_through = models.DateTimeField(null=True, blank=True)
    swept_through = models.DateTimeField(null=True, blank=True)
    depth_visible = models.BigIntegerField(null=True, blank=True)
    depth_in_flight = models.BigIntegerField(null=True, blank=True)
    depth_at = models.DateTimeField(null=True, blank=True)
    uncaptured_since = models.DateTimeField(null=True, blank=True)
    trouble = models.TextField(default="", blank=True)
    added_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "redrive_dlq"
        verbose_name = "dead-letter queue"
        permissions = [("stop_deadletterqueue", "Can stop and resume a DLQ's sends")]
        constraints = [
            models.CheckConstraint(condition=Q(max_attempts__gte=1), name="a_dlq_allows_one_attempt"),
            models.CheckConstraint(
                condition=Q(
                    mode__in=Mode.values,
                    missing_key__in=MissingKey.values,
                    delete_when__in=DeleteWhen.values,
                    backoff_jitter__in=Jitter.values,
                    parked_head__in=ParkedHead.values,
                    stale__in=StalePolicy.values,
                ),
                name="a_dlq_is_set_to_what_there_is",
            ),
            models.CheckConstraint(
                condition=Q(wave_success__gte=0, wave_success__lte=1), name="a_wave_succeeds_by_a_share"
            ),
            models.CheckConstraint(
                condition=Q(give_up_after=None) | Q(give_up_after__gte=1, give_up_after__lte=FORTNIGHT),
                name="automatic_redrive_gives_up_within_a_fortnight_or_never",
            ),
            models.CheckConstraint(
                condition=Q(backoff_base__gte=0, backoff_base__lte=FORTNIGHT)
                & Q(backoff_cap__gte=0, backoff_cap__lte=FORTNIGHT),
                name="a_backoff_lasts_a_fortnight_at_most",
            ),
            models.CheckConstraint(
                condition=Q(quiet_for=None) | Q(quiet_for__gte=0, quiet_for__lte=FORTNIGHT),
                name="a_fresh_lane_rests_a_fortnight_at_most",
            ),
            models.CheckConstraint(condition=Q(interval=None) | Q(crontab=None), name="a_dlq_has_one_schedule_at_most"),
            models.CheckConstraint(
                condition=~Q(fifo=True) | Q(delete_when=DeleteWhen.CAPTURED), name="a_fifo_dlq_is_emptied_at_capture"
            ),
            models.CheckConstraint(condition=STOP_IS_COMPLETE, name="a_stop_says_who_and_why"),
            models.CheckConstraint(
                condition=Q(native_at=None, native_by="", native_reason="", native_to="", native_handle="")
                | (Q(native_at__isnull=False) & ~Q(native_by="") & ~Q(native_reason="")),
                name="a_native_redrive_says_who_and_why",
            ),
            models.CheckConstraint(
                condition=Q(native_at=None) | Q(leased_until=None), name="nobody_captures_what_aws_moves"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def rest(self, attempts: int, chance: float, own: OwnBackoff | None = None) -> timedelta:
        """Return the backoff after the letter's `attempts`-th counted attempt failed. `chance`: from 0 to below 1.

        `own`: the backoff of the letter's rule; without one the DLQ's applies.
        """
        which = self if own is None or own.backoff_base is None else own
        base, cap = timedelta(seconds=which.backoff_base or 0), timedelta(seconds=which.backoff_cap or 0)
        backoff = Backoff(base, cap, "none" if which.backoff_jitter == Jitter.NONE else "full")
        return backoff.delay(max(attempts - 1, 0), chance)


class NamedOrigins(models.Manager["Origin"]):
    """Source queues that were not removed."""

    def get_queryset(self) -> models.QuerySet[Origin]:
        """Return the source queues that were not removed."""
        return super().get_queryset().filter(removed_at=None)


class Origin(models.Model):
    """A source queue, function, subscription or rule whose messages fail into a DLQ, and the target of its letters.

    `removed_at`: a removed row stays for the history of its letters; `objects` and `dlq.origins` leave it out.
    """

    dlq = models.ForeignKey(DeadLetterQueue, on_delete=models.CASCADE, related_name="origins")
    arn = models.TextField()
    target = models.ForeignKey(Target, on_delete=models.PROTECT, related_name="origins")
    removed_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[NamedOrigins] = NamedOrigins()
    every: ClassVar[models.Manager[Origin]] = models.Manager()

    class Meta:
        db_table = "redrive_origin"
        constraints = [models.UniqueConstraint(fields=["dlq", "arn"], name="an_origin_is_named_once_a_dlq")]

    def __str__(self) -> str:
        return name_of(self.arn)


class DlqNote(models.Model):
    """A sample of a DLQ's counts; see `domain.notifications.dlq_growth.DlqNote`."""

    dlq = models.ForeignKey(DeadLetterQueue, on_delete=models.CASCADE, db_index=False)
    taken_at = models.DateTimeField(db_default=Now())
    uncaptured = models.BigIntegerField()
    captured = models.BigIntegerField()
    unfinished = models.BigIntegerField()

    class Meta:
        db_table = "redrive_dlq_note"
        default_permissions = ()
        constraints = [models.CheckConstraint(condition=Q(uncaptured__gte=0), name="a_note_of_a_dlq_counts_upwards")]
        indexes = [models.Index(F("dlq"), F("taken_at"), name="notes_of_a_dlq")]

    def __str__(self) -> str:
        return f"{self.dlq_id} at {self.taken_at}"
