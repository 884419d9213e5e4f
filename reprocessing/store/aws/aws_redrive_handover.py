"""Hand a DLQ to AWS's own redrive, only while this service cannot capture, send or delete the DLQ's messages.

One transaction locks the DLQ's row. A capture also locks this row when it begins, and so does each addition of letters
to a run (`lock_out_aws`). If such work and a hand-over begin at the same moment, the second of the two waits for the
first, and then is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from psycopg.types.json import Jsonb

from reprocessing.store import rows
from reprocessing.store.aws import aws_redrives
from reprocessing.store.aws.aws_redrives import AwsRedrive
from reprocessing.store.capture import moved_by_aws
from reprocessing.store.runs import run_transitions


@dataclass(frozen=True, slots=True)
class RedriveRequest:
    """The redrive that a person asks AWS to do.

    Attributes:
        to: ARN of the destination; empty: the source queues.
        per_second: messages/s; None: AWS chooses the rate.
        after: when AWS's newest earlier redrive of the DLQ began; None: there was none.
    """

    to: str
    per_second: int | None
    after: datetime | None


@dataclass(frozen=True, slots=True)
class HandoverBlockers:
    """The conditions that may forbid handing a DLQ to AWS's own redrive.

    Attributes:
        moving: AWS redrives the DLQ already.
        stopped: sends of the DLQ, or all sends, are stopped.
        captured_until: end of a running capture's lease.
        orphans_hidden_until: until when a crashed capture may have left messages invisible.
        hidden: number of captured messages that this service keeps invisible in the DLQ.
        hidden_until: when the last of these messages becomes visible; None: there are none.
        to_delete: number of messages of finished letters that are not deleted yet. AWS would send them again.
        under_way: letters are queued, sent without an outcome, or selected by an active run.
        awaited: letters await an outcome that only captures of this DLQ can show: their targets' messages fail into it.
        plans: names of the DLQ's planned runs to which a person gave a name.
        captured: number of captured messages that are visible. AWS may move them, so they do not forbid the hand-over.
    """

    mode: str
    moving: bool
    stopped: bool
    captured_until: datetime | None
    orphans_hidden_until: datetime | None
    hidden: int
    hidden_until: datetime | None
    to_delete: int
    under_way: bool
    awaited: bool
    plans: list[str]
    captured: int

    @property
    def is_free(self) -> bool:
        """Return whether the DLQ may be handed to AWS."""
        return self.mode != "automatic" and not (
            self.moving or self.stopped or self.captured_until or self.orphans_hidden_until or self.hidden
            or self.to_delete or self.under_way or self.awaited or self.plans
        )  # fmt: skip


_LOCK = "SELECT id FROM redrive_dlq WHERE id = %(dlq)b FOR UPDATE"

_BLOCKERS = """
SELECT d.mode, d.aws_redrive_since IS NOT NULL AS moving,
       d.stopped_at IS NOT NULL OR EXISTS (SELECT FROM redrive_global_stop) AS stopped,
       CASE WHEN d.leased_until > redrive_now() THEN d.leased_until END AS captured_until,
       CASE WHEN d.orphans_hidden_until > redrive_now() THEN d.orphans_hidden_until END AS orphans_hidden_until,
       c.hidden, c.hidden_until, x.to_delete, c.captured,
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
       SELECT count(*) FILTER (WHERE visible_until > redrive_now()) AS hidden,
              max(visible_until) FILTER (WHERE visible_until > redrive_now()) AS hidden_until,
              count(*) FILTER (WHERE visible_until <= redrive_now()) AS captured
         FROM redrive_dlq_copy WHERE dlq_id = d.id AND state = 'held') c
 CROSS JOIN LATERAL (
       SELECT count(*) AS to_delete FROM redrive_dlq_copy WHERE dlq_id = d.id AND state = 'delete') x
 WHERE d.id = %(dlq)b
"""

_UNNAMED = """
SELECT id FROM redrive_run WHERE dlq_id = %(dlq)b AND state = 'planned' AND selection ? 'unnamed' ORDER BY id
"""

_CLAIM = """
WITH claimed AS (
    UPDATE redrive_dlq
       SET aws_redrive_since = redrive_now(), aws_redrive_by = %(by)b::text, aws_redrive_reason = %(reason)b::text,
           aws_redrive_destination = %(to)b::text, aws_redrive_task = '',
                  aws_redrive_last_task_at = %(after)b::timestamptz,
           aws_redrive_asked_at = redrive_now(), leased_until = NULL, fence = nextval('redrive_fence'),
           last_error = CASE WHEN starts_with(last_error, %(ours)b::text) THEN '' ELSE last_error END
     WHERE id = %(dlq)b AND aws_redrive_since IS NULL RETURNING id
)
INSERT INTO redrive_audit_entry (act, dlq_id, by, reason, before, after)
SELECT 'started', id, %(by)b::text, %(reason)b::text, '{"native_redrive": false}', %(asked)b::jsonb FROM claimed
"""


def handover_blockers(dlq: int) -> HandoverBlockers:
    """Return which conditions forbid handing a DLQ to AWS's redrive. If none does, the result's `is_free` is true."""
    return rows.fetch(HandoverBlockers, _BLOCKERS, {"dlq": dlq})[0]


def hand_to_aws(dlq: int, wish: RedriveRequest, *, by: str, reason: str) -> AwsRedrive | HandoverBlockers:
    """Mark a DLQ as redriven by AWS, so that this service does not use it any more. The caller calls AWS later.

    `wish`: the redrive that the person asks for. Planned runs to which no person gave a name are aborted. Letters whose
    messages AWS may move are marked (see `moved_by_aws`).

    Returns:
        The stored redrive; or `HandoverBlockers`: something forbids the redrive, and the DLQ was not marked.
    """

    def work() -> AwsRedrive | HandoverBlockers:
        rows.execute(_LOCK, {"dlq": dlq})
        found = handover_blockers(dlq)
        if not found.is_free:
            return found
        for run in rows.column(int, _UNNAMED, {"dlq": dlq}):
            run_transitions.give_up(run, by=by, reason="The DLQ was handed over to AWS's redrive.")
        marked = moved_by_aws.mark_moved(dlq)
        asked = {"native_redrive": True, "to": wish.to, "per_second": wish.per_second, "captured_before": marked}
        values = {"dlq": dlq, "by": by, "reason": reason, "to": wish.to, "after": wish.after, "asked": Jsonb(asked)}
        rows.execute(_CLAIM, values | {"ours": aws_redrives.ERROR_PREFIX})
        return aws_redrives.current(dlq) or found

    return rows.in_transaction(work)
