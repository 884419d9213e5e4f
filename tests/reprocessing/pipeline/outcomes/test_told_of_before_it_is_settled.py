"""A worker dies between wire and table, others tell what its letter came to: the order holds all the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.store.outcomes import reporters
from tests.reprocessing.pipeline.bench import Clock, Workbench

pytestmark = pytest.mark.django_db(transaction=True)

LEASE = 9
Tell = Callable[[Workbench, dict[str, Any]], None]


def _it_comes_back(bench: Workbench, sent: dict[str, Any]) -> None:
    bench.come_back(sent)
    bench.capture()


def _its_consumer_says(verdict: str) -> Tell:
    def tell(bench: Workbench, sent: dict[str, Any]) -> None:
        token = reporters.put("shop", [bench.target], anew=False, by="ann", reason="a test").token
        said = {"redrive_id": sent["MessageAttributes"]["RedriveId"]["StringValue"], "verdict": verdict}
        answer = Client(headers={"Authorization": f"Bearer {token}"}).post(
            "/reports", {"reports": [said]}, content_type="application/json"
        )
        assert answer.json() == {"accepted": 1, "repeated": 0, "refused": []}

    return tell


EACH_WAY = pytest.mark.parametrize(
    "tell", [_it_comes_back, _its_consumer_says("failed"), _its_consumer_says("delivered")],
    ids=["comes back", "failed", "delivered"],
)  # fmt: skip


@EACH_WAY
def test_a_letter_sent_by_a_dead_worker_makes_an_earlier_letter_stale(clock: Clock, tell: Tell) -> None:
    bench = Workbench(fields={"ordering_key": "attribute:key", "sequence": "attribute:n"})
    bench.enqueue("2", key="a", n="2")
    bench.replay_and_die(sent=True)
    (sent,) = bench.delivered()
    tell(bench, sent)
    bench.enqueue("1", key="a", n="1")
    clock.advance(LEASE)
    bench.replay()
    early = bench.letter(payload__body=b"1")
    assert (early.state, early.reason, bench.states()["2"]) == ("parked", "stale", "delivered")


@EACH_WAY
def test_a_late_released_letter_leaves_the_order_as_it_was(clock: Clock, tell: Tell) -> None:
    bench = Workbench(fields={"ordering_key": "attribute:key", "sequence": "attribute:n"})
    for number in ("3", "1"):
        bench.redrive(number, key="a", n=number)
    bench.delivered()
    act_on_parked.release([bench.letter(state="parked").pk], by="ann", reason="it is needed")
    bench.replay_and_die(sent=True)
    (sent,) = bench.delivered()
    tell(bench, sent)
    bench.enqueue("2", key="a", n="2")
    clock.advance(LEASE)
    bench.replay()
    assert bench.states() == {"3": "delivered", "1": "delivered", "2": "parked"}
