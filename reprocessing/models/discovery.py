"""What discovery looks at, and the queues and sources of failed messages that it found."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from reprocessing.domain.dlqs.discovery import Scope, SourceKind


class DiscoveryStage(models.TextChoices):
    """The part of a look that is next; the parts are done in this order."""

    QUEUES = "queues", "queues"
    FUNCTIONS = "functions", "Lambda functions"
    SUBSCRIPTIONS = "subscriptions", "SNS subscriptions"
    RULES = "rules", "EventBridge rules"
    NAMED = "named", "other queues that were named as DLQ"


class DiscoveryScope(models.Model):
    """One account and region, with a filter, that discovery looks at (`domain.dlqs.discovery.Scope`).

    Attributes:
        daily: whether beat repeats the discovery.
        next_at: when beat looks next; null: only a person looks.
        stage: what the current look does next; empty: no look is open. A look that was interrupted goes on there.
        marker: where the next page of this stage begins; empty: at its beginning.
        began_at: when the current or last look began; the look has seen what was read since.
        looked_at: when a look was last complete.
        unread: what could not be read in the current or last look: pairs of a `SourceKind` (empty: only a part of the
            sources of a kind is missing) and a sentence: what, why, and what to do.
        leased_until: until when one process may look; `fence` is a number that rises with every lease.
    """

    role_arn = models.TextField(default="", blank=True)
    region = models.TextField()
    prefix = models.TextField(default="", blank=True)
    tags = models.JSONField(default=dict, blank=True)
    daily = models.BooleanField(default=False)
    next_at = models.DateTimeField(null=True, blank=True)
    stage = models.TextField(choices=DiscoveryStage.choices, default="", blank=True)
    marker = models.TextField(default="", blank=True)
    began_at = models.DateTimeField(null=True, blank=True)
    looked_at = models.DateTimeField(null=True, blank=True)
    unread = models.JSONField(default=list, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)
    fence = models.BigIntegerField(default=0)

    class Meta:
        db_table = "redrive_discovery_scope"
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["role_arn", "region", "prefix", "tags"], name="one_discovery_per_role_region_and_filter"
            ),
            models.CheckConstraint(condition=~Q(region=""), name="discovery_has_region"),
            models.CheckConstraint(
                condition=Q(stage="", marker="") | Q(stage__in=DiscoveryStage.values, began_at__isnull=False),
                name="open_look_has_stage_and_start",
            ),
        ]

    def __str__(self) -> str:
        return self.scope.words

    @property
    def scope(self) -> Scope:
        """The account, region and filter as a value."""
        return Scope(self.region, self.role_arn, self.prefix, self.tags)


class DiscoveredQueue(models.Model):
    """A queue that discovery has read, or that a source of failed messages names. It is a DLQ if it has a source.

    Attributes:
        scope: the first discovery that found the queue; a discovery without filter takes it over.
        tags: null: not known; only discoveries with tags read them.
        retention: seconds; null, as the other numbers: not known.
        oldest_age: seconds that the oldest message had been in the queue at `read_at`, by CloudWatch.
        trouble: why the queue could not be read, and what to do.
        reported_at: when the queue was first listed as a DLQ; since then it is not reported as new.
    """

    arn = models.TextField(unique=True)
    url = models.TextField(default="", blank=True)
    scope = models.ForeignKey(DiscoveryScope, on_delete=models.CASCADE, related_name="queues")
    tags = models.JSONField(null=True, blank=True)
    retention = models.IntegerField(null=True, blank=True)
    visible = models.BigIntegerField(null=True, blank=True)
    in_flight = models.BigIntegerField(null=True, blank=True)
    oldest_age = models.FloatField(null=True, blank=True)
    read_at = models.DateTimeField(db_default=Now())
    trouble = models.TextField(default="", blank=True)
    reported_at = models.DateTimeField(null=True, blank=True)
    ignored_at = models.DateTimeField(null=True, blank=True)
    ignored_by = models.TextField(default="", blank=True)
    ignore_reason = models.TextField(default="", blank=True)

    class Meta:
        db_table = "redrive_discovered_queue"
        default_permissions = ("view",)
        constraints = [
            models.CheckConstraint(condition=Q(arn__startswith="arn:"), name="discovered_queue_has_arn"),
            models.CheckConstraint(
                condition=(
                    Q(trouble="", retention__isnull=False, visible__isnull=False, in_flight__isnull=False)
                    | (~Q(trouble="") & Q(retention=None, visible=None, in_flight=None, oldest_age=None))
                ),
                name="discovered_queue_was_read_or_has_trouble",
            ),
            models.CheckConstraint(
                condition=Q(ignored_at=None, ignored_by="", ignore_reason="")
                | (Q(ignored_at__isnull=False) & ~Q(ignored_by="") & ~Q(ignore_reason="")),
                name="ignored_queue_has_person_and_reason",
            ),
        ]

    def __str__(self) -> str:
        return self.arn.rpartition(":")[2]


class DiscoveredSource(models.Model):
    """A resource whose failed messages go to a queue (`domain.dlqs.discovery.FailureSource`)."""

    dlq_arn = models.TextField()
    source_arn = models.TextField()
    through = models.TextField(default="", blank=True)
    kind = models.TextField(choices=[(kind.value, kind.value) for kind in SourceKind])
    scope = models.ForeignKey(DiscoveryScope, on_delete=models.CASCADE, related_name="sources")
    seen_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "redrive_discovered_source"
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["dlq_arn", "source_arn", "through"], name="one_row_per_dlq_source_and_rule"
            ),
            models.CheckConstraint(
                condition=Q(kind__in=[kind.value for kind in SourceKind]), name="discovered_source_kind_is_known"
            ),
            models.CheckConstraint(
                condition=Q(through="") | Q(kind=SourceKind.RULE.value), name="only_rules_have_targets"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.source_arn} -> {self.dlq_arn}"
