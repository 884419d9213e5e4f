"""Build the subjects of incidents: texts such as "dlq:3" that say which object an incident is about.

An incident is an event that people are notified of. For each kind of event, a subject has at most one open incident.
"""

from __future__ import annotations

from typing import Final

#: The subjects of incidents about the whole service: a restore of PostgreSQL, and the silence of beat.
RESTORE: Final = "restore"
BEAT: Final = "beat"


def of_breaker(breaker_id: int) -> str:
    """Return the subject of incidents about one circuit breaker, such as "breaker:12"."""
    return f"breaker:{breaker_id}"


def of_run(run_id: int) -> str:
    """Return the subject of incidents about one run, such as "run:7"."""
    return f"run:{run_id}"


def of_dlq(dlq_id: int) -> str:
    """Return the subject of incidents about one DLQ, such as "dlq:3"."""
    return f"dlq:{dlq_id}"


def of_group(group_id: int) -> str:
    """Return the subject of incidents about one failure group, such as "group:5"."""
    return f"group:{group_id}"


def of_workers(queue: str) -> str:
    """Return the subject of incidents about the workers of one of the service's own queues."""
    return f"workers:{queue}"


def of_finding(part: str) -> str:
    """Return the subject of incidents about problems found by redrive_doctor. `part`: a server or a DLQ."""
    return f"doctor:{part}"


def of_queue(arn: str) -> str:
    """Return the subject of incidents about an SQS queue that is neither DLQ nor target, such as a discovered queue."""
    return f"queue:{arn}"


def of_approval(approval_id: int) -> str:
    """Return the subject of incidents about one requested approval, such as "approval:9"."""
    return f"approval:{approval_id}"
