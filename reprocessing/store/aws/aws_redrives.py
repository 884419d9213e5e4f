"""Store that AWS itself redrives a DLQ, and keep AWS and this service from redriving a DLQ at the same time.

The redrive is written to the DLQ's row before AWS is called, and removed when AWS answers that the redrive has ended.
If a process dies between the two, the next check finds no redrive in AWS's list, and removes it from the row.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, LiteralString

from reprocessing.domain.errors import NativeRedriveConflict
from reprocessing.store import rows
from reprocessing.store.capture import moved_by_aws
from reprocessing.store.safety.paused_runs import THE_SERVICE

#: The requester that is recorded for a redrive which this service did not start.
UNKNOWN_REQUESTER: Final = "somebody outside this service"
#: A DLQ's error text (`last_error`) begins with this if AWS's redrive caused it. Polls do not clear such a text.
ERROR_PREFIX: Final[LiteralString] = "AWS's own redrive "
#: AWS ends a redrive after 36 hours (AWS: Amazon SQS dead-letter queue redrive, quotas); one hour more for delays.
MAX_DURATION: Final = timedelta(hours=37)


@dataclass(frozen=True, slots=True)
class AwsRedrive:
    """AWS's redrive of a DLQ.

    Attributes:
        at: when the redrive was recorded.
        by, reason: the person who asked for the redrive, and why.
        to: ARN of the destination; empty: the source queues.
        handle: AWS's id of the message move task; empty: not known yet.
        age: seconds since `at`.
        after: when the newest earlier task began, by AWS's clock; None: there was none.
    """

    dlq_id: int
    at: datetime
    age: float
    by: str
    reason: str
    to: str
    handle: str
    after: datetime | None


@dataclass(frozen=True, slots=True)
class _Known:
    after: datetime | None


_NATIVE: Final[LiteralString] = """
SELECT id AS dlq_id, aws_redrive_since AS at, extract(epoch FROM redrive_now() - aws_redrive_since)::float8 AS age,
       aws_redrive_by AS by,
       aws_redrive_reason AS reason, aws_redrive_destination AS to, aws_redrive_task AS handle,
              aws_redrive_last_task_at AS after
  FROM redrive_dlq WHERE aws_redrive_since IS NOT NULL AND (%(dlq)b::bigint IS NULL OR id = %(dlq)b::bigint)
"""

# This lock blocks only the hand-over to AWS, which locks the whole row (FOR UPDATE).
_KEEP_OUT: Final[LiteralString] = "SELECT id FROM redrive_dlq WHERE id = %(dlq)b FOR KEY SHARE"

_TOLD = """
UPDATE redrive_dlq SET aws_redrive_task = %(handle)b::text
 WHERE id = %(dlq)b AND aws_redrive_since = %(at)b AND aws_redrive_task = ''
"""

# Nothing is recorded during a capture: the next check finds the redrive again.
_NOTICED = """
UPDATE redrive_dlq
   SET aws_redrive_since = redrive_now(), aws_redrive_by = %(by)b::text,
          aws_redrive_reason = 'It was not started by this service.',
       aws_redrive_destination = %(to)b::text, aws_redrive_task = %(handle)b::text,
              aws_redrive_last_task_at = %(after)b::timestamptz,
       leased_until = NULL, fence = nextval('redrive_fence')
 WHERE id = %(dlq)b AND aws_redrive_since IS NULL AND coalesce(leased_until <= redrive_now(), true)
"""

_ENDED = """
WITH ended AS (
    UPDATE redrive_dlq d
       SET aws_redrive_since = NULL, aws_redrive_by = '', aws_redrive_reason = '', aws_redrive_destination = '',
              aws_redrive_task = '',
           aws_redrive_last_task_at = greatest(d.aws_redrive_last_task_at, %(through)b::timestamptz),
           last_error = CASE WHEN %(last_error)b::text <> '' OR starts_with(d.last_error, %(ours)b::text)
                          THEN %(last_error)b::text ELSE d.last_error END
      FROM (SELECT id, aws_redrive_since, aws_redrive_by, aws_redrive_reason, aws_redrive_destination FROM redrive_dlq
             WHERE id = %(dlq)b AND aws_redrive_since = %(at)b FOR UPDATE) was
     WHERE d.id = was.id
    RETURNING d.id, was.aws_redrive_since, was.aws_redrive_by, was.aws_redrive_reason
)
INSERT INTO redrive_audit_entry (act, dlq_id, by, reason, before, after)
SELECT 'changed', id, %(by)b::text, %(said)b::text,
       jsonb_build_object('native_redrive', true, 'since', aws_redrive_since, 'by', aws_redrive_by, 'reason',
              aws_redrive_reason),
       jsonb_build_object('native_redrive', false) FROM ended
"""

# FOR UPDATE waits for transactions that put letters onto lanes (see `lock_out_aws`).
_OURS = """
SELECT aws_redrive_last_task_at AS after FROM redrive_dlq
 WHERE id = %(dlq)b AND aws_redrive_since IS NULL AND coalesce(aws_redrive_last_task_at < %(through)b::timestamptz,
        true) FOR UPDATE
"""

_SEEN = "UPDATE redrive_dlq SET aws_redrive_last_task_at = %(through)b::timestamptz WHERE id = %(dlq)b"

_CANCELLED = """
INSERT INTO redrive_audit_entry (act, dlq_id, by, reason, before, after)
VALUES ('aborted', %(dlq)b, %(by)b::text, %(reason)b::text, '{"native_redrive": true}',
        '{"native_redrive": "to be cancelled"}')
"""

_STANDS = """
UPDATE redrive_dlq SET last_error = %(last_error)b::text
 WHERE id = %(dlq)b AND aws_redrive_since = %(at)b
   AND (starts_with(last_error, %(ours)b::text) OR %(last_error)b::text <> '') AND last_error <> %(last_error)b::text
"""

_ASKED = """
UPDATE redrive_dlq SET aws_redrive_asked_at = redrive_now()
 WHERE id = %(dlq)b
   AND coalesce(aws_redrive_asked_at <= redrive_now() - make_interval(secs => %(every)b::float8), true)
"""


def current(dlq: int) -> AwsRedrive | None:
    """Return AWS's redrive of this DLQ; None: there is none."""
    return rows.first(AwsRedrive, _NATIVE, {"dlq": dlq})


def all_current() -> list[AwsRedrive]:
    """Return AWS's redrives of all DLQs."""
    return rows.fetch(AwsRedrive, _NATIVE, {"dlq": None})


def lock_out_aws(dlq: int) -> None:
    """Keep AWS's redrive of this DLQ from starting until the caller's transaction ends.

    Raises:
        NativeRedriveConflict: AWS's redrive has started already.
    """
    rows.execute(_KEEP_OUT, {"dlq": dlq})
    if found := current(dlq):  # a second statement sees what was committed during the wait
        raise NativeRedriveConflict(describe(found))


def describe(redrive: AwsRedrive) -> str:
    """Return a sentence for people that says since when, and at whose request, AWS redrives the DLQ."""
    return (
        f"A redrive by AWS has run since {redrive.at:%Y-%m-%d %H:%M:%S} UTC, as {redrive.by} asked "
        f'("{redrive.reason}"): nothing is captured or sent until it ends. '
        "manage.py native_redrive list NAME shows how far it is."
    )


def record_task(redrive: AwsRedrive, handle: str) -> None:
    """Record AWS's id of the redrive (`handle`, of its message move task), unless an id is recorded already."""
    rows.execute(_TOLD, {"dlq": redrive.dlq_id, "at": redrive.at, "handle": handle})


def record_unrequested(dlq: int, *, to: str, handle: str, after: datetime | None) -> bool:
    """Record a redrive of AWS that this service did not start; return whether it was recorded.

    Nothing is recorded during a capture, or if a redrive of this DLQ is recorded already. The arguments are fields of
    `AwsRedrive`.
    """
    values = {"dlq": dlq, "by": UNKNOWN_REQUESTER, "to": to, "handle": handle, "after": after}
    return rows.execute(_NOTICED, values) == 1


def record_end(
    redrive: AwsRedrive, said: str, *, through: datetime | None = None, moved: bool = False, failed: bool = False
) -> bool:
    """Record the end of AWS's redrive; return False if another process has recorded it.

    `said`: the result, for people. `through`: when AWS's newest redrive began, by AWS's clock. `moved`: AWS may have
    moved messages, so letters whose messages are visible in the DLQ are marked as moved. `failed`: the redrive failed,
    so `said` also becomes the DLQ's error text (`last_error`).
    """
    last_error = f"{ERROR_PREFIX}failed. {said} Messages that it did not move are still in the DLQ." if failed else ""
    values = {
        "dlq": redrive.dlq_id, "at": redrive.at, "by": THE_SERVICE, "said": said, "last_error": last_error,
        "ours": ERROR_PREFIX,
    }  # fmt: skip

    def work() -> bool:
        done = rows.execute(_ENDED, values | {"through": through}) == 1
        if done and moved:
            moved_by_aws.mark_moved(redrive.dlq_id)
        return done

    return rows.in_transaction(work)


def record_missed(dlq: int, *, through: datetime, moved: datetime | None) -> int:
    """Record redrives of AWS that began and ended between two checks; return how many letters AWS may have moved.

    `through`: when the newest redrive began. `moved`: when the newest redrive that moved messages began; None: no
    redrive moved messages. Both times are by AWS's clock.
    """

    def work() -> int:
        found = rows.fetch(_Known, _OURS, {"dlq": dlq, "through": through})
        if not found:
            return 0
        known = found[0].after
        rows.execute(_SEEN, {"dlq": dlq, "through": through})
        if moved is None or (known is not None and moved <= known):
            return 0
        return moved_by_aws.mark_moved(dlq, until=moved + MAX_DURATION)

    return rows.in_transaction(work)


def record_status_error(redrive: AwsRedrive, why: str) -> None:
    """Record, as the DLQ's error text, why AWS's list of redrives cannot be read; an empty `why` clears the text."""
    last_error = f"{ERROR_PREFIX}cannot be checked, so the DLQ stays with AWS: {why}" if why else ""
    rows.execute(_STANDS, {"dlq": redrive.dlq_id, "at": redrive.at, "last_error": last_error, "ours": ERROR_PREFIX})


def record_cancel(dlq: int, *, by: str, reason: str) -> None:
    """Record in the audit log that a person cancels AWS's redrive. Call it before AWS is called."""
    rows.execute(_CANCELLED, {"dlq": dlq, "by": by, "reason": reason})


def is_time_to_ask(dlq: int, *, every: float) -> bool:
    """Return whether AWS was last asked about this DLQ at least `every` seconds ago.

    If so, record that AWS is asked now.
    """
    return rows.execute(_ASKED, {"dlq": dlq, "every": every}) == 1
