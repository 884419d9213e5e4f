"""Read the approval limits of DLQs. An action of a person about more messages than the limit needs a second person."""

from __future__ import annotations

from collections.abc import Iterable

from reprocessing.models import ApprovalDefault, DeadLetterQueue


def default_limit() -> int | None:
    """Return the approval limit that applies to DLQs without a limit of their own; None: no limit applies to them."""
    return ApprovalDefault.objects.values_list("above", flat=True).first()


def limits_of(dlqs: Iterable[int]) -> dict[int, int]:
    """Return the approval limits of these DLQs, by the DLQ's id: a DLQ's own limit, or else the default limit.

    A limit of 0 means that every action of a person needs a second person. DLQs without any limit are left out.
    """
    own = dict(DeadLetterQueue.objects.filter(pk__in=list(dlqs)).values_list("pk", "approval_above"))
    if all(limit is not None for limit in own.values()):
        return {dlq: limit for dlq, limit in own.items() if limit is not None}
    default = default_limit()
    found = {dlq: default if limit is None else limit for dlq, limit in own.items()}
    return {dlq: limit for dlq, limit in found.items() if limit is not None}


def is_any_limited() -> bool:
    """Return whether any DLQ has an approval limit. If so, an action about all DLQs needs a second person."""
    return default_limit() is not None or DeadLetterQueue.objects.filter(approval_above__isnull=False).exists()


def is_looser(limit: int | None, than: int | None) -> bool:
    """Return whether the approval limit `limit` lets one person do more than the limit `than`. None: no limit."""
    return than is not None and (limit is None or limit > than)
