"""Build the subjects of incidents. At most one incident is open for each kind of event and subject."""

from __future__ import annotations

from typing import Final

#: The service as a whole.
RESTORE: Final = "restore"
BEAT: Final = "beat"


def of_breaker(breaker_id: int) -> str:
    """Return the subject of one circuit breaker."""
    return f"breaker:{breaker_id}"


def of_run(run_id: int) -> str:
    """Return the subject of one run."""
    return f"run:{run_id}"


def of_dlq(dlq_id: int) -> str:
    """Return the subject of one DLQ."""
    return f"dlq:{dlq_id}"


def of_group(group_id: int) -> str:
    """Return the subject of one failure group."""
    return f"group:{group_id}"


def of_workers(queue: str) -> str:
    """Return the subject of the workers that consume one of the service's own queues."""
    return f"workers:{queue}"


def of_finding(part: str) -> str:
    """Return the subject of findings of redrive_doctor about one part: a server's name, or a DLQ's."""
    return f"doctor:{part}"
