from __future__ import annotations

import pytest

from reprocessing.domain.errors import DlqAlreadyRegistered, InvalidTarget
from reprocessing.models import AuditEntry, DeadLetterQueue, Target
from reprocessing.store.dlqs import dlq_proposal, registration
from reprocessing.store.dlqs.dlq_proposal import DlqProposal
from reprocessing.store.targets import targets

pytestmark = pytest.mark.django_db

ARN = "arn:aws:sqs:us-east-1:000000000000:orders"
ADDED = {"url": "http://127.0.0.1:9/0/orders", "arn": ARN, "region": "us-east-1"}


def test_a_dlq_is_written_only_as_it_was_seen_to_change() -> None:
    registration.register(DlqProposal(name="orders", dlq=ADDED), by="ann", reason="a test")
    wish = DlqProposal(name="orders", dlq={"max_attempts": 5})
    seen = dlq_proposal.differences(wish)
    DeadLetterQueue.objects.update(max_attempts=4)
    with pytest.raises(DlqAlreadyRegistered, match="somebody else has changed it since you looked"):
        registration.register(wish, by="ann", reason="a test", seen=seen)
    assert (DeadLetterQueue.objects.get().max_attempts, AuditEntry.objects.count()) == (4, 1)
    registration.register(wish, by="ann", reason="a test", seen=dlq_proposal.differences(wish))
    assert DeadLetterQueue.objects.get().max_attempts == 5


def test_a_target_is_written_only_as_it_was_seen_to_change() -> None:
    targets.save_target(
        ARN, {"url": "http://127.0.0.1:9/0/orders", "region": "us-east-1", "rate": 1.0}, by="ann", reason="a test"
    )
    seen = targets.differences(ARN, {"rate": 5.0}, Target.objects.get())
    Target.objects.update(rate=3.0)
    with pytest.raises(InvalidTarget, match="somebody else has changed it since you looked"):
        targets.save_target(ARN, {"rate": 5.0}, by="ann", reason="a test", seen=seen)
    assert (Target.objects.get().rate, AuditEntry.objects.count()) == (3.0, 1)
