"""A poison message is parked with its reason, byte for byte, and the other messages of its batch arrive.

The corpus of poison messages is in tests/proof/poison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.gateways.sqs import receiving
from reprocessing.models import Attempt, Payload, Target
from reprocessing.pipeline.maintenance import recover
from reprocessing.pipeline.replay import send_batches
from reprocessing.store.replay.intent import Intended
from tests.reprocessing.pipeline.bench import BRISK, Workbench

pytestmark = pytest.mark.django_db(transaction=True)

TEN, PLACE = 10, 4


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The message ids of each batch, whose letters are sent in the order in which they died."""
    made: list[list[str]] = []
    post = send_batches.letters

    def ordered(intended: Sequence[Intended], *args: Any, **options: Any) -> Any:  # noqa: ANN401  # handed through
        going = sorted(intended, key=lambda letter: letter.letter_id)
        made.append([letter.message_id for letter in going])
        return post(going, *args, **options)

    monkeypatch.setattr(send_batches, "letters", ordered)
    return made


def _bury_among_nine(poison: str) -> tuple[Workbench, str]:
    """Ten messages that travel in one batch; the id of the poison message."""
    bench = Workbench(conf=replace(BRISK, intent_size=TEN))
    return bench, bench.bury_all(*(poison if place == PLACE else "mate" for place in range(TEN)))[PLACE]


def _assert_refused(bench: Workbench, poison: str, trips: list[list[str]], detail: str) -> None:
    letter = bench.letter(message_id=poison)
    assert (letter.state, letter.reason, letter.attempts) == ("parked", ParkedReason.REFUSED, 1)
    assert detail in letter.detail
    assert [trip.index(poison) for trip in trips] == [PLACE]
    assert (bench.delivered_bodies(), bench.left()) == (["mate"] * (TEN - 1), 0)


def test_a_message_that_the_target_refuses_is_parked_and_its_batch_mates_arrive(trips: list[list[str]]) -> None:
    bench, poison = _bury_among_nine("p" * 1_025)
    bench.sqs.set_queue_attributes(QueueUrl=bench.origin_url, Attributes={"MaximumMessageSize": "1024"})
    bench.ready()
    bench.replay()
    _assert_refused(bench, poison, trips, "1024 bytes")
    assert bench.history().count((1, "refused", 0)) == 1


def test_a_message_above_the_size_limit_of_its_target_is_not_tried() -> None:
    bench, poison = _bury_among_nine("p" * 1_025)
    Target.objects.update(size_limit=1_024)
    bench.ready()
    bench.replay()
    recover.sweep(bench.dlq, conf=bench.conf)
    letter = bench.letter(message_id=poison)
    assert (letter.state, letter.detail) == ("parked", "1,025 bytes; its target takes 1,024")
    assert (Attempt.objects.count(), len(bench.delivered()), bench.left()) == (TEN - 1, TEN - 1, 0)


def test_half_a_surrogate_pair_is_kept_and_parked(trips: list[list[str]]) -> None:
    """The local SQS accepts no such message, so a client returns one."""
    bench, poison = _bury_among_nine("half")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(receiving, "client", lambda *_, **__: _Halving(bench.sqs))
        bench.capture()
    assert bytes(Payload.objects.get(letter__message_id=poison).body) == b"\xed\xa0\x80"
    bench.enlist()
    bench.replay()
    _assert_refused(bench, poison, trips, "InvalidMessageContents: ")


class _Halving:
    """A client that returns half a surrogate pair in place of the body "half"."""

    def __init__(self, client: Any) -> None:  # noqa: ANN401  # boto3's
        self._client = client

    def receive_message(self, **asked: Any) -> dict[str, Any]:  # noqa: ANN401  # boto3's
        answer: dict[str, Any] = self._client.receive_message(**asked)
        for message in answer.get("Messages", []):
            message["Body"] = message["Body"].replace("half", "\ud800")
        return answer
