"""Hand a DLQ to AWS's own redrive, only when nothing of ours can touch its messages.

One transaction locks the DLQ's row, which a capture's lease updates and every enlistment locks (`keep_out`). Of a drain
and a hand-over at the same moment one comes first, and the other sees it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from psycopg.types.json import Jsonb

from reprocessing.store import rows
from reprocessing.store.aws import aws_redrives
from reprocessing.store.aws.aws_redrives import Native
from reprocessing.store.capture import moved_by_aws
from reprocessing.store.runs import run_transitions


@dataclass(frozen=True, slots=True)
class Wish:
    """What AWS is asked. `to` empty: to the source queues. `per_second` None: AWS's rate.

    `after`: start of the newest task that AWS lists.
    """

    to: str
    per_second: int | None
    after: datetime | None


@dataclass(frozen=True, slots=True)
class Standing:
    """Everything that may keep AWS out of a DLQ.

    Attributes:
        stopped: its sends, or all sends, are stopped.
        captured_until: end of a running capture's lease.
        unclean_until: until when a crashed capture may have left messages invisible.
        hidden: copies that we keep invisible, until `hidden_until`.
        to_delete: copies of finished letters, which AWS would send again.
        under_way: letters are queued, sent without an outcome, or selected by an active run.
        awaited: letters sent to queues of this DLQ await proof by absence.
        plans: named plans with letters of it.
        captured: letters in no run whose copies are visible: AWS may move these.
    """

    mode: str
    moving: bool
    stopped: bool
    captured_until: datetime | None
    unclean_until: datetime | None
    hidden: int
    hidden_until: datetime | None
    to_delete: int
    under_way: bool
    awaited: bool
    plans: list[str]
    captured: int

    @property
    def is_free(self) -> bool:
        """Whether AWS may have the DLQ."""
        return self.mode != "automatic" and not (
            self.moving or self.stopped or self.captured_until or self.unclean_until or self.hidden or self.to_delete
            or self.under_way or self.awaited or self.plans
        )  # fmt: skip


_LOCK = "SELECT id FROM redrive_dlq WHERE id = %(dlq)b FOR UPDATE"

_STANDING = """
SELECT d.mode, d.native_at IS NOT NULL AS moving,
       d.stopped_at IS NOT NULL OR EXISTS (SELECT FROM redrive_halt) AS stopped,
       CASE WHEN d.leased_until > redrive_now() THEN d.leased_until END AS captured_until,
       CASE WHEN d.unclean_until > redrive_now() THEN d.unclean_until END AS unclean_until,
       c.hidden, c.hidden_until, c.to_delete, c.captured,
       EXISTS (SELECT FROM redrive_letter l WHERE l.dlq_id = d.id AND l.state IN ('waiting', 'sending', 'awaiting')
                  AND l.finished_at IS NULL)
           OR EXISTS (SELECT FROM redrive_run r JOIN redrive_letter l ON l.run_id = r.id AND l.state = 'captured'
                       WHERE r.dlq_id = d.id AND r.state IN ('running', 'paused')) AS under_way,
       EXISTS (SELECT FROM redrive_attempt a JOIN redrive_target t ON t.id = a.target_id
                WHERE t.watched_by_id = d.id AND a.closed_at IS NULL
                  AND num_nonnulls(a.taken_at, a.deadline) > 0) AS awaited,
       ARRAY (SELECT r.name FROM redrive_run r
               WHERE r.dlq_id = d.id AND r.state = 'planned' AND NOT r.selection ? 'unnamed' ORDER BY r.id) AS plans
  FROM redrive_dlq d CROSS JOIN LATERAL (
       SELECT count(*) FILTER (WHERE state = 'held' AND visible_until > redrive_now()) AS hidden,
              max(visible_until) FILTER (WHERE state = 'held' AND visible_until > redrive_now()) AS hidden_until,
              count(*) FILTER (WHERE state = 'held' AND visible_until <= redrive_now()) AS captured,
              count(*) FILTER (WHERE state = 'delete') AS to_delete
         FROM redrive_custody WHERE dlq_id = d.id AND state IN ('held', 'delete')) c
 WHERE d.id = %(dlq)b
"""

_UNNAMED = """
SELECT id FROM redrive_run WHERE dlq_id = %(dlq)b AND state = 'planned' AND selection ? 'unnamed' ORDER BY id
"""

_CLAIM = """
WITH claimed AS (
    UPDATE redrive_dlq
       SET native_at = redrive_now(), native_by = %(by)b::text, native_reason = %(reason)b::text,
           native_to = %(to)b::text, native_handle = '', native_after = %(after)b::timestamptz,
           native_asked_at = redrive_now(), leased_until = NULL, fence = nextval('redrive_fence'),
           trouble = CASE WHEN starts_with(trouble, %(ours)b::text) THEN '' ELSE trouble END
     WHERE id = %(dlq)b AND native_at IS NULL RETURNING id
)
INSERT INTO redrive_review (act, dlq_id, by, reason, before, after)
SELECT 'started', id, %(by)b::text, %(reason)b::text, '{"native_redrive": false}', %(asked)b::jsonb FROM claimed
"""


def standing(dlq: int) -> Standing:
    """Return everything that may keep AWS out of a DLQ."""
    return rows.fetch(Standing, _STANDING, {"dlq": dlq})[0]


def claim(dlq: int, wish: Wish, *, by: str, reason: str) -> Native | Standing:
    """Mark a DLQ as AWS's; from the commit on nothing of ours touches it. AWS is not called yet.

    Returns:
        The mark; or what keeps AWS out, with nothing done.
    """

    def work() -> Native | Standing:
        rows.execute(_LOCK, {"dlq": dlq})
        found = standing(dlq)
        if not found.is_free:
            return found
        for run in rows.column(int, _UNNAMED, {"dlq": dlq}):
            run_transitions.give_up(run, by=by, reason="The DLQ was handed over to AWS's redrive.")
        let_go = moved_by_aws.let_go(dlq)
        asked = {"native_redrive": True, "to": wish.to, "per_second": wish.per_second, "captured_before": let_go}
        values = {"dlq": dlq, "by": by, "reason": reason, "to": wish.to, "after": wish.after, "asked": Jsonb(asked)}
        rows.execute(_CLAIM, values | {"ours": aws_redrives.TROUBLE})
        return aws_redrives.of(dlq) or found

    return rows.whole(work)
