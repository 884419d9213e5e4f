"""A scan reads its own scope's queues, although scans of other accounts store theirs at the same time."""

from __future__ import annotations

import pytest

from reprocessing.domain.dlqs.discovery import QueueReading, Scope
from reprocessing.models.discovery import DiscoveryStage
from reprocessing.store.dlqs import discovery_scopes, scanned_queues
from reprocessing.store.dlqs.discovery_scopes import OpenScan
from reprocessing.store.dlqs.scanned_queues import ScanPage

pytestmark = pytest.mark.django_db
OWN, OTHER = "arn:aws:sqs:eu-west-1:111111111111:orders-dlq", "arn:aws:sqs:eu-west-1:222222222222:orders-dlq"


def scan(scope: Scope) -> OpenScan:
    begun = discovery_scopes.begin_scan(discovery_scopes.add_scope(scope))
    assert begun is not None
    return begun


def store(begun: OpenScan, arn: str) -> None:
    reading = QueueReading(arn=arn, url="https://sqs/x", retention=60, visible=1, in_flight=0)
    assert scanned_queues.store_page(begun, ScanPage(queues=[reading], stage=DiscoveryStage.QUEUES))


@pytest.mark.parametrize("prefix", ["", "orders"])
def test_a_scan_with_the_own_role_has_no_queues_that_scans_with_a_role_read_meanwhile(prefix: str) -> None:
    own = scan(Scope("eu-west-1", prefix=prefix))
    other = scan(Scope("eu-west-1", "arn:aws:iam::222222222222:role/redrive"))
    store(own, OWN)
    store(other, OTHER)
    assert [queue.arn for queue in scanned_queues.queues_read(own)] == [OWN]
    assert [queue.arn for queue in scanned_queues.queues_read(other)] == [OTHER]
