"""The accounts and regions that discovery scans for DLQs, and the queues and sources that it found."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from reprocessing.domain.dlqs.discovery import Scope, SourceKind


class DiscoveryStage(models.TextChoices):
    """A part of a scan. A scan reads queues first, then functions, subscriptions, rules, and other named queues."""

    QUEUES = "queues", "queues"
    FUNCTIONS = "functions", "Lambda functions"
    SUBSCRIPTIONS = "subscriptions", "SNS subscriptions"
    RULES = "rules", "EventBridge rules"
    NAMED = "named", "other queues that sources name"


class DiscoveryScope(models.Model):
    """One account and region, with a filter, that discovery scans (`domain.dlqs.discovery.Scope`).

    Attributes:
        daily: whether beat repeats the scan.
        next_at: when the scan is due; null: never.
        stage: the part with which the scan in progress continues; empty: no scan is in progress.
        marker: AWS's token for the next page of results in this part; empty: the first page.
        began_at: when the current or last scan began. Rows with an older `read_at` or `seen_at` were not found again.
        scanned_at: when the last complete scan ended.
        unread: what the current or last scan could not read: pairs of a `SourceKind` and a sentence with the reason and
            what to do. An empty kind: the scan could read some sources of the kind, but not all.
        leased_until: when the lease of the scanning process ends; `fence`: the number of the lease.
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
    scanned_at = models.DateTimeField(null=True, blank=True)
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
                name="open_scan_has_stage_and_start",
            ),
        ]

    def __str__(self) -> str:
        return self.scope.words

    @property
    def scope(self) -> Scope:
        """Return the account, the region and the filter of the scan."""
        return Scope(self.region, self.role_arn, self.prefix, self.tags)


class DiscoveredQueue(models.Model):
    """A queue that discovery found in SQS, or that a source (`DiscoveredSource`) names. A queue with a source is a DLQ.

    Attributes:
        scope: the first scope that found the queue, or the last scope without a filter that found it.
        tags: the queue's tags; null: not known, because only a scan of a scope with tags reads tags.
        retention: seconds for which the queue keeps a message; null: not known.
        visible, in_flight: how many messages of the queue are visible, or in flight; null: not known.
        oldest_age: age (s) of the oldest message at `read_at`, from CloudWatch.
        last_error: why the queue could not be read, and what to do; empty: it was read.
        reported_at: when discovery first listed the queue as a DLQ, and reported it if it was new; null: not yet.
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
    last_error = models.TextField(default="", blank=True)
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
                    Q(last_error="", retention__isnull=False, visible__isnull=False, in_flight__isnull=False)
                    | (~Q(last_error="") & Q(retention=None, visible=None, in_flight=None, oldest_age=None))
                ),
                name="discovered_queue_was_read_or_has_error",
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
    """A resource whose failed messages go to the queue `dlq_arn` (`domain.dlqs.discovery.FailureSource`).

    `through`: the ARN of the EventBridge rule, if the source is a target of a rule; else empty.
    """

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
