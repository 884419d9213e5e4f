"""Deleting copies: what SQS confirmed is gone, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reprocessing.gateways.sqs import Deleted, QueueAddress
from reprocessing.models import Custody
from reprocessing.pipeline.capture import delete_copies
from reprocessing.store.replay.settlement import Deletable
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_copy_that_sqs_did_not_delete_stays_to_be_deleted() -> None:
    bench = Workbench()
    ids = [bench.bury("one"), bench.bury("other")]
    bench.capture()
    Custody.objects.update(state="delete")

    def the_first(_: QueueAddress, handles: Mapping[str, str]) -> Deleted:
        return Deleted({ids[0]}, {one: "not now" for one in handles if one != ids[0]})

    copies = [Deletable(bench.dlq.pk, one.message_id, one.handle) for one in Custody.objects.all()]
    assert delete_copies.copies(bench.dlq, copies, by=the_first) == 1
    assert dict(Custody.objects.values_list("message_id", "state")) == {ids[0]: "gone", ids[1]: "delete"}
