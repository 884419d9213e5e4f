"""Every payload once: it arrives byte for byte, or waits with its reason, and its batch-mates arrive."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from reprocessing.gateways.sqs import receiving
from tests.proof.poison import cycle
from tests.proof.poison.corpus import CORPUS
from tests.proof.poison.station import STANDARD
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = [pytest.mark.soak, pytest.mark.django_db(transaction=True)]


def test_every_payload_arrives_as_it_was_or_is_held_by_the_rule_that_cannot_read_it(
    transactional_db: None, caplog: pytest.LogCaptureFixture
) -> None:
    done = cycle.run(STANDARD, cycle.batches(STANDARD, zip(CORPUS.values(), _places(), strict=False)), caplog)
    assert done.problems == {}
    held = sum(one.guarded for one in CORPUS.values())
    assert sum(len(one) for one in done.trips) == len(done.buried) - held - sum(one.spent for one in CORPUS.values())
    cycle.without_rules(done)
    assert done.problems == {}


def test_no_two_payloads_are_one() -> None:
    told = {(one.body, repr(sorted(one.attributes.items())), one.group, one.trace) for one in CORPUS.values()}
    assert (len(told), len(CORPUS) >= 260) == (len(CORPUS), True)


_HOSTILE = ("", "soon", "-1", "9" * 30, "1e3", "\u0663", "253402300800000")


@pytest.mark.parametrize("fifo", [False, True])
def test_what_is_said_of_a_message_and_is_no_number_keeps_nothing_back(
    transactional_db: None, fifo: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQS itself says numbers; what is like SQS may not."""
    bench = Workbench(fifo=fifo)
    for number in range(len(_HOSTILE) + 2):
        bench.bury(f"letter {number}", key=f"k{number}")
    monkeypatch.setattr(receiving, "client", lambda *_, **__: _Lying(bench.sqs))
    bench.ready()
    bench.replay()
    assert set(bench.states().values()) == {"delivered"}
    assert sorted(one["Body"] for one in bench.delivered()) == [f"letter {n}" for n in range(len(_HOSTILE) + 2)]


class _Lying:
    def __init__(self, client: Any) -> None:  # noqa: ANN401  boto3's
        self._client = client

    def receive_message(self, **asked: Any) -> dict[str, Any]:  # noqa: ANN401  boto3's
        answer: dict[str, Any] = self._client.receive_message(**asked)
        for one, text in zip(answer.get("Messages", []), _HOSTILE, strict=False):
            one["Attributes"] |= {"SentTimestamp": text or "0", "ApproximateReceiveCount": text}
        return answer


def _places() -> Iterator[int]:
    """Eight of each batch are poison; the two mates are somewhere else each time."""
    for turn in count():
        yield from (place for place in range(cycle.TEN) if place % 5 != turn % 5)
