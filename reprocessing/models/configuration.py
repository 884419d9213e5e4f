"""Policies (named sets of DLQ settings), objects that a configuration file manages, and tokens of the HTTP API."""

from __future__ import annotations

from django.conf import settings as django_settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from reprocessing.domain.configuration.keys import Kind


class Policy(models.Model):
    """A named set of DLQ settings. A DLQ with this policy has these settings, except for values that it sets itself.

    `settings`: values by field name of `DeadLetterQueue`. `interval` is in seconds, `crontab` is a text of five fields.
    """

    name = models.SlugField(unique=True, max_length=100)
    settings = models.JSONField(default=dict)

    class Meta:
        db_table = "redrive_policy"
        verbose_name_plural = "policies"

    def __str__(self) -> str:
        return self.name


class ManagedObject(models.Model):
    """An object that a configuration file manages. While it is locked, the admin does not change the object.

    Attributes:
        name: the object's name; of a target, its ARN or URL.
        written: the object's settings after the last `apply_config`. Commands report later differences as drift.
        applied_from: the text of the option `--source` of `apply_config`, such as the commit that has the file.
        unlocked_at: since when people may change the object in the admin; null: it is locked.
    """

    kind = models.TextField(choices=[(kind.value, kind.singular) for kind in Kind])
    name = models.TextField()
    written = models.JSONField()
    applied_from = models.TextField(blank=True)
    applied_by = models.TextField()
    applied_at = models.DateTimeField(db_default=Now())
    unlocked_at = models.DateTimeField(null=True, blank=True)
    unlocked_by = models.TextField(default="", blank=True)
    unlock_reason = models.TextField(default="", blank=True)

    class Meta:
        db_table = "redrive_managed_object"
        default_permissions = ("view",)
        permissions = [("unlock_managedobject", "Can unlock objects that a configuration file manages")]
        constraints = [
            models.UniqueConstraint(fields=["kind", "name"], name="one_mark_per_managed_object"),
            models.CheckConstraint(
                condition=Q(unlocked_at=None, unlocked_by="", unlock_reason="")
                | (Q(unlocked_at__isnull=False) & ~Q(unlocked_by="") & ~Q(unlock_reason="")),
                name="unlock_has_person_and_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"{Kind(self.kind).singular} {self.name}"


class ApiToken(models.Model):
    """A token of the HTTP API, which belongs to a user or to teams.

    A token is refused after its user, or all its teams, were deleted.

    Attributes:
        token_hash: SHA-256 of the token.
        scopes: what the token may do, as names of `domain.api.scopes`.
        reads: how many read requests were made with the token. Changes are in the audit log.
    """

    name = models.SlugField(unique=True, max_length=100)
    token_hash = models.BinaryField(unique=True)
    scopes = models.JSONField(default=list)
    user = models.ForeignKey(
        django_settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="api_tokens"
    )
    teams = models.ManyToManyField(Group, blank=True, related_name="api_tokens", db_table="redrive_api_token_team")
    added_by = models.TextField()
    added_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    reads = models.BigIntegerField(db_default=0)

    class Meta:
        db_table = "redrive_api_token"
        verbose_name = "API token"
        default_permissions = ("view", "add", "change")
        constraints = [
            models.CheckConstraint(condition=~Q(added_by=""), name="api_token_has_author"),
            models.CheckConstraint(condition=~Q(scopes=[]), name="api_token_has_scopes"),
        ]

    def __str__(self) -> str:
        return self.name


class ApiCall(models.Model):
    """One request to the HTTP API with an idempotency key, and its answer. A repeated request gets the same answer.

    Attributes:
        request_hash: HMAC-SHA-256 of method, path and body, with SECRET_KEY, so that nobody can test a guessed body.
        leased_until: until when a process may work on the answer; null: the answer is stored.
        status, answer: the HTTP status and the body of the answer; null: a process is still working on the answer.
    """

    token = models.ForeignKey(ApiToken, on_delete=models.CASCADE, related_name="calls", db_index=False)
    key = models.TextField()
    request_hash = models.BinaryField()
    made_at = models.DateTimeField()
    leased_until = models.DateTimeField(null=True, blank=True)
    status = models.IntegerField(null=True, blank=True)
    answer = models.BinaryField(null=True, blank=True)

    class Meta:
        db_table = "redrive_api_call"
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["token", "key"], name="one_api_call_per_idempotency_key"),
            models.CheckConstraint(
                condition=Q(leased_until__isnull=False, status=None, answer=None)
                | Q(leased_until=None, status__isnull=False, answer__isnull=False),
                name="api_call_is_answered_or_leased",
            ),
        ]
        indexes = [models.Index(F("made_at"), name="api_calls_by_time")]

    def __str__(self) -> str:
        return f"{self.key} of {self.token_id}"
