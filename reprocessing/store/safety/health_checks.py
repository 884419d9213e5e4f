"""Add and remove health checks of targets, find the checks that are due, and record their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from reprocessing.domain.safety.health_check import HealthResult, HealthUnknown, Healthy, Unhealthy
from reprocessing.models.safety import CheckKind, HealthStatus
from reprocessing.store import rows
from reprocessing.store.ordering.active_runs import ACTIVE_RUNS

#: Seconds: a target is checked if one of its lanes is due, or becomes due within this time.
_SOON: Final = 30.0
_LONGEST_DETAIL: Final = 1_000


@dataclass(frozen=True, slots=True)
class CheckQuestion:
    """The definition of a health check: its kind, and the values that this kind needs."""

    kind: CheckKind
    subject: str = ""  #: the URL, or the alarm's name; empty for depth and age
    ceiling: float | None = None  #: limit of depth (messages) or age (seconds)
    expected_status: int | None = None  #: for http; None: 200 to 299


@dataclass(frozen=True, slots=True)
class ClaimedCheck:
    """A health check that only the caller runs now. `began`: when the caller got the check, by the database's clock."""

    check_id: int
    target_id: int
    kind: str
    subject: str
    ceiling: float | None
    expected_status: int | None
    url: str
    region: str
    role_arn: str
    began: datetime


@dataclass(frozen=True, slots=True)
class CheckStatus:
    """A health check and its latest result.

    Attributes:
        age: seconds since the latest result; None: there is no result yet.
        counts: whether the latest result is used; a result that is older than `max_age` seconds is not used.
    """

    check_id: int
    target_id: int
    kind: str
    subject: str
    ceiling: float | None
    expected_status: int | None
    every: float
    max_age: float
    verdict: str
    detail: str
    checked_at: datetime | None
    age: float | None
    counts: bool

    @property
    def is_passing(self) -> bool:
        """Return whether the check's result permits sends."""
        return self.counts and self.verdict == HealthStatus.HEALTHY


# A target is checked while a DLQ that sends to it, by a source queue or a rule, has lanes that are due soon. A target
# of no source queue is checked while any DLQ has lanes that are due soon. A person may have chosen another target for
# letters, so a target is also checked if a lane with its breaker is due soon. With `dlq`, only that DLQ's lanes count.
# Of each run and breaker, only the first lane is read, by index: a planner with old statistics would read all lanes.
_WANTED: Final[LiteralString] = f"""
WITH RECURSIVE busy AS (
    SELECT r.id, r.dlq_id FROM redrive_run r
     WHERE r.id IN ({ACTIVE_RUNS}) AND EXISTS (SELECT FROM redrive_health_check WHERE next_at <= redrive_now())
       AND (%(dlq)b::bigint IS NULL OR r.dlq_id = %(dlq)b::bigint)
       AND (SELECT n.due_at FROM redrive_lane n WHERE n.run_id = r.id AND n.due_at IS NOT NULL
             ORDER BY n.due_at LIMIT 1) <= redrive_now() + make_interval(secs => %(soon)b::float8)
), sent_to AS (
    SELECT o.target_id FROM redrive_source o WHERE o.dlq_id IN (SELECT dlq_id FROM busy)
    UNION SELECT u.target_id FROM redrive_rule u JOIN busy ON u.dlq_id IS NULL OR u.dlq_id = busy.dlq_id
           WHERE u.enabled AND u.target_id IS NOT NULL
    UNION SELECT h.target_id FROM redrive_health_check h
           WHERE %(dlq)b::bigint IS NULL AND EXISTS (SELECT FROM busy)
             AND h.target_id NOT IN (SELECT target_id FROM redrive_source)
), behind AS (
    SELECT 0::bigint AS breaker_id, 0::bigint AS run_id, NULL::timestamptz AS due_at
     WHERE EXISTS (SELECT FROM busy) AND EXISTS (
           SELECT FROM redrive_health_check h
            WHERE h.next_at <= redrive_now() AND h.target_id NOT IN (SELECT target_id FROM sent_to))
    UNION ALL
    SELECT next.breaker_id, next.run_id, next.due_at FROM behind CROSS JOIN LATERAL (
        SELECT n.breaker_id, n.run_id, n.due_at FROM redrive_lane n
         WHERE n.phase = 'ready' AND n.breaker_id IS NOT NULL
           AND (n.breaker_id, n.run_id) > (behind.breaker_id, behind.run_id)
         ORDER BY n.breaker_id, n.run_id, n.due_at LIMIT 1) next
), wanted AS (
    SELECT target_id FROM sent_to
    UNION SELECT b.target_id FROM behind JOIN busy ON busy.id = behind.run_id
            JOIN redrive_breaker b ON b.id = behind.breaker_id
           WHERE behind.due_at <= redrive_now() + make_interval(secs => %(soon)b::float8)
), due AS (
    SELECT h.id FROM redrive_health_check h
     WHERE h.next_at <= redrive_now() AND h.target_id IN (SELECT target_id FROM wanted)
     ORDER BY h.next_at, h.id LIMIT %(limit)b FOR UPDATE OF h SKIP LOCKED
)
"""  # noqa: S608  # the inserted text is a constant

_ALL: Final[LiteralString] = """
WITH due AS (
    SELECT h.id FROM redrive_health_check h WHERE h.target_id = ANY(%(targets)b::bigint[]) ORDER BY h.id FOR UPDATE
)
"""

_ANY: Final[LiteralString] = f"{_WANTED} SELECT id AS check_id FROM due"  # noqa: S608  # as above

_TAKE: Final[LiteralString] = """
UPDATE redrive_health_check h SET next_at = redrive_now() + make_interval(secs => h.every)
  FROM due, redrive_target t WHERE h.id = due.id AND t.id = h.target_id
RETURNING h.id AS check_id, h.target_id, h.kind, h.subject, h.ceiling, h.expected_status, t.url, t.region, t.role_arn,
          redrive_now() AS began
"""

# A result is not recorded if the check was changed while it ran, or if a later result was recorded.
_RECORD = """
UPDATE redrive_health_check h SET verdict = m.verdict, detail = m.detail, checked_at = m.began
  FROM unnest(%(check_id)b::bigint[], %(ceiling)b::float8[], %(expected_status)b::int[], %(verdicts)b::text[],
              %(details)b::text[], %(began)b::timestamptz[]) AS m(id, ceiling, status, verdict, detail, began)
 WHERE h.id = m.id AND h.ceiling IS NOT DISTINCT FROM m.ceiling AND h.expected_status IS NOT DISTINCT FROM m.status
   AND (h.checked_at IS NULL OR h.checked_at <= m.began)
"""

_TOLD = """
SELECT h.id AS check_id, h.target_id, h.kind, h.subject, h.ceiling, h.expected_status, h.every, h.max_age, h.verdict,
       h.detail, h.checked_at, extract(epoch FROM redrive_now() - h.checked_at)::float8 AS age,
       coalesce(h.checked_at > redrive_now() - make_interval(secs => h.max_age), false) AS counts
  FROM redrive_health_check h WHERE h.target_id = ANY(%(targets)b::bigint[]) ORDER BY h.target_id, h.id
"""

# The result of a changed check is unknown until it has run.
_ADD = """
WITH was AS (
    SELECT id, ceiling, expected_status FROM redrive_health_check
     WHERE target_id = %(target)b AND kind = %(kind)b::text AND subject = %(subject)b::text
), made AS (
    INSERT INTO redrive_health_check AS h (target_id, kind, subject, ceiling, expected_status, next_at)
    VALUES (%(target)b, %(kind)b::text, %(subject)b::text, %(ceiling)b::float8, %(expected_status)b::int, redrive_now())
    ON CONFLICT (target_id, kind, subject) DO UPDATE
       SET ceiling = excluded.ceiling, expected_status = excluded.expected_status, verdict = 'unknown', detail = '',
           checked_at = NULL, next_at = redrive_now()
    RETURNING h.id
), noted AS (
    INSERT INTO redrive_audit_entry (act, target_id, by, reason, before, after)
    SELECT CASE WHEN was.id IS NULL THEN 'added' ELSE 'changed' END, %(target)b, %(by)b::text, %(reason)b::text,
           CASE WHEN was.id IS NULL THEN '{}' ELSE jsonb_build_object('check', made.id, 'ceiling', was.ceiling,
                'expected_status', was.expected_status) END,
           jsonb_build_object('check', made.id, 'kind', %(kind)b::text, 'subject', %(subject)b::text,
                'ceiling', %(ceiling)b::float8, 'expected_status', %(expected_status)b::int)
      FROM made LEFT JOIN was ON true
)
SELECT id AS check_id FROM made
"""

_REMOVE = """
WITH gone AS (
    DELETE FROM redrive_health_check WHERE id = %(check)b AND target_id = ANY(%(targets)b::bigint[]) RETURNING *
), noted AS (
    INSERT INTO redrive_audit_entry (act, target_id, by, reason, before, after)
    SELECT 'changed', target_id, %(by)b::text, %(reason)b::text,
           jsonb_build_object('check', id, 'kind', kind, 'subject', subject, 'ceiling', ceiling,
                'expected_status', expected_status), '{}'
      FROM gone
)
SELECT id AS check_id FROM gone
"""


def are_due() -> bool:
    """Return whether a health check must run now, because letters wait for its target."""
    return bool(rows.execute(_ANY, {"soon": _SOON, "limit": 1, "dlq": None}))


def claim_due(*, limit: int, dlq: int | None = None) -> list[ClaimedCheck]:
    """Return up to `limit` health checks that the caller must run now, because letters wait for their targets.

    Each returned check gets its next time, after its interval (`every`), so that no other worker runs it now. `dlq`:
    only targets for which letters of this DLQ wait; None: of any DLQ.
    """
    return rows.fetch(ClaimedCheck, _WANTED + _TAKE, {"soon": _SOON, "limit": limit, "dlq": dlq})


def claim_all(targets: Sequence[int]) -> list[ClaimedCheck]:
    """Return all health checks of these targets, for the caller to run now, even if it is not their time yet.

    Each check gets its next time, after its interval (`every`).
    """
    return rows.fetch(ClaimedCheck, _ALL + _TAKE, {"targets": list(targets)})


def record_results(found: Sequence[tuple[ClaimedCheck, HealthResult]]) -> int:
    """Record the results of health checks; return how many. An older result does not replace a newer result."""
    if not found:
        return 0
    checks = [check for check, _ in found]
    said = [_status_and_detail(finding) for _, finding in found]
    values = {
        **rows.arrays(ClaimedCheck, checks),
        "verdicts": [verdict for verdict, _ in said],
        "details": [detail[:_LONGEST_DETAIL] for _, detail in said],
    }
    return rows.execute(_RECORD, values)


def checks_of(targets: Sequence[int]) -> list[CheckStatus]:
    """Return these targets' checks and their latest results."""
    return rows.fetch(CheckStatus, _TOLD, {"targets": list(targets)})


def add_check(target: int, asked: CheckQuestion, *, by: str, reason: str) -> int:
    """Add a health check, or change the target's check of the same kind and subject; return its id.

    An audit log entry is written. The result of a new or changed check is unknown until it has run.
    """
    values = {field: found for field, (found,) in rows.arrays(CheckQuestion, [asked]).items()}
    return rows.value(int, _ADD, {**values, "target": target, "by": by, "reason": reason})


def remove_check(check: int, targets: Sequence[int], *, by: str, reason: str) -> bool:
    """Remove a health check of one of these targets, with an audit log entry; return False if none of them has it."""
    values = {"check": check, "targets": list(targets), "by": by, "reason": reason}
    return bool(rows.execute(_REMOVE, values))


def _status_and_detail(finding: HealthResult) -> tuple[str, str]:
    match finding:
        case Healthy(detail):
            return HealthStatus.HEALTHY.value, detail
        case Unhealthy(why):
            return HealthStatus.UNHEALTHY.value, why
        case HealthUnknown(why):
            return HealthStatus.UNKNOWN.value, why
