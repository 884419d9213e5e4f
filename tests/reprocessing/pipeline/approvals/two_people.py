"""DLQs whose actions need a second person, and people who ask and approve."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import pytest

from reprocessing import conf
from reprocessing.domain.approvals.requested_action import ApprovalNeeded
from reprocessing.domain.parking_lot.bulk_edit import BulkEdit
from reprocessing.domain.parking_lot.json_patch import JsonPatch
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import Approval, BulkActionKind, DeadLetterQueue, Letter
from reprocessing.pipeline.approvals import decide, request
from reprocessing.pipeline.approvals.decide import Decision
from reprocessing.store.parking_lot import bulk_actions
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked

DAY = timedelta(days=1)


def limited(above: int = 0, *, letters: int = 1, name: str = "shop-dlq") -> list[Letter]:
    """Parked letters of a DLQ with this limit."""
    source = dlq(name)
    DeadLetterQueue.objects.filter(pk=source.dlq_id).update(approval_above=above)
    return [parked(source) for _ in range(letters)]


def asked(
    action: Callable[[], object], *, by: str = "ann", reason: str = "obsolete", lasts: timedelta = DAY
) -> Approval:
    """Do what needs a second person, and request the approval as a door does."""
    with pytest.raises(ApprovalNeeded) as needed:
        action()
    return request.request(needed.value, by=by, reason=reason, lasts=lasts)


def asked_edit(*, release: bool) -> Approval:
    """Request an edit of all parked messages by a patch."""
    wanted = BulkEdit(JsonPatch.parse('[{"op": "add", "path": "/country", "value": "DE"}]'), release=release)
    return asked(
        lambda: bulk_actions.create(
            uuid4(), BulkActionKind.EDIT, MessageFilter(), wanted.arguments(), by="ann", reason="obsolete"
        )
    )


def approved(row: Approval, *, by: str = "bob", reason: str = "I looked") -> Decision:
    return decide.approve(row.pk, by=by, reason=reason, conf=conf.current())


def states(letters: list[Letter]) -> set[str]:
    return set(Letter.objects.filter(pk__in=[letter.pk for letter in letters]).values_list("state", flat=True))
