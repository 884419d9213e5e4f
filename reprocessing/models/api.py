"""Tokens of the HTTP API, and its recent calls that have an idempotency key."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now


class ApiToken(models.Model):
    """A token of the HTTP API. It belongs to `user`, or to `teams`; when both were deleted, it is refused.

    Attributes:
        token_hash: SHA-256 of the token.
        scopes: names of domain.api.scopes.
        reads: how many requests read something; changes are in the audit log.
    """

    name = models.SlugField(unique=True, max_length=100)
    token_hash = models.BinaryField(unique=True)
    scopes = models.JSONField(default=list)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="api_tokens"
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
    """One request with an idempotency key, and its answer. A repeated request gets the same answer.

    Attributes:
        request_hash: SHA-256 of method, path and body.
        leased_until: until then, the request is being answered; null: it has its answer.
        status, answer: the status code and the body of the answer; null: it is being answered.
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
