"""The gate's verdicts, alone and in whole turns."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.replay.verdicts import Go, OpenBreaker, Park, Skip, Verdict, Wait
from reprocessing.domain.safety.failure_cause import OUTCOMES_AWAITED, WAITS_FOR_CAUSE, LastFailures
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.pipeline.replay import gate
from reprocessing.store.ordering.lane_state import LaneState
from reprocessing.store.safety.send_limits import SendLimit
from tests.reprocessing.pipeline.bench import Clock, Workbench

HEAD = LaneState(
    lane_id=1, fence=1, phase="leased", letter_id=1, dlq_id=1, target_id=1, attempts=0, max_attempts=3, never_sent=True,
    stale=False, stale_policy="park", released=False, receives=1, receive_limit=None, claim_state=None,
    claim_letter=None, claim_same_body=None,
)  # fmt: skip
OPEN_ROAD = SendLimit(
    epoch=0, breaker_id=1, target_id=1, rate_class_id=None, state="closed", why_unhealthy=None, unsettled=0, ramp=1,
    canary_wait=0, step_due=False, class_rate=None, class_burst=None, rules=0,
)  # fmt: skip
UNDER_WAY = Wait(gate.EQUAL_UNDER_WAY, "another message with the same idempotency key is being sent")
ANOTHER_CANARY = Wait(gate.UNTIL_BREAKER_CLOSES, "the circuit breaker is half open, and its canary has no outcome yet")


@pytest.mark.parametrize(
    ("facts", "room", "verdict"),
    [
        ({}, 1, Go()),
        ({"attempts": 2}, 1, Go()),
        ({"attempts": 3}, 1, Park(ParkedReason.ATTEMPTS_SPENT)),
        ({"stale": True}, 1, Park(ParkedReason.STALE)),
        ({"stale": True, "never_sent": False}, 1, Go()),
        ({"stale": True, "released": True}, 1, Go()),
        ({"stale": True, "stale_policy": "deliver"}, 1, Go()),
        ({"receive_limit": 3, "receives": 3}, 1, Go()),
        ({"receive_limit": 3, "receives": 4}, 1, Park(ParkedReason.RECEIVED_TOO_OFTEN, "4 receives")),
        ({"receive_limit": 3, "receives": 4, "released": True}, 1, Go()),
        ({}, 0, Wait(gate.TARGET_IS_FULL, "the target has as many messages without an outcome as allowed")),
        ({"claim_letter": 1, "claim_state": "held"}, 1, Go()),
        ({"claim_letter": 1, "claim_state": "free"}, 1, Go()),
        ({"claim_letter": 2, "claim_state": "free"}, 1, Go()),
        ({"claim_letter": 2, "claim_state": "held"}, 1, UNDER_WAY),
        ({"claim_letter": 2, "claim_state": "delivered", "claim_same_body": True}, 1, Skip(duplicate_of=2)),
        ({"claim_letter": 2, "claim_state": "delivered", "claim_same_body": False}, 1, Park(ParkedReason.KEY_CONFLICT)),
        ({"claim_letter": 2, "claim_state": "delivered", "claim_same_body": False, "released": True}, 1, Go()),
        ({"claim_letter": 2, "claim_state": "discarded"}, 1, Park(ParkedReason.EQUAL_DISCARDED)),
        ({"claim_letter": 2, "claim_state": "discarded", "released": True}, 1, Go()),
        ({"claim_letter": 2, "claim_state": "held", "released": True, "attempts": 3}, 0, UNDER_WAY),
    ],
)
def test_the_verdict_over_a_head(facts: dict[str, Any], room: int, verdict: Verdict) -> None:
    assert gate.judge_head(replace(HEAD, **facts), OPEN_ROAD, room=room) == verdict


@pytest.mark.parametrize(
    ("attempts", "tries", "spared"), [(1, 2, False), (1, 3, True), (2, 9, True), (3, 3, False), (3, 9, False)]
)
def test_a_head_with_as_many_attempts_as_its_limit_is_sent_for_spared_attempts(
    attempts: int, tries: int, *, spared: bool
) -> None:
    assert gate.is_sent_for_spared_attempts(replace(HEAD, attempts=attempts, tries=tries)) is spared


@pytest.mark.parametrize(
    ("brake", "canary_out", "verdict"),
    [
        ({"state": "open", "canary_wait": 9.0}, False, Wait(gate.UNTIL_BREAKER_CLOSES, "the circuit breaker is open")),
        ({"state": "open", "canary_wait": 0.0}, False, Go()),
        ({"state": "open", "canary_wait": 0.0}, True, ANOTHER_CANARY),
        ({"state": "half_open", "canary_wait": 9.0}, False, ANOTHER_CANARY),
        ({"state": "half_open", "canary_wait": 0.0}, False, Go()),
        ({"state": "half_open", "canary_wait": 0.0}, True, ANOTHER_CANARY),
        ({"why_unhealthy": "rain"}, False, Wait(gate.UNTIL_BREAKER_CLOSES, "its target is not healthy: rain")),
        (
            {"why_unhealthy": ""},
            False,
            Wait(gate.UNTIL_BREAKER_CLOSES, "its target is not healthy: its health is unknown"),
        ),
        ({}, True, Go()),
    ],
)
def test_a_brake_holds_a_head_back(brake: dict[str, Any], canary_out: bool, verdict: Verdict) -> None:
    assert gate.judge_head(HEAD, replace(OPEN_ROAD, **brake), room=1, canary_out=canary_out) == verdict


LONG_AGO = LastFailures(OUTCOMES_AWAITED, success_since_first=False, success_since_last=False)


@pytest.mark.parametrize(
    ("failures", "brake", "verdict"),
    [
        (None, {}, Park(ParkedReason.ATTEMPTS_SPENT)),
        (replace(LONG_AGO, success_since_first=True), {}, Park(ParkedReason.ATTEMPTS_SPENT)),
        (replace(LONG_AGO, success_since_last=True, seconds_ago=0), {}, Park(ParkedReason.ATTEMPTS_SPENT)),
        (replace(LONG_AGO, seconds_ago=0), {}, Wait(gate.UNTIL_OTHERS_SETTLE, WAITS_FOR_CAUSE)),
        (LONG_AGO, {}, OpenBreaker("a message used up its attempts, and no other message succeeded")),
        (LONG_AGO, {"state": "open", "canary_wait": 0.0}, Go()),
        (LONG_AGO, {"state": "half_open", "canary_wait": 0.0}, Go()),
    ],
)
def test_a_spent_head_is_parked_or_opens_its_breaker(
    failures: LastFailures | None, brake: dict[str, Any], verdict: Verdict
) -> None:
    spent = replace(HEAD, attempts=3)
    assert gate.judge_head(spent, replace(OPEN_ROAD, **brake), room=1, failures=failures) == verdict
    assert gate.judge_head(replace(HEAD, attempts=2), OPEN_ROAD, room=1, failures=failures) == Go()


def test_a_lane_whose_breaker_the_gate_opens_waits_for_that_breaker() -> None:
    spent = replace(HEAD, attempts=3, breaker_id=1)
    judged = gate.judge_heads(
        [spent], send_limits={1: OPEN_ROAD}, room=Counter({1: 9}), failures={spent.letter_id or 0: LONG_AGO}
    )
    assert judged.opening == {1: "a message used up its attempts, and no other message succeeded"}
    assert [wait.why for _, wait in judged.waiting] == ["the circuit breaker is open"]


@pytest.mark.parametrize("tries", [(9, 1, 4), (1, 4, 9), (4, 9, 1)])
def test_the_head_with_the_fewest_tries_is_the_canary(tries: tuple[int, ...]) -> None:
    some = [replace(HEAD, lane_id=n, letter_id=n, breaker_id=1, tries=n) for n in tries]
    on_trial = replace(OPEN_ROAD, state="open", canary_wait=0.0)
    judged = gate.judge_heads(some, send_limits={1: on_trial}, room=Counter({1: 9}), failures={})
    assert [head.letter_id for head in judged.going] == [1]
    assert {head.letter_id: wait for head, wait in judged.waiting} == {4: ANOTHER_CANARY, 9: ANOTHER_CANARY}


def test_a_brake_is_asked_before_the_claim_and_an_unknown_brake_permits_nothing() -> None:
    equal = replace(HEAD, claim_letter=2, claim_state="delivered", claim_same_body=True, attempts=9)
    waits = gate.judge_head(equal, replace(OPEN_ROAD, state="open", canary_wait=1.0), room=1)
    assert waits == Wait(gate.UNTIL_BREAKER_CLOSES, "the circuit breaker is open")
    assert gate.judge_head(HEAD, None, room=1) == Wait(gate.UNKNOWN_BREAKER, "the circuit breaker was not found")


through_postgres = pytest.mark.django_db(transaction=True)

BY_KEY: dict[str, Any] = {"idempotency_key": "attribute:idem"}
LEASE = 9


def _one_after_another(bench: Workbench, *bodies: str) -> None:
    for body in bodies:
        bench.redrive(body, idem="k")


@pytest.mark.soak
@through_postgres
def test_an_equal_key_with_another_body_is_a_conflict() -> None:
    bench = Workbench(fields=BY_KEY)
    _one_after_another(bench, "one", "other")
    assert bench.states() == {"one": "delivered", "other": "parked"}
    assert bench.letter(state="parked").reason == "key_conflict"
    assert len(bench.delivered()) == 1


@through_postgres
def test_an_equal_letter_waits_while_its_key_is_being_sent(clock: Clock) -> None:
    bench = Workbench(fields=BY_KEY)
    bench.enqueue("first", idem="k")
    bench.replay_and_die(sent=True)
    bench.bury("second", idem="k")
    bench.redrive("other", idem="other")
    assert bench.states() == {"first": "sending", "second": "waiting", "other": "delivered"}
    equal = bench.letter(payload__body=b"second").lane
    assert equal is not None
    assert (equal.phase, equal.why) == ("ready", "another message with the same idempotency key is being sent")
    clock.advance(LEASE)
    bench.replay()
    assert bench.states()["first"] == "delivered"


@through_postgres
def test_an_equal_letter_of_a_discarded_letter_is_parked() -> None:
    bench = Workbench(fields=BY_KEY)
    bench.enqueue("first", idem="k")
    with bench.refusing("first", poison=True):
        bench.replay()
    act_on_parked.discard([bench.letter().pk], by="anna", reason="of no use")
    _one_after_another(bench, "second")
    assert bench.states() == {"first": "discarded", "second": "parked"}
    assert bench.letter(state="parked").reason == "equal_discarded"


@through_postgres
@pytest.mark.parametrize("fate", ["delivered", "discarded"])
def test_a_released_letter_is_sent_though_its_key_is_taken(fate: str) -> None:
    bench = Workbench(fields=BY_KEY)
    bench.enqueue("first", idem="k")
    if fate == "delivered":
        bench.replay()
    else:
        with bench.refusing("first", poison=True):
            bench.replay()
        act_on_parked.discard([bench.letter().pk], by="anna", reason="of no use")
    _one_after_another(bench, "second")
    assert bench.states() == {"first": fate, "second": "parked"}
    act_on_parked.release([bench.letter(state="parked").pk], by="anna", reason="both are meant")
    bench.replay()
    assert bench.states() == {"first": fate, "second": "delivered"}
