"""Refuse actions of a person that need the approval of a second person and do not have it (docs/adr/0043).

The code of each action calls `check` before it changes anything. A DLQ's approval limit is the number of messages that
one person may handle alone within a day. The messages of a person's actions without approval are added up, so that a
person cannot avoid the limit with many small actions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, TypeAlias

from django.db.models import Q, Sum

from reprocessing.domain.approvals.person import person_key
from reprocessing.domain.approvals.requested_action import (
    ALL,
    ApprovalNeeded,
    ApprovalRefused,
    Messages,
    RequestedAction,
)
from reprocessing.models import Approval, UnapprovedAction
from reprocessing.models.audit import ApprovalState
from reprocessing.store import rows
from reprocessing.store.approvals import limits, people
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.payloads import content

#: The messages that one person handles alone are summed over the last 24 hours.
WITHIN: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Parts:
    """The titles of those parts of a larger action that need a second person's approval, as `check` collects them.

    An example of a larger action is `apply_config`, which changes several DLQs. Its parts are not refused one by one,
    because a second person approves the larger action as a whole.
    """

    needed: list[str] = field(default_factory=list)


#: The id of the approval that is being executed; or, if the action is a part of a larger action, that action's `Parts`.
Cover: TypeAlias = "int | Parts | None"

_TURN = "SELECT pg_advisory_xact_lock(1381126741, %(dlq)b::int) IS NOT NULL AS done"


def check(action: RequestedAction, messages: Messages, *, by: str, approval: Cover, again: bool = False) -> None:
    """Check that a person may do an action now. Call it in the action's transaction, before any change.

    Args:
        action: the action.
        messages: the number of messages that the action is about, by the DLQ's id. The number None means "any number".
        by: the name of the person.
        approval: the id of the approval of this action, which is marked as used. None: the person acts alone, and the
            messages are added to those that the person handled alone in the last 24 hours. `Parts`: the action is part
            of a larger action, so it is not refused. If it needs a second person, its title is added to the parts.
        again: the action continues a run, whose messages were added to the person's sum when the run started.

    Raises:
        ApprovalNeeded: the action needs the approval of a second person, and `approval` is None.
        ApprovalRefused: the approval was used before, or is for another action or for fewer messages.
    """
    if isinstance(approval, Parts):
        if is_needed(messages, by=by):
            approval.needed.append(action.title)
        return
    if approval is not None:
        _use(approval, action, sum(n or 0 for n in messages.values()))
        return
    if not again:
        _take_turns(messages, by)
    if is_needed(messages, by=by, again=again):
        raise ApprovalNeeded(action, messages)
    if not again:
        _count(messages, by)


def is_needed(messages: Messages, *, by: str, again: bool = False) -> bool:
    """Return whether `check` would refuse an action about these messages without a second person. Change nothing."""
    if ALL in messages:
        return limits.is_any_limited()
    for dlq, limit in limits.limits_of(_dlqs(messages)).items():
        n = messages[dlq]
        if n is None or n > limit - (0 if again or not limit else _done_alone(dlq, by)):
            return True
    return False


def refuse_unseen(dlq: int, what: str) -> None:
    """Refuse an action whose messages cannot be listed first, such as AWS's redrive, if the DLQ has an approval limit.

    A second person could not see what they approve. `what`: the action's name, with which the error's text begins.

    Raises:
        ApprovalRefused: the DLQ has a limit.
    """
    if limits.limits_of([dlq]):
        raise ApprovalRefused(
            f"{what} needs a second person, but its messages cannot be shown first. Nothing was done. A second person "
            "can approve a run instead. To plan one: manage.py drain_dlq NAME, a dry run."
        )


def refuse_above(messages: Messages, what: str, *, by: str) -> None:
    """Refuse an action above the approval limit, if it is of a kind that cannot be approved, such as an erasure.

    If the action is not refused, its messages count as handled by the person alone. Call this in the action's
    transaction.
    `what`: the action's name, with which the error's text begins.

    Raises:
        ApprovalRefused: the action is above the limit.
    """
    _take_turns(messages, by)
    if is_needed(messages, by=by):
        raise ApprovalRefused(
            f"{what} needs a second person. Nothing was done. Lift the limit first, which a second person approves: "
            "manage.py add_dlq NAME --approval-above N --confirm; lower it again afterwards."
        )
    _count(messages, by)


def _dlqs(messages: Messages) -> list[int]:
    return sorted(dlq for dlq, n in messages.items() if dlq != ALL and n != 0)


def _take_turns(messages: Messages, by: str) -> None:
    """Lock the DLQs that have a limit until the transaction ends, so that two actions at one time are both counted.

    Delete the person's counts that are older than a day, because limits count only the last 24 hours.
    """
    for dlq in sorted(limits.limits_of(_dlqs(messages))):
        rows.execute(_TURN, {"dlq": dlq})
        UnapprovedAction.objects.filter(dlq=dlq, by_key=person_key(by), at__lte=database_now() - WITHIN).delete()


def _count(messages: Messages, by: str) -> None:
    key, known = person_key(by), limits.limits_of(_dlqs(messages))
    UnapprovedAction.objects.bulk_create(
        UnapprovedAction(dlq_id=dlq, by_key=key, messages=n) for dlq in sorted(known) if (n := messages[dlq])
    )


def _use(approval: int, action: RequestedAction, messages: int) -> None:
    """Mark an approval as used.

    Raises ApprovalRefused if the approval was used before, is for another action or fewer messages, or is not granted.
    """
    (stamp,) = content.keyed([action.stamp])
    fit = Approval.objects.filter(
        Q(messages=None) | Q(messages__gte=messages), pk=approval, stamp=stamp, used_at=None,
        state__in=[ApprovalState.APPROVED, ApprovalState.ALONE],
    )  # fmt: skip
    if not fit.update(used_at=database_now()):
        raise ApprovalRefused(
            f"Nothing was done: approval {approval} was used already, or is not for exactly this: {action.title}."
        )


def _done_alone(dlq: int, by: str) -> int:
    """Return how many messages of a DLQ a person has handled alone in the last 24 hours, with any of their accounts."""
    done = UnapprovedAction.objects.filter(dlq=dlq, by_key__in=people.keys_of(by), at__gt=database_now() - WITHIN)
    return int(done.aggregate(n=Sum("messages"))["n"] or 0)
