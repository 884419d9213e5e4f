"""A letter whose attempt ended unknown leaves: no other with its key is sent while its copy may be in the target.

Whatever the target's proof and advance are, and however the letter leaves. Only the lane goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from reprocessing.models import Claim, Letter, Target
from reprocessing.models.system import RestoreDecision
from reprocessing.models.target import DEDUPLICATED_FOR
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.store import rows
from reprocessing.store.maintenance import restore_doubts, restore_hold
from reprocessing.store.ordering import lanes
from reprocessing.store.replay.settlement_effects import COPY_WINDOW
from tests.reprocessing.pipeline.bench import Clock, Workbench
from tests.reprocessing.pipeline.rulings import rule

pytestmark = pytest.mark.django_db(transaction=True)

LEASE, REST, WINDOW = 9, 30, 100
OF_NO_WINDOW = DEDUPLICATED_FOR
MAY_BE_THERE = "the target may still have a copy of another message with the same idempotency key"

Leave = Callable[[Workbench, Clock], None]


def _bench(*, window: float = WINDOW, **fields: object) -> Workbench:
    keyed: dict[str, Any] = {
        "ordering_key": "none", "idempotency_key": "attribute:event", "max_attempts": 5, "backoff_base": REST,
        "backoff_cap": REST, "backoff_jitter": "none",
    }  # fmt: skip
    bench = Workbench(fields=keyed | fields)
    if window == WINDOW:
        bench.judge_by_absence(window=window, advance="accepted")
    return bench


def _send(bench: Workbench) -> None:
    bench.enqueue("one", event="e", first="yes")
    bench.replay_unheard()


def _equal_letter(bench: Workbench) -> Letter:
    bench.redrive("one", event="e")
    return _equal_letter_again(bench)


def _equal_letter_again(bench: Workbench) -> Letter:
    return bench.letter(pk=max(bench.dlq.letters.values_list("pk", flat=True)))


def _first(bench: Workbench) -> Letter:
    return bench.letter(pk=min(bench.dlq.letters.values_list("pk", flat=True)))


def _is_spent(bench: Workbench, _: Clock) -> None:
    type(bench.dlq).objects.update(max_attempts=1)
    _send(bench)


def _loses_its_worker(bench: Workbench, clock: Clock) -> None:
    type(bench.dlq).objects.update(max_attempts=1)
    bench.enqueue("one", event="e", first="yes")
    bench.lose_worker(clock)
    bench.replay()


def _is_poison(bench: Workbench, clock: Clock) -> None:
    _send(bench)
    clock.advance(REST + 1)
    with bench.refusing("one", poison=True):
        bench.replay()


def _is_quarantined(bench: Workbench, clock: Clock) -> None:
    _send(bench)
    clock.advance(REST + 1)
    rule("look", "quarantine", "attribute:first equals yes")
    bench.replay()


def _is_spent_at_the_gate(bench: Workbench, clock: Clock) -> None:
    _send(bench)
    clock.advance(REST + 1)
    type(bench.dlq).objects.update(max_attempts=1)
    bench.replay()


LEAVES: dict[str, Leave] = {
    "spent": _is_spent,
    "its worker is lost": _loses_its_worker,
    "poison": _is_poison,
    "quarantined": _is_quarantined,
    "spent at the gate": _is_spent_at_the_gate,
}


@pytest.mark.soak
@pytest.mark.parametrize("window", [WINDOW, OF_NO_WINDOW])
@pytest.mark.parametrize("leaves", LEAVES)
def test_an_equal_letter_is_not_sent_while_a_copy_may_be_in_the_target(
    clock: Clock, leaves: str, window: float
) -> None:
    bench = _bench(window=window)
    LEAVES[leaves](bench, clock)
    assert (_first(bench).state, len(bench.delivered())) == ("parked", 1)
    equal = _equal_letter(bench)
    assert (equal.state, equal.attempts, Claim.objects.get().state) == ("waiting", 0, "held")
    assert bench.lane(letters=equal).why == MAY_BE_THERE
    clock.advance(window + 1)
    bench.replay()
    assert (_equal_letter_again(bench).attempts, len(bench.delivered())) == (1, 1)


def _is_discarded(bench: Workbench, clock: Clock) -> None:
    _is_spent(bench, clock)
    act_on_parked.discard([_first(bench).pk], by="ann", reason="old")


def _is_discarded_by_a_rule(bench: Workbench, clock: Clock) -> None:
    _send(bench)
    clock.advance(REST + 1)
    rule("old", "discard", "attribute:first equals yes")
    bench.replay()


@pytest.mark.soak
@pytest.mark.parametrize("leaves", [_is_discarded, _is_discarded_by_a_rule])
def test_a_released_equal_letter_waits_for_the_copy_of_a_discarded_letter(clock: Clock, leaves: Leave) -> None:
    bench = _bench()
    leaves(bench, clock)
    equal = _equal_letter(bench)
    assert (equal.state, equal.reason) == ("parked", "equal_discarded")
    act_on_parked.release([equal.pk], by="ann", reason="it is wanted after all")
    bench.replay()
    assert (_equal_letter_again(bench).attempts, bench.lane(letters=equal).why) == (0, MAY_BE_THERE)
    clock.advance(WINDOW + 1)
    bench.replay()
    assert (_first(bench).state, _equal_letter_again(bench).attempts) == ("discarded", 1)


@pytest.mark.soak
def test_a_restored_letter_keeps_its_key(clock: Clock) -> None:
    bench = _bench()
    _is_spent(bench, clock)
    act_on_parked.discard([_first(bench).pk], by="ann", reason="old")
    act_on_parked.restore([_first(bench).pk], by="ann", reason="not old")
    assert (_equal_letter(bench).attempts, Claim.objects.get().state) == (0, "held")


@pytest.mark.soak
def test_a_divert_frees_no_key_while_a_copy_may_be_in_the_target(clock: Clock) -> None:
    bench = _bench()
    _send(bench)
    clock.advance(REST + 1)
    other = bench.another_target()
    rule("elsewhere", "divert", "attribute:first equals yes", target=other)
    with bench.refusing("one"):
        bench.replay()
    assert _first(bench).target_id == other.pk
    assert _equal_letter(bench).attempts == 0
    clock.advance(WINDOW + 1)
    with bench.refusing("no body"):
        bench.replay()
    assert _equal_letter_again(bench).attempts == 1


def test_a_letter_parked_after_a_restore_keeps_its_key(clock: Clock) -> None:
    bench = _bench()
    _send(bench)
    restore_hold.begin_hold(lanes.database_now() - timedelta(hours=1), by="ann", reason="a restore")
    restore_doubts.record_decision(
        restore_doubts.doubted_letters(dlq=None, above=0, limit=9), RestoreDecision.PARKED, by="ann", reason="not known"
    )
    assert (_first(bench).state, Claim.objects.get().state) == ("parked", "held")


@pytest.mark.soak
def test_a_return_of_a_forgotten_attempt_frees_no_key(clock: Clock) -> None:
    """A backup knew only the first attempt; the copy of the third came back."""
    bench = _bench()
    _send(bench)
    (sent,) = bench.delivered()
    mark = sent["MessageAttributes"]["RedriveId"]
    sent["MessageAttributes"]["RedriveId"] = {**mark, "StringValue": mark["StringValue"].replace(":1", ":3")}
    bench.take_back(sent)
    assert (_first(bench).attempts, Claim.objects.get().state) == (3, "held")
    assert _equal_letter(bench).attempts == 0


@pytest.mark.parametrize("window", [0, 7])
@pytest.mark.parametrize("proof", ["accepted", "acknowledged"])
@pytest.mark.parametrize(("visibility", "timeout"), [(30, 30), (1800, 30), (30, 900)])
def test_the_window_of_a_copy_is_the_same_in_python_and_in_sql(
    window: float, proof: str, visibility: int, timeout: float
) -> None:
    target = Target.objects.create(
        arn="a", url="https://a.example", region="", proof=proof, window=window, visibility=visibility, timeout=timeout
    )
    asked = f"SELECT {COPY_WINDOW}::float8 AS n FROM redrive_target t WHERE t.id = %(id)b"
    assert rows.value(float, asked, {"id": target.pk}) == target.copy_window
