"""Define the table of claims. A claim is the right of one worker to do the work that a key identifies."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Length
from django.db.models.lookups import Exact, LessThanOrEqual

from reprocessing.idempotency.conf import LONGEST_KEY, LONGEST_SPACE


class ClaimState(models.TextChoices):
    """The states of the work that a key identifies."""

    IN_PROGRESS = "in_progress", "in progress: a worker does the work, until its lease ends"
    DONE = "done", "done: the work is not done again"
    FAILED = "failed", "failed: the next worker may try again"


class Claim(models.Model):
    """The current claim, or the finished work, of one key in one space.

    Attributes:
        token: a fencing token. Each claim gets a new token, and only the worker with this token changes the row.
        attempts: how often the key was claimed.
        failures: how often the work failed. An attempt that neither failed nor succeeded ended with its lease.
        result: the result of the work as JSON text; None: there is no result.
    """

    pk = models.CompositePrimaryKey("space", "key")
    space = models.TextField()
    key = models.TextField()
    state = models.TextField(choices=ClaimState.choices)
    token = models.UUIDField()
    payload_hash = models.BinaryField(null=True, blank=True)
    result = models.TextField(null=True, blank=True)  # noqa: DJ001  # an empty text is not JSON
    attempts = models.IntegerField()
    failures = models.IntegerField()
    claimed_at = models.DateTimeField()
    lease_until = models.DateTimeField(null=True, blank=True)
    done_at = models.DateTimeField(null=True, blank=True)
    failed_at = models.DateTimeField(null=True, blank=True)
    error_type = models.TextField(default="", blank=True)
    error_message = models.TextField(default="", blank=True)
    keep_until = models.DateTimeField()

    class Meta:
        db_table = "redrive_idempotency_claim"
        constraints = [  # noqa: RUF012  # Django's shape of a Meta
            models.CheckConstraint(
                condition=Q(state__in=ClaimState.values), name="work_is_in_progress_or_done_or_failed"
            ),
            models.CheckConstraint(
                condition=Q(state=ClaimState.IN_PROGRESS, lease_until__isnull=False)
                | (~Q(state=ClaimState.IN_PROGRESS) & Q(lease_until=None)),
                name="work_in_progress_alone_has_a_lease",
            ),
            models.CheckConstraint(
                condition=Q(state=ClaimState.DONE, done_at__isnull=False)
                | (~Q(state=ClaimState.DONE) & Q(done_at=None)),
                name="work_that_is_done_alone_says_since_when",
            ),
            models.CheckConstraint(
                condition=Q(result=None) | Q(state=ClaimState.DONE), name="only_work_that_is_done_has_a_result"
            ),
            models.CheckConstraint(
                condition=Q(failures=0, failed_at=None, error_type="", error_message="")
                | (Q(failures__gt=0, failed_at__isnull=False) & ~Q(error_type="")),
                name="a_failure_says_when_and_of_what_type",
            ),
            models.CheckConstraint(
                condition=~Q(state=ClaimState.FAILED) | Q(failures__gt=0), name="failed_work_counts_a_failure"
            ),
            models.CheckConstraint(
                condition=Q(failures__gte=0, attempts__gte=1) & Q(attempts__gte=F("failures")),
                name="every_failure_was_an_attempt",
            ),
            models.CheckConstraint(condition=Exact(Length("payload_hash"), 32), name="a_payload_hash_is_a_sha256"),
            models.CheckConstraint(condition=~Q(space="") & ~Q(key=""), name="a_space_and_a_key_say_something"),
            models.CheckConstraint(
                condition=Q(
                    LessThanOrEqual(Length("space"), LONGEST_SPACE), LessThanOrEqual(Length("key"), LONGEST_KEY)
                ),
                name="a_space_and_a_key_are_short_enough",
            ),
        ]
        indexes = [models.Index(F("keep_until"), name="claims_by_when_they_may_go")]  # noqa: RUF012  # Django's shape of a Meta

    def __str__(self) -> str:
        return f"{self.space}: {self.state}"
