"""The plan decides; what the server makes of the decisions is in test_faults_over_http."""

from __future__ import annotations

import pytest

from redrive_service.sandbox.sqs.server.fault_plan import FaultIsUnusable, FaultPlan


def plan_of(*faults: object) -> FaultPlan:
    plan = FaultPlan()
    plan.replace(list(faults))
    return plan


def struck(plan: FaultPlan, calls: int, action: str = "SendMessage", queue: str = "q") -> list[str | None]:
    decisions = [plan.on_arrival(action, queue) for _ in range(calls)]
    return [None if fault is None else fault.code for fault in decisions]


def test_after_lets_calls_through_and_times_counts_what_fails() -> None:
    plan = plan_of({"kind": "error", "code": "A", "after": 2, "times": 3})
    assert struck(plan, 7) == [None, None, "A", "A", "A", None, None]
    assert plan.shown() == [{"kind": "error", "code": "A", "after": 2, "times": 3, "fired": 3}]


def test_without_times_a_fault_lasts() -> None:
    assert struck(plan_of({"kind": "error", "code": "A", "times": None}), 50) == ["A"] * 50


def test_the_first_fault_that_strikes_takes_the_call() -> None:
    plan = plan_of(
        {"kind": "error", "code": "A", "times": 1},
        {"kind": "error", "code": "B", "times": 1, "after": 1},
        {"kind": "error", "code": "C"},
    )
    assert struck(plan, 4) == ["A", "C", "B", "C"]


def test_a_fault_is_about_its_action_and_queue_only() -> None:
    plan = plan_of({"kind": "error", "code": "A", "action": "SendMessage", "queue": "q"})
    assert struck(plan, 1, "SendMessage", "other") == [None]
    assert struck(plan, 1, "DeleteMessage", "q") == [None]
    assert struck(plan, 1, "SendMessage", "q") == ["A"]
    assert struck(plan_of({"kind": "error", "code": "A", "action": "*"}), 1, "ListQueues", "any") == ["A"]


def test_partial_faults_are_about_batches_and_hand_out_faults_about_receives() -> None:
    plan = plan_of({"kind": "partial", "code": "A", "positions": [1]}, {"kind": "duplicate", "times": 1})
    assert struck(plan, 1, "SendMessage") == [None]
    assert struck(plan, 1, "ReceiveMessage") == [None]
    assert struck(plan, 1, "SendMessageBatch") == ["A"]
    decisions = [plan.on_hand_out("q"), plan.on_hand_out("q")]
    assert [fault and fault.kind for fault in decisions] == ["duplicate", None]


def test_an_unusable_plan_leaves_the_old_one() -> None:
    plan = plan_of({"kind": "drop"})
    with pytest.raises(FaultIsUnusable):
        plan.replace([{"kind": "error"}, {"kind": "nonsense"}])
    assert plan.shown() == [{"kind": "drop", "fired": 0}]


KINDS = (
    "Fault 0: kind must be one of accept_then_timeout, delay, drop, duplicate, early_expiry, error, false_empty, hang, "
    "partial."
)
POSITIONS = "Fault 0: positions must be a list of whole numbers, 0 for the first entry."


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("drop", "Fault 0 must be an object with a kind."),
        ({}, KINDS),
        ({"kind": ["drop"]}, KINDS),
        ({"kind": "drop", "code": 5}, "Fault 0: drop has no field 'code'; it has action, after, kind, queue, times."),
        ({"kind": "drop", "times": -1}, "Fault 0: times must be a whole number from 0."),
        ({"kind": "drop", "after": "1"}, "Fault 0: after must be a whole number from 0."),
        ({"kind": "error", "status": 200}, "Fault 0: status must be a whole number from 400 to 599."),
        ({"kind": "error", "code": 7}, "Fault 0: code must be text."),
        ({"kind": "early_expiry", "seconds": 0.5}, "Fault 0: seconds must be a whole number from 0 to 43200."),
        ({"kind": "partial", "positions": 1}, POSITIONS),
        ({"kind": "partial", "positions": [-1]}, POSITIONS),
    ],
)  # fmt: skip
def test_a_fault_that_makes_no_sense_is_refused_with_the_cure(fault: object, sentence: str) -> None:
    with pytest.raises(FaultIsUnusable) as refusal:
        plan_of(fault)
    assert str(refusal.value) == sentence
