"""A captured message and its state (`Letter`), and the letters that are parked (`ParkedLetter`)."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from reprocessing.domain.lifecycle import FINISHED_STATES, OPEN_STATES, LetterState, ParkedReason
from reprocessing.models.dlq import DeadLetterQueue, Source
from reprocessing.models.lane import Lane
from reprocessing.models.parking_lot import FailureGroup
from reprocessing.models.rule import ACTIONS, Rule
from reprocessing.models.run import Run
from reprocessing.models.safety import RateClass
from reprocessing.models.target import Target

LETTER_STATES = [(state.value, state.value) for state in LetterState]
PARKED_REASONS = [(reason.value, reason.sentence) for reason in ParkedReason]
RULE_ACTIONS = [*ACTIONS, ("erred", "erred: the rule could not be evaluated")]
_IN_LANE = [state.value for state in OPEN_STATES]
_FINISHED = [state.value for state in FINISHED_STATES]
_PARKED = LetterState.PARKED.value
_ENDED = [state for state in _FINISHED if state != _PARKED]


class Letter(models.Model):
    """One captured message and its state.

    The attempts that count for the DLQ's `max_attempts` are `attempts` minus `attempts_before_release` minus `spared`.

    Attributes:
        public_id: the redrive id, the same on every attempt.
        sequence: sort key that orders the letters of a lane, compared by bytes.
        attempts: number of attempts, including `earlier`, without `not_sent`.
        earlier: number of attempts that other redrive tools made before the capture.
        not_sent: number of attempts that ended before the letter was sent.
        attempts_before_release: number of attempts before a person last released the letter.
        spared: number of attempts that failed because the target was down.
        epoch: a number that rises with every known failure and every edit. It is a part of the FIFO deduplication id,
            so that SQS does not drop the next attempt as a repetition.
        planned: whether the fields are set that give the letter its place in a lane, such as `ordering_key`. They
            depend on the DLQ's settings, and are set after the capture.
        single: whether the letter is alone in its lane, because it has no ordering key.
        blocked_reason: why a run cannot send the captured letter, and will park it; empty: a run can send the letter.
        frees_lane: whether the lane's next letter may be sent, although this letter was sent and has no outcome yet.
        route: what `rule` decided about the letter; `rulebook_version`: the version of all rules at that time.
        presumed: whether the letter counts as delivered only because it did not come back.
        group: the failure group, determined at `grouped_at`.
        revision: the edit whose bytes are sent; null: the captured bytes are sent.
        body_hash: hash of the body that is sent.
        body_deleted_at: when the payload and the edits were deleted, after the DLQ's `keep_bodies`. If the message
            comes back, its bytes are stored again.
        assigned_to: name of the user who works on the parked letter.
        first_sent_at: SQS's SentTimestamp of the captured message.
        expires_at: when SQS deletes the captured message from the DLQ.
    """

    public_id = models.UUIDField(unique=True, default=uuid.uuid4)
    # The column has no index of its own, because a letter changes often, and each change writes all indexes.
    dlq = models.ForeignKey(DeadLetterQueue, on_delete=models.PROTECT, related_name="letters", db_index=False)
    message_id = models.TextField()
    source = models.ForeignKey(
        Source, null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    target = models.ForeignKey(
        Target, null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    # Its index also contains letters without a lane. Without these, PostgreSQL with statistics from a capture would
    # expect no entry, and scan this index where it should look up a letter by its id.
    lane = models.ForeignKey(Lane, null=True, blank=True, on_delete=models.PROTECT, related_name="letters")
    run = models.ForeignKey(
        Run, null=True, blank=True, on_delete=models.PROTECT, related_name="letters", db_index=False
    )
    state = models.TextField(choices=LETTER_STATES, db_default=LetterState.CAPTURED.value)
    due_at = models.DateTimeField(null=True, blank=True)
    attempts = models.IntegerField(db_default=0)
    not_sent = models.IntegerField(db_default=0)
    earlier = models.IntegerField(db_default=0)
    attempts_before_release = models.IntegerField(db_default=0)
    spared = models.IntegerField(db_default=0)
    epoch = models.IntegerField(db_default=0)
    planned = models.BooleanField(db_default=False)
    blocked_reason = models.TextField(db_default="", blank=True)
    ordering_key = models.TextField(null=True, blank=True)
    key_hash = models.BinaryField(null=True, blank=True)
    single = models.BooleanField(db_default=True)
    sequence = models.TextField(null=True, blank=True, db_collation="C")
    idempotency_key = models.TextField(null=True, blank=True)
    body_hash = models.BinaryField()
    size = models.IntegerField()
    frees_lane = models.BooleanField(db_default=False)
    presumed = models.BooleanField(db_default=False)
    # It has no foreign key constraint, and may name a removed rule: a removal would change all letters of the rule.
    # Statements, and pages with `select_related`, find no rule then.
    rule = models.ForeignKey(
        Rule, null=True, blank=True, on_delete=models.DO_NOTHING, related_name="letters", db_constraint=False,
        db_index=False,
    )  # fmt: skip
    route = models.TextField(choices=RULE_ACTIONS, db_default="", blank=True)
    rulebook_version = models.BigIntegerField(db_default=0)
    rate_class = models.ForeignKey(
        RateClass, null=True, blank=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    reason = models.TextField(choices=PARKED_REASONS, db_default="", blank=True)
    detail = models.TextField(db_default="", blank=True)
    released_by = models.TextField(null=True, blank=True)
    duplicate_of = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="duplicates", db_index=False
    )
    first_sent_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    captured_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True, blank=True)
    group = models.ForeignKey(
        FailureGroup, null=True, blank=True, on_delete=models.SET_NULL, related_name="letters", db_index=False
    )
    grouped_at = models.DateTimeField(null=True, blank=True)
    revision = models.ForeignKey(
        "Revision", null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    body_deleted_at = models.DateTimeField(null=True, blank=True)
    assigned_to = models.TextField(db_default="", blank=True)

    class Meta:
        db_table = "redrive_letter"
        permissions = [("export_letter", "Can export messages")]
        constraints = [
            models.UniqueConstraint(fields=["dlq", "message_id"], name="one_letter_per_message"),
            models.CheckConstraint(
                condition=~Q(state__in=_IN_LANE)
                | Q(lane__isnull=False, target__isnull=False, sequence__isnull=False, planned=True),
                name="queued_letter_has_lane_target_and_sequence",
            ),
            models.CheckConstraint(
                condition=(Q(state=LetterState.PARKED.value) & ~Q(reason=""))
                | (~Q(state=LetterState.PARKED.value) & Q(reason="")),
                name="only_parked_letter_has_reason",
            ),
            models.CheckConstraint(
                condition=Q(state=LetterState.DUPLICATE.value, duplicate_of__isnull=False)
                | (~Q(state=LetterState.DUPLICATE.value) & Q(duplicate_of=None)),
                name="only_duplicate_names_delivered_letter",
            ),
            models.CheckConstraint(
                condition=Q(state__in=_FINISHED, finished_at__isnull=False)
                | (~Q(state__in=_FINISHED) & Q(finished_at=None)),
                name="only_finished_letter_has_end_time",
            ),
            models.CheckConstraint(
                condition=Q(frees_lane=False) | Q(state=LetterState.AWAITING.value),
                name="only_awaiting_letter_frees_lane",
            ),
            models.CheckConstraint(condition=Q(attempts__gte=0, not_sent__gte=0), name="attempt_counts_not_negative"),
            models.CheckConstraint(
                condition=Q(spared__gte=0, spared__lte=F("attempts") - F("attempts_before_release")),
                name="outage_attempts_are_since_the_last_release",
            ),
            models.CheckConstraint(
                condition=Q(body_deleted_at=None) | Q(state__in=_ENDED),
                name="only_ended_letter_has_no_body",
            ),
        ]
        indexes = [
            models.Index(
                F("lane"), F("sequence"), F("message_id"), condition=Q(state__in=_IN_LANE, frees_lane=False),
                name="letters_by_lane_and_sequence",
            ),
            models.Index(
                F("dlq"), F("id"), condition=Q(state=LetterState.CAPTURED.value), name="captured_letters_by_dlq"
            ),
            # A letter has an entry only if it got no place in a lane when it was captured.
            models.Index(
                F("dlq"), F("id"), condition=Q(state=LetterState.CAPTURED.value, planned=False),
                name="unplaced_letters_by_dlq",
            ),
            models.Index(
                F("source"), F("key_hash"), F("sequence"), F("message_id"),
                condition=Q(state=LetterState.CAPTURED.value, planned=True, single=False),
                name="captured_letters_by_lane",
            ),
            # Only pages of the admin use these two indexes. A finished letter has one entry in one of them. New lanes
            # have rising ids, so new entries are beside one another; with `key_hash` they would not be.
            models.Index(
                F("lane"), F("sequence"), F("message_id"),
                condition=Q(single=False) & (Q(finished_at__isnull=False) | Q(frees_lane=True)),
                name="ended_letters_by_lane",
            ),
            models.Index(
                F("source"), F("key_hash"), F("sequence"), F("message_id"),
                condition=Q(single=False, lane=None, finished_at__isnull=False),
                name="ended_letters_without_lane",
            ),
            # The condition keeps PostgreSQL from using this index for statements that name a state but no run.
            models.Index(F("run"), F("state"), condition=Q(run__isnull=False), name="letters_by_run_and_state"),
            models.Index(
                F("dlq"), F("finished_at"), F("id"), condition=Q(state=_PARKED), name="parked_letters_by_dlq"
            ),
            models.Index(F("finished_at"), F("id"), condition=Q(state=_PARKED), name="parked_letters_by_time"),
            models.Index(
                F("assigned_to"), F("finished_at"), F("id"), condition=Q(state=_PARKED) & ~Q(assigned_to=""),
                name="parked_letters_by_assignee",
            ),
            # Only pages of the admin use this index. If its condition named states, PostgreSQL with old statistics
            # would use it for the statements that change the state of letters.
            models.Index(
                F("dlq"), F("state"), F("first_sent_at"), condition=Q(finished_at=None) | Q(state=_PARKED),
                name="open_letters_by_state_and_age",
            ),
            # Few letters are discarded or duplicates. Statements that change states name neither state, so PostgreSQL
            # does not use this index for them.
            models.Index(
                F("dlq"), F("state"), F("id"),
                condition=Q(state__in=[LetterState.DISCARDED.value, LetterState.DUPLICATE.value]),
                name="discarded_and_duplicates",
            ),
            models.Index(
                F("dlq"), F("finished_at"), F("id"), condition=Q(finished_at__isnull=False) & ~Q(state=_PARKED),
                name="ended_letters_by_dlq_and_time",
            ),
            models.Index(
                F("id"),
                condition=Q(state__in=[LetterState.CAPTURED.value, LetterState.WAITING.value, _PARKED], planned=True)
                & (Q(grouped_at=None) | Q(grouped_at__lt=F("finished_at"))),
                name="letters_without_group",
            ),
            models.Index(F("group"), F("id"), condition=Q(group__isnull=False), name="letters_by_group"),
            models.Index(F("lane"), condition=Q(state=LetterState.PARKED.value), name="parked_letters_by_lane"),
            models.Index(F("rule"), F("state"), condition=Q(rule__isnull=False), name="letters_by_rule"),
            # Without these conditions, each change of any letter would add entries to the indexes. PostgreSQL uses both
            # when a letter or a revision is deleted.
            models.Index(F("revision"), condition=Q(revision__isnull=False), name="edited_letters_by_revision"),
            models.Index(F("duplicate_of"), condition=Q(duplicate_of__isnull=False), name="duplicates_by_original"),
            models.Index(
                F("dlq"),
                F("body_hash"),
                condition=Q(blocked_reason=ParkedReason.MOVED_BY_AWS.value) | Q(reason=ParkedReason.MOVED_BY_AWS.value),
                name="letters_moved_by_aws",
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.message_id} ({self.state})"


class ParkedLetters(models.Manager["ParkedLetter"]):
    """A manager of parked letters only."""

    def get_queryset(self) -> models.QuerySet[ParkedLetter]:
        """Return the parked letters."""
        return super().get_queryset().filter(state=LetterState.PARKED)


class ParkedLetter(Letter):
    """A parked letter: a proxy of `Letter` for the parking lot in the admin, with its own permissions."""

    objects: ClassVar[ParkedLetters] = ParkedLetters()

    class Meta:
        proxy = True
        default_permissions = ("view", "release", "discard", "edit", "assign")
