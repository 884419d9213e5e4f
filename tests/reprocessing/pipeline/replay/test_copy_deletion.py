from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from threading import Event
from typing import Any

import pytest

from reprocessing.gateways.sqs import Deleted, QueueAddress, delete
from reprocessing.models import DlqCopy
from reprocessing.pipeline.maintenance import recover
from reprocessing.pipeline.replay import copy_deletion, send_batches
from reprocessing.pipeline.replay.send import DELETE_AFTER_GROUPS
from tests.reprocessing.pipeline.bench import BRISK, enqueued
from tests.reprocessing.pipeline.interposed import happens_before

pytestmark = pytest.mark.django_db(transaction=True)

BODIES = [str(number) for number in range(DELETE_AFTER_GROUPS + 2)]
ONE_BY_ONE = replace(BRISK, intent_size=1)


def test_letters_are_sent_while_copies_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    is_sending_more = Event()
    groups: list[int] = []
    waits: list[bool] = []

    def slow(address: QueueAddress, handles: Mapping[str, str], **_: Any) -> Deleted:  # noqa: ANN401  options of delete
        waits.append(is_sending_more.wait(20))
        return delete(address, handles)

    def note_group() -> None:
        groups.append(1)
        if len(groups) > DELETE_AFTER_GROUPS:
            is_sending_more.set()

    bench = enqueued(*BODIES, conf=ONE_BY_ONE)
    monkeypatch.setattr(copy_deletion, "delete", slow)
    happens_before(monkeypatch, send_batches, "letters", note_group)
    bench.replay()
    assert (waits, bench.left()) == ([True, True], 0)
    assert set(DlqCopy.objects.values_list("state", flat=True)) == {"gone"}


def test_copies_that_sqs_did_not_delete_meanwhile_are_left_to_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[str] = []

    def refuse(_: QueueAddress, handles: Mapping[str, str], **__: Any) -> Deleted:  # noqa: ANN401  as above
        refused.extend(handles)
        return Deleted(set(), dict.fromkeys(handles, "InternalError"))

    bench = enqueued(*BODIES, conf=ONE_BY_ONE)
    monkeypatch.setattr(copy_deletion, "delete", refuse)
    bench.replay()
    assert (len(refused), bench.left()) == (len(BODIES), len(BODIES))
    recover.sweep_dlq(bench.dlq, conf=bench.conf)
    assert bench.left() == 0
