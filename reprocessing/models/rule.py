"""Rules, and one version number of all rules together (`Rulebook`)."""

from __future__ import annotations

from typing import Final, LiteralString

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from reprocessing.domain.routing.first_match import Action
from reprocessing.models.dlq import DeadLetterQueue, Jitter
from reprocessing.models.safety import BACKOFF_IS_COMPLETE, RateClass
from reprocessing.models.target import MAX_SECONDS, Target

ACTIONS = [(action.value, action.value) for action in Action]
_NEEDS_TARGET, _NEEDS_DELAY = Action.DIVERT.value, Action.DELAY.value

#: SQL columns with a letter's own backoff: its rule's backoff (table alias `u`), else its rate class's backoff (`c`).
RULE_BACKOFF: Final[LiteralString] = """
       coalesce(u.backoff_base, c.backoff_base) AS backoff_base, coalesce(u.backoff_cap, c.backoff_cap) AS backoff_cap,
       coalesce(u.backoff_jitter, c.backoff_jitter) AS backoff_jitter"""


class Rule(models.Model):
    """One rule. Rules are tried in the order of `position`. The first rule whose conditions are all true decides.

    Attributes:
        conditions: texts in the syntax of domain.routing.conditions; an empty list matches every letter.
        dlq: the rule applies to letters of this DLQ; null: to letters of all DLQs.
        delay: seconds to wait, if the rule's action is `delay`; null for other actions.
        backoff_base, backoff_cap: seconds; null: the rate class's values, else the DLQ's values.
        last_error: the error when the rule last could not be evaluated; empty: no error since its last change.
    """

    name = models.SlugField(unique=True, max_length=100)
    position = models.IntegerField(db_default=100)
    enabled = models.BooleanField(db_default=False)
    dlq = models.ForeignKey(DeadLetterQueue, null=True, blank=True, on_delete=models.CASCADE, related_name="rules")
    conditions = models.JSONField(default=list)
    action = models.TextField(choices=ACTIONS)
    delay = models.FloatField(null=True, blank=True)
    target = models.ForeignKey(Target, null=True, blank=True, on_delete=models.PROTECT, related_name="rules")
    rate_class = models.ForeignKey(RateClass, null=True, blank=True, on_delete=models.PROTECT, related_name="rules")
    backoff_base = models.FloatField(null=True, blank=True)
    backoff_cap = models.FloatField(null=True, blank=True)
    backoff_jitter = models.TextField(choices=Jitter.choices, null=True, blank=True)
    valid_from = models.DateTimeField(null=True, blank=True)
    valid_until = models.DateTimeField(null=True, blank=True)
    match_count = models.BigIntegerField(db_default=0)
    error_count = models.BigIntegerField(db_default=0)
    last_hit_at = models.DateTimeField(null=True, blank=True)
    last_error = models.TextField(db_default="", blank=True)
    created_by = models.TextField()
    made_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "redrive_rule"
        constraints = [
            models.CheckConstraint(
                condition=Q(action=_NEEDS_DELAY, delay__isnull=False, delay__gt=0, delay__lte=MAX_SECONDS)
                | (~Q(action=_NEEDS_DELAY) & Q(delay=None)),
                name="only_delay_rule_has_delay",
            ),
            models.CheckConstraint(
                condition=~Q(action=_NEEDS_TARGET) | Q(target__isnull=False), name="divert_rule_has_target"
            ),
            models.CheckConstraint(
                condition=Q(target=None) | Q(action__in=[Action.REPLAY.value, _NEEDS_TARGET]),
                name="only_replay_and_divert_have_a_target",
            ),
            models.CheckConstraint(
                condition=Q(valid_from=None) | Q(valid_until=None) | Q(valid_until__gt=F("valid_from")),
                name="rule_ends_after_it_begins",
            ),
            models.CheckConstraint(condition=BACKOFF_IS_COMPLETE, name="rule_backoff_complete_or_absent"),
            models.CheckConstraint(condition=~Q(created_by=""), name="rule_has_author"),
        ]
        indexes = [models.Index(F("position"), F("id"), name="rules_by_position")]

    def __str__(self) -> str:
        return self.name


class Rulebook(models.Model):
    """The version of all rules together, in the table's only row. `version` rises with every change of any rule.

    `changes_at`: the next time at which a rule becomes valid or expires; null: no rule does.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    version = models.BigIntegerField(db_default=0)
    changes_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "redrive_rulebook"
        constraints = [models.CheckConstraint(condition=Q(id=1), name="one_rulebook_row")]

    def __str__(self) -> str:
        return f"version {self.version}"
