"""After an attempt of unknown outcome, a copy may be in the target, whatever becomes of later attempts."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest
from django.test import Client

from reprocessing.models import Claim, Lane
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.store.ordering import lanes
from reprocessing.store.outcomes import reporters
from reprocessing.store.replay.settlement import WAITS_FOR_COPY
from tests.reprocessing.pipeline.bench import KEYED, Clock, Workbench
from tests.reprocessing.pipeline.rulings import rule

pytestmark = pytest.mark.django_db(transaction=True)

REST, WINDOW = 30, 100
Tell = Callable[[Workbench, dict[str, Any]], None]


def _unheard(clock: Clock, **fields: object) -> Workbench:
    """Two letters of one key. The first was sent with unknown outcome, and is due again."""
    bench = Workbench(
        fields={
            "ordering_key": "attribute:key", "sequence": "attribute:n", "idempotency_key": "attribute:event",
            "max_attempts": 2, "backoff_base": REST, "backoff_cap": REST, "backoff_jitter": "none", **fields,
        }
    )  # fmt: skip
    bench.judge_by_absence(window=WINDOW, advance="settled")
    for n in ("1", "2"):
        bench.bury(n, key="k", n=n, event=f"e{n}")
    bench.ready()
    bench.replay_unheard()
    assert bench.delivered_bodies() == ["1"]
    clock.advance(REST)
    return bench


def _returns(bench: Workbench, sent: dict[str, Any]) -> None:
    bench.take_back(sent)


def _reported(verdict: str) -> Tell:
    def tell(bench: Workbench, sent: dict[str, Any]) -> None:
        token = reporters.save_reporter("shop", [bench.target], anew=False, by="ann", reason="a test").token
        report = {"redrive_id": sent["MessageAttributes"]["RedriveId"]["StringValue"], "verdict": verdict}
        answer = Client(headers={"Authorization": f"Bearer {token}"}).post(
            "/reports", {"reports": [report]}, content_type="application/json"
        )
        assert answer.json() == {"accepted": 1, "repeated": 0, "refused": []}

    return tell


@pytest.fixture(params=[(_returns, "returned"), (_reported("failed"), "failed")], ids=["returns", "is denied"])
def failure(request: pytest.FixtureRequest) -> tuple[Tell, str]:
    """How the newest attempt fails, and its outcome."""
    found: tuple[Tell, str] = request.param
    return found


def _once_more(bench: Workbench, failure: tuple[Tell, str]) -> None:
    bench.replay()
    failure[0](bench, bench.delivered()[0])


def _first(bench: Workbench) -> str:
    letter = bench.letter(payload__body=b"1")
    return f"{letter.state} {letter.reason}".strip()


def _key(bench: Workbench) -> str:
    return Claim.objects.get(key_hash=sha256(b"e1").digest()).state


@pytest.mark.soak
def test_a_later_failure_keeps_the_key(clock: Clock, failure: tuple[Tell, str]) -> None:
    bench = _unheard(clock, max_attempts=3)
    _once_more(bench, failure)
    ends = [outcome for _, outcome, _ in bench.history()]
    assert (ends, _first(bench), _key(bench)) == (["unknown", failure[1]], "waiting", "held")


@pytest.mark.soak
def test_after_the_last_attempt_the_next_letter_waits_for_both_copies(clock: Clock, failure: tuple[Tell, str]) -> None:
    bench = _unheard(clock)
    _once_more(bench, failure)
    clock.advance(REST)
    bench.replay()
    assert (_first(bench), _key(bench), bench.lane().why, bench.delivered()) == ("waiting", "held", WAITS_FOR_COPY, [])
    clock.advance(WINDOW)
    bench.replay()
    assert (_first(bench), _key(bench)) == ("parked attempts_spent", "free")
    assert bench.delivered_bodies() == ["2"]


@pytest.mark.soak
def test_if_one_of_two_unknown_attempts_fails_the_next_letter_waits(clock: Clock, failure: tuple[Tell, str]) -> None:
    bench = _unheard(clock)
    bench.replay_unheard()
    assert (_first(bench), _key(bench), bench.lane().phase) == ("parked attempts_spent", "held", "awaiting")
    failure[0](bench, bench.delivered()[0])
    clock.advance(REST)
    bench.replay()
    assert (_first(bench), _key(bench), bench.lane().why, bench.delivered()) == ("waiting", "held", WAITS_FOR_COPY, [])
    clock.advance(WINDOW)
    bench.replay()
    assert (_first(bench), bench.delivered_bodies()) == ("parked attempts_spent", ["2"])


@pytest.mark.soak
def test_if_both_copies_come_back_nothing_is_waited_for(clock: Clock) -> None:
    bench = _unheard(clock)
    bench.replay()
    second = bench.delivered()[0]
    marked = second["MessageAttributes"]["RedriveId"]
    first = {"RedriveId": {**marked, "StringValue": marked["StringValue"].rpartition(":")[0] + ":1"}}
    for attributes in (first, {}):
        bench.come_back({**second, "MessageAttributes": {**second["MessageAttributes"], **attributes}})
    bench.capture()
    assert (_first(bench), _key(bench)) == ("parked attempts_spent", "free")


@pytest.mark.soak
def test_a_divert_waits_while_a_copy_may_come_back(clock: Clock) -> None:
    bench = _unheard(clock, max_attempts=3)
    other = bench.another_target()
    rule("elsewhere", "divert", "attribute:n equals 1", target=other)
    bench.replay()
    assert (_first(bench), _key(bench), bench.lane().why) == ("waiting", "held", WAITS_FOR_COPY)
    assert bench.delivered(other.url) == []
    clock.advance(WINDOW)
    bench.replay()
    assert bench.delivered_bodies(other.url) == ["1"]


def _an_equal_letter_turns_up(bench: Workbench, *, key: str, body: str = "1") -> None:
    """Capture a letter with the first letter's idempotency key, and with a place before it."""
    bench.redrive(body, key=key, n="0", event="e1")


def _equal_letters(bench: Workbench) -> list[str]:
    found = bench.dlq.letters.filter(idempotency_key="e1").order_by("pk")
    return [f"{letter.state} {letter.reason}".strip() for letter in found]


@pytest.mark.soak
@pytest.mark.parametrize(("body", "end"), [("1", "duplicate"), ("another", "parked key_conflict")])
def test_an_earlier_equal_letter_gets_the_key_when_no_copy_can_come_back(clock: Clock, body: str, end: str) -> None:
    bench = _unheard(clock, max_attempts=3, stale="deliver")
    _an_equal_letter_turns_up(bench, key="k", body=body)
    assert (_equal_letters(bench), bench.delivered()) == (["waiting", "waiting"], [])
    clock.advance(WINDOW)
    bench.replay()
    assert bench.delivered_bodies() == [body]
    bench.outlast(clock, WINDOW + 5)
    bench.replay()
    assert (_equal_letters(bench), bench.lane(key="k").phase) == ([end, "delivered"], "awaiting")
    assert bench.delivered_bodies() == ["2"]


@pytest.mark.soak
def test_a_letter_at_the_head_of_its_own_lane_keeps_its_key(clock: Clock) -> None:
    bench = _unheard(clock, max_attempts=3)
    Lane.objects.update(stopped_at=lanes.database_now(), stopped_by="ann", stop_reason="a test")
    _an_equal_letter_turns_up(bench, key="another")
    clock.advance(WINDOW)
    bench.replay()
    assert (_equal_letters(bench), _key(bench), bench.delivered()) == (["waiting", "waiting"], "held", [])
    Lane.objects.update(stopped_at=None, stopped_by="", stop_reason="")
    bench.replay()
    assert (_equal_letters(bench), bench.delivered_bodies()) == (["awaiting", "waiting"], ["1"])


LEASE = 9


EACH_WAY = pytest.mark.parametrize(
    "tell", [_returns, _reported("failed"), _reported("delivered")],
    ids=["comes back", "failed", "delivered"],
)  # fmt: skip


@pytest.mark.soak
@EACH_WAY
def test_a_letter_sent_by_a_dead_worker_makes_an_earlier_letter_stale(clock: Clock, tell: Tell) -> None:
    bench = Workbench(fields=KEYED)
    bench.enqueue("2", key="a", n="2")
    bench.replay_and_die(sent=True)
    (sent,) = bench.delivered()
    tell(bench, sent)
    bench.enqueue("1", key="a", n="1")
    clock.advance(LEASE)
    bench.replay()
    early = bench.letter(payload__body=b"1")
    assert (early.state, early.reason, bench.states()["2"]) == ("parked", "stale", "delivered")


@pytest.mark.soak
@EACH_WAY
def test_a_late_released_letter_leaves_the_order_as_it_was(clock: Clock, tell: Tell) -> None:
    bench = Workbench(fields=KEYED)
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
