from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any

import pytest

from reprocessing.gateways.sqs import Deleted, QueueAddress, delete
from reprocessing.models import DlqCopy
from reprocessing.pipeline.maintenance import recover
from reprocessing.pipeline.replay import copy_deletion, send_batches
from reprocessing.pipeline.replay.copy_deletion import CopyDeletion
from reprocessing.pipeline.replay.send import DELETE_AFTER_GROUPS, Sender
from reprocessing.pipeline.replay.slow_targets import Stream
from reprocessing.store.replay.settlement import Deletable
from tests.reprocessing.pipeline.bench import BRISK, Workbench, enqueued
from tests.reprocessing.pipeline.interposed import happens_before

pytestmark = pytest.mark.django_db(transaction=True)

BODIES = [str(number) for number in range(DELETE_AFTER_GROUPS + 2)]
ONE_BY_ONE = replace(BRISK, intent_size=1)


@dataclass
class Later:
    """In the place of `run_beside`: `work` does what was begun."""

    begun: list[tuple[Callable[[], Any], Future[Any]]] = field(default_factory=list)

    def run_beside(self, work: Callable[[], Any]) -> Future[Any]:
        self.begun.append((work, Future()))
        return self.begun[-1][1]

    def work(self) -> None:
        for work, future in self.begun:
            if not future.done():
                future.set_result(work())


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Later:
    later = Later()
    monkeypatch.setattr(copy_deletion, "run_beside", later.run_beside)
    return later


def captured(*bodies: str) -> tuple[Workbench, list[Deletable]]:
    bench = Workbench()
    bench.bury_all(*bodies)
    bench.capture()
    copies = DlqCopy.objects.order_by("letter_id").values_list("dlq_id", "message_id", "handle")
    return bench, [Deletable(*copy) for copy in copies]


def states() -> list[str]:
    return list(DlqCopy.objects.order_by("letter_id").values_list("state", flat=True))


def test_copies_wait_until_no_other_deletion_is_in_progress(later: Later) -> None:
    bench, (first, second, third) = captured("1", "2", "3")
    deletion = CopyDeletion(size=2, dlqs={}, renew=later.work, every=60)
    deletion.add([first, second])
    deletion.add([third])
    assert (len(later.begun), states()) == (1, ["held"] * 3)
    later.work()
    deletion.add([])
    assert (len(later.begun), states()) == (1, ["gone", "gone", "held"])
    deletion.finish()
    assert (states(), bench.left()) == (["gone"] * 3, 0)


def test_the_next_deletion_begins_when_the_last_one_has_ended(later: Later) -> None:
    bench, (first, second, third) = captured("1", "2", "3")
    deletion = CopyDeletion(size=1, dlqs={bench.dlq.pk: bench.dlq}, renew=later.work, every=60)
    for copy in (first, second, third):
        deletion.add([copy])
        later.work()
    assert (len(later.begun), states()) == (3, ["gone", "gone", "held"])
    deletion.finish()
    assert (states(), bench.left()) == (["gone"] * 3, 0)


def test_leases_are_renewed_while_too_many_copies_wait_for_sqs(later: Later) -> None:
    bench, (first, second, third) = captured("1", "2", "3")
    deletion = CopyDeletion(size=1, dlqs={}, renew=later.work, every=0)
    deletion.add([first])
    deletion.add([second, third])
    assert (len(later.begun), states()) == (2, ["gone", "held", "held"])
    later.work()
    deletion.finish()
    assert (states(), bench.left()) == (["gone"] * 3, 0)


def test_a_slice_that_waits_for_sqs_renews_the_leases_of_its_open_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    renewed: list[float] = []

    def note(_: Stream, *, lease: float) -> None:
        renewed.append(lease)

    monkeypatch.setattr(Stream, "renew", note)
    sender = Sender(BRISK, lambda: 0.0)
    sender.deletion.renew()
    sender.end()
    assert (renewed, sender.deletion.every) == ([8.0], 8 / 3)


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
