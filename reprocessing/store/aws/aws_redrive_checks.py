"""Find the DLQs for which `ListMessageMoveTasks` must be called now, and record when AWS last answered for a DLQ.

A person may start AWS's own redrive of a DLQ at any time. If this service did not ask AWS before it sends a captured
message, AWS could move the same message, and the message would be delivered twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, LiteralString

from reprocessing.store import rows

#: Seconds for which AWS's answer whether it redrives a DLQ is valid. A worker asks again after 45 seconds, so that
#: lanes do not wait for the next answer.
ANSWER_VALID_FOR: Final = 60
_ASK_AFTER: Final = 45
#: Seconds after which another worker may ask AWS again, if AWS has not answered. No call to AWS takes longer.
_ANSWERED_WITHIN: Final = 20
#: Highest number of DLQs about which a worker asks AWS in one call of `dlqs_to_ask_about`.
_MOST: Final = 32

# True of a DLQ d with a visible copy. The least `visible_until` is read from an index: with EXISTS, the planner would
# read all copies if most are invisible.
_IN_SIGHT: Final[LiteralString] = """
coalesce((SELECT c.visible_until FROM redrive_dlq_copy c WHERE c.dlq_id = d.id AND c.state = 'held'
           ORDER BY c.dlq_id, c.visible_until LIMIT 1) <= redrive_now(), false)
"""

#: True of a DLQ d if copies of its messages are visible, and AWS has not answered for a minute whether it moved them.
#: Until AWS answers, no lane of the DLQ is leased: a message that AWS moved would be sent twice (docs/adr/0032).
MOVES_UNKNOWN: Final[LiteralString] = f"""
(coalesce(d.aws_redrive_answered_at <= redrive_now() - make_interval(secs => {ANSWER_VALID_FOR}), true) AND {_IN_SIGHT})
"""

#: True of a DLQ d if `MOVES_UNKNOWN` is true and the last call to AWS failed. Its lanes then wait for AWS.
WAITS_FOR_AWS: Final[LiteralString] = f"(d.aws_redrive_error <> '' AND {MOVES_UNKNOWN})"

# Returns DLQs that have a lane to lease now. The caller must ask AWS about each returned DLQ. Locked rows are skipped.
_TO_ASK: Final[LiteralString] = f"""
UPDATE redrive_dlq SET aws_redrive_asked_at = redrive_now()
 WHERE id IN (
    SELECT d.id FROM redrive_dlq d
     WHERE coalesce(d.aws_redrive_answered_at <= redrive_now() - make_interval(secs => {_ASK_AFTER}), true)
       AND coalesce(d.aws_redrive_asked_at <= redrive_now() - make_interval(secs => {_ANSWERED_WITHIN}), true)
       AND d.aws_redrive_since IS NULL AND d.stopped_at IS NULL AND d.mode <> 'observe'
       AND EXISTS (SELECT FROM redrive_run r
                    WHERE r.dlq_id = d.id AND r.state = 'running'
                      AND (%(runs)b::bigint[] IS NULL OR r.id = ANY(%(runs)b::bigint[]))
                      AND (SELECT n.due_at FROM redrive_lane n WHERE n.run_id = r.id AND n.due_at IS NOT NULL
                            ORDER BY n.due_at LIMIT 1) <= redrive_now())
       AND {_IN_SIGHT} AND NOT EXISTS (SELECT FROM redrive_global_stop)
     ORDER BY d.aws_redrive_asked_at NULLS FIRST LIMIT {_MOST} FOR NO KEY UPDATE OF d SKIP LOCKED)
RETURNING id
"""  # noqa: S608  # the inserted texts are constants

_ANSWERED: Final[LiteralString] = """
UPDATE redrive_dlq SET aws_redrive_answered_at = greatest(aws_redrive_answered_at, %(at)b::timestamptz),
       aws_redrive_error = ''
 WHERE id = %(dlq)b
"""

_UNANSWERED: Final[LiteralString] = """
UPDATE redrive_dlq SET aws_redrive_error = %(why)b::text WHERE id = %(dlq)b AND aws_redrive_error <> %(why)b::text
"""


def dlqs_to_ask_about(runs: Sequence[int] | None) -> list[int]:
    """Return the ids of up to 32 DLQs for which the caller must call `ListMessageMoveTasks` now.

    Each of these DLQs has letters to send now, and captured messages that are visible in SQS, so that AWS could move
    them. AWS's last answer for the DLQ is older than 45 seconds. For the next 20 seconds, no other caller gets the same
    DLQs. `runs`: only DLQs with letters of these runs; None: of all runs.
    """
    return rows.column(int, _TO_ASK, {"runs": None if runs is None else list(runs)})


def record_answer(dlq: int, *, at: datetime) -> None:
    """Record that AWS answered `ListMessageMoveTasks` for a DLQ.

    The caller must have committed the redrives that AWS listed. `at`: when AWS was called, by PostgreSQL's clock.
    """
    rows.execute(_ANSWERED, {"dlq": dlq, "at": at})


def record_no_answer(dlq: int, why: str) -> None:
    """Record why AWS did not answer `ListMessageMoveTasks` for a DLQ."""
    rows.execute(_UNANSWERED, {"dlq": dlq, "why": why})
