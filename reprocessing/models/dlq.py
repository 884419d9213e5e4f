"""Watched DLQs with their settings, and their source queues."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from django.contrib.auth.models import Group
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django_celery_beat.models import CrontabSchedule, IntervalSchedule

from reprocessing.domain.message.arn import resource_name
from reprocessing.domain.replay.backoff import Backoff, OwnBackoff
from reprocessing.domain.search.search_fields import MAX_FIELDS
from reprocessing.models.configuration import Policy
from reprocessing.models.target import MAX_SECONDS, Target

#: Max messages that a standard queue may have in flight (AWS: Amazon SQS standard queue in-flight limit).
MAX_HELD_COPIES = 120_000
#: Max value of `keep_bodies`, in days: 10 years.
MAX_DAYS = 3_650


class Mode(models.TextChoices):
    """What the service may do with a DLQ: only read its attributes, or redrive on request, or redrive by itself."""

    OBSERVE = "observe", "observe: read queue attributes only"
    MANUAL = "manual", "manual: redrive when a person starts a run"
    AUTOMATIC = "automatic", "automatic: capture and redrive on a schedule"


class DeleteWhen(models.TextChoices):
    """When a captured message is deleted from the DLQ."""

    TERMINAL = "terminal", "when the message is finished"
    CAPTURED = "captured", "as soon as the message is captured"


class MissingKey(models.TextChoices):
    """What to do with a letter whose message has no ordering key."""

    PARK = "park", "park the message"
    LANE = "lane", "send it without ordering"


class Jitter(models.TextChoices):
    """Whether the delay of a backoff is random (jitter), so that letters are not all sent again at the same time."""

    FULL = "full", "full: between 0 and the whole delay"
    NONE = "none", "none: the whole delay"


class ParkedHead(models.TextChoices):
    """What happens to a lane whose first unfinished letter is parked."""

    ASIDE = "aside", "continue with the key's next message"
    HOLD = "hold", "hold the key until a person decides"


class StalePolicy(models.TextChoices):
    """What to do with a letter that is captured after a later letter of its lane was delivered."""

    PARK = "park", "park it"
    DELIVER = "deliver", "deliver it late"


#: Condition of database constraints: a stop has time, person and reason; without a stop, all three are empty.
STOP_IS_COMPLETE = Q(stopped_at=None, stopped_by="", stop_reason="") | (
    Q(stopped_at__isnull=False) & ~Q(stopped_by="") & ~Q(stop_reason="")
)


class DeadLetterQueue(models.Model):
    """One watched DLQ. Durations are seconds.

    Attributes:
        own_settings: names of the fields that the DLQ sets itself; other settings have the values of `policy`.
        default_source: the source queue of letters whose messages do not name their source queue; null: none.
        new_key_delay: how long a lane's first letter waits for retries in its source queue; null: a visibility timeout.
        receive_limit: a letter that the service received more often than this is parked; null: no limit.
        message_type, tenant: selectors that say where a message has its type and its tenant, for rules.
        wave_success: share of a wave's letters (0 to 1) that must succeed before the next wave starts.
        public_fields: JMESPath expressions of body fields that people see without the permission view_payload.
        approval_above: an action on more messages needs a second person; null: as in `ApprovalDefault`.
        masked_fields: names of fields, and JMESPath expressions of body fields, whose values are masked.
        search_fields: fields by whose values people find messages, each as NAME=SELECTOR (domain.search.search_fields).
        search_version: raised when search or mask settings change, so that captures read these settings again.
        search_indexed_for: digest of the settings for which letters are indexed, or are being indexed.
        search_reindex_below: letters with ids below this number must still be indexed again; null: all are indexed.
        held_copies_limit: max captured messages that stay in the DLQ; further messages are deleted when captured.
        keep_bodies: days after which the body of a finished letter is deleted; null: only together with the letter.
        bodies_deleted_through: the bodies of all letters that finished before this time are deleted.
        give_up_after: how long an automatic run tries a failing target before it pauses; null: it never pauses.
        aws_redrive_since: since when AWS's own redrive moves the DLQ's messages; null: AWS moves no messages now.
        aws_redrive_destination: where AWS moves the messages; empty: to the source queues.
        aws_redrive_task: task handle of AWS's redrive; empty: not known yet.
        aws_redrive_last_task_at: when the newest earlier task of AWS's redrive on this DLQ began, by AWS's clock.
        aws_redrive_asked_at, aws_redrive_answered_at: when AWS was last asked about its redrive, and last answered.
        aws_redrive_error: why AWS did not answer the last time that it was asked; empty: AWS answered.
        aws_may_have_moved_at: since when AWS may have moved copies of captured letters; null: AWS moved none.
        poll_began_at: when the last poll or capture by a Celery task began; null: none has begun.
        leased_until: until when only one worker may capture the DLQ. `fence`: a number that rises with every lease.
        orphans_hidden_until: until when a crashed capture may have left messages invisible.
        drained_through: start of the last capture that found the DLQ empty at its end.
        places_version: rises when captured letters need new places in lanes; a place for an older version is not kept.
        teams: Django groups whose members see the DLQ; empty: only people with permission view_all_dlqs see it.
        swept_through: where the next search for DLQ copies of finished letters begins (by `DlqCopy.visible_until`).
        uncaptured_since: since when every check has found uncaptured messages in the DLQ; null: none were found.
    """

    name = models.SlugField(unique=True, max_length=100)
    url = models.TextField(unique=True)
    arn = models.TextField(unique=True)
    region = models.TextField()
    role_arn = models.TextField(default="", blank=True)
    fifo = models.BooleanField(default=False)
    retention = models.IntegerField(default=345_600)
    mode = models.TextField(choices=Mode.choices, default=Mode.MANUAL)
    policy = models.ForeignKey(Policy, null=True, blank=True, on_delete=models.PROTECT, related_name="dlqs")
    own_settings = ArrayField(models.TextField(), default=list, blank=True)

    ordering_key = models.TextField(default="none")
    sequence = models.TextField(default="system:SentTimestamp")
    idempotency_key = models.TextField(default="message-id")
    missing_key = models.TextField(choices=MissingKey.choices, default=MissingKey.PARK)
    default_source = models.ForeignKey(
        "Source", null=True, blank=True, on_delete=models.SET_NULL, related_name="default_of"
    )

    delete_when = models.TextField(choices=DeleteWhen.choices, default=DeleteWhen.TERMINAL)
    max_attempts = models.PositiveIntegerField(default=3)
    backoff_base = models.FloatField(default=60)
    backoff_cap = models.FloatField(default=21_600)
    backoff_jitter = models.TextField(choices=Jitter.choices, default=Jitter.FULL)
    new_key_delay = models.FloatField(null=True, blank=True)
    when_parked = models.TextField(choices=ParkedHead.choices, default=ParkedHead.ASIDE)
    stale = models.TextField(choices=StalePolicy.choices, default=StalePolicy.PARK)
    receive_limit = models.PositiveIntegerField(null=True, blank=True)
    message_type = models.TextField(default="", blank=True)
    tenant = models.TextField(default="", blank=True)
    waves = models.BooleanField(default=True)
    wave_success = models.FloatField(default=0.8)
    give_up_after = models.FloatField(null=True, blank=True, default=86_400)
    approval_above = models.PositiveIntegerField(null=True, blank=True)
    keep_bodies = models.PositiveIntegerField(null=True, blank=True)
    public_fields = models.JSONField(default=list, blank=True)
    masked_fields = models.JSONField(default=list, blank=True)
    search_fields = ArrayField(models.TextField(), default=list, blank=True)
    search_version = models.IntegerField(default=0)
    search_indexed_for = models.TextField(default="", blank=True)
    search_reindex_below = models.BigIntegerField(null=True, blank=True)
    held_copies_limit = models.PositiveIntegerField(default=20_000)
    parking_url = models.TextField(default="", blank=True)

    interval = models.ForeignKey(IntervalSchedule, null=True, blank=True, on_delete=models.PROTECT)
    crontab = models.ForeignKey(CrontabSchedule, null=True, blank=True, on_delete=models.PROTECT)
    at_once = models.BooleanField(default=False)

    stopped_at = models.DateTimeField(null=True, blank=True)
    stopped_by = models.TextField(default="", blank=True)
    stop_reason = models.TextField(default="", blank=True)

    aws_redrive_since = models.DateTimeField(null=True, blank=True)
    aws_redrive_by = models.TextField(db_default="", default="", blank=True)
    aws_redrive_reason = models.TextField(db_default="", default="", blank=True)
    aws_redrive_destination = models.TextField(db_default="", default="", blank=True)
    aws_redrive_task = models.TextField(db_default="", default="", blank=True)
    aws_redrive_last_task_at = models.DateTimeField(null=True, blank=True)
    aws_redrive_asked_at = models.DateTimeField(null=True, blank=True)
    aws_redrive_answered_at = models.DateTimeField(null=True, blank=True)
    aws_redrive_error = models.TextField(db_default="", default="", blank=True)
    aws_may_have_moved_at = models.DateTimeField(null=True, blank=True)

    next_poll_at = models.DateTimeField(null=True, blank=True)
    poll_began_at = models.DateTimeField(null=True, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)
    fence = models.BigIntegerField(default=0)
    orphans_hidden_until = models.DateTimeField(null=True, blank=True)
    places_version = models.IntegerField(default=0)
    drained_through = models.DateTimeField(null=True, blank=True)
    swept_through = models.DateTimeField(null=True, blank=True)
    bodies_deleted_through = models.DateTimeField(null=True, blank=True)
    depth_visible = models.BigIntegerField(null=True, blank=True)
    depth_in_flight = models.BigIntegerField(null=True, blank=True)
    depth_at = models.DateTimeField(null=True, blank=True)
    uncaptured_since = models.DateTimeField(null=True, blank=True)
    last_error = models.TextField(default="", blank=True)
    added_at = models.DateTimeField(auto_now_add=True)
    teams = models.ManyToManyField(Group, blank=True, related_name="dlqs", db_table="redrive_dlq_team")

    class Meta:
        db_table = "redrive_dlq"
        verbose_name = "dead-letter queue"
        permissions = [
            ("stop_deadletterqueue", "Can stop and resume a DLQ's sends"),
            ("view_all_dlqs", "Can see the DLQs of all teams"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(max_attempts__gte=1), name="dlq_allows_at_least_one_attempt"),
            models.CheckConstraint(
                condition=Q(
                    mode__in=Mode.values,
                    missing_key__in=MissingKey.values,
                    delete_when__in=DeleteWhen.values,
                    backoff_jitter__in=Jitter.values,
                    when_parked__in=ParkedHead.values,
                    stale__in=StalePolicy.values,
                ),
                name="dlq_choices_are_known",
            ),
            models.CheckConstraint(
                condition=Q(wave_success__gte=0, wave_success__lte=1), name="wave_success_between_0_and_1"
            ),
            models.CheckConstraint(
                condition=Q(give_up_after=None) | Q(give_up_after__gte=1, give_up_after__lte=MAX_SECONDS),
                name="give_up_after_between_1_second_and_14_days",
            ),
            models.CheckConstraint(
                condition=Q(keep_bodies=None) | Q(keep_bodies__lte=MAX_DAYS), name="keep_bodies_at_most_10_years"
            ),
            models.CheckConstraint(
                condition=Q(search_fields__len__lte=MAX_FIELDS), name="dlq_has_at_most_10_search_fields"
            ),
            models.CheckConstraint(
                condition=Q(backoff_base__gte=0, backoff_base__lte=MAX_SECONDS)
                & Q(backoff_cap__gte=0, backoff_cap__lte=MAX_SECONDS),
                name="dlq_backoff_at_most_14_days",
            ),
            models.CheckConstraint(
                condition=Q(new_key_delay=None) | Q(new_key_delay__gte=0, new_key_delay__lte=MAX_SECONDS),
                name="new_key_delay_at_most_14_days",
            ),
            models.CheckConstraint(
                condition=Q(own_settings=[]) | Q(policy__isnull=False), name="only_dlq_with_policy_has_own_settings"
            ),
            models.CheckConstraint(condition=Q(interval=None) | Q(crontab=None), name="dlq_has_interval_or_crontab"),
            models.CheckConstraint(
                condition=~Q(fifo=True) | Q(delete_when=DeleteWhen.CAPTURED), name="fifo_dlq_deletes_when_captured"
            ),
            models.CheckConstraint(condition=STOP_IS_COMPLETE, name="dlq_stop_has_person_and_reason"),
            models.CheckConstraint(
                condition=Q(
                    aws_redrive_since=None,
                    aws_redrive_by="",
                    aws_redrive_reason="",
                    aws_redrive_destination="",
                    aws_redrive_task="",
                )
                | (Q(aws_redrive_since__isnull=False) & ~Q(aws_redrive_by="") & ~Q(aws_redrive_reason="")),
                name="aws_redrive_has_person_and_reason",
            ),
            models.CheckConstraint(
                condition=Q(aws_redrive_since=None) | Q(leased_until=None), name="no_capture_during_aws_redrive"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def backoff_delay(self, attempts: int, chance: float, own: OwnBackoff | None = None) -> timedelta:
        """Return how long a letter waits after `attempts` counted attempts have failed.

        `chance`: a random number from 0 to below 1. `own`: the letter's own backoff; None: the DLQ's backoff.
        """
        which = self if own is None or own.backoff_base is None else own
        base, cap = timedelta(seconds=which.backoff_base or 0), timedelta(seconds=which.backoff_cap or 0)
        backoff = Backoff(base, cap, "none" if which.backoff_jitter == Jitter.NONE else "full")
        return backoff.delay(max(attempts - 1, 0), chance)


class PresentSources(models.Manager["Source"]):
    """A manager that leaves out source queues that were removed."""

    def get_queryset(self) -> models.QuerySet[Source]:
        """Return the source queues that were not removed."""
        return super().get_queryset().filter(removed_at=None)


class Source(models.Model):
    """A source queue, function, subscription or rule whose messages fail into a DLQ, and the target of these messages.

    A removed source stays in the table, because its letters refer to it; `objects` and `dlq.sources` leave it out.
    """

    dlq = models.ForeignKey(DeadLetterQueue, on_delete=models.CASCADE, related_name="sources")
    arn = models.TextField()
    target = models.ForeignKey(Target, on_delete=models.PROTECT, related_name="sources")
    removed_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[PresentSources] = PresentSources()
    with_removed: ClassVar[models.Manager[Source]] = models.Manager()

    class Meta:
        db_table = "redrive_source"
        constraints = [models.UniqueConstraint(fields=["dlq", "arn"], name="one_source_per_dlq_and_arn")]

    def __str__(self) -> str:
        return resource_name(self.arn)
