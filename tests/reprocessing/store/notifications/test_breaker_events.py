"""A breaker that opens or closes says so in the transaction that moves it, once, whoever looked."""

from __future__ import annotations

from typing import Any

import pytest

from reprocessing.models import Incident
from reprocessing.store import rows
from reprocessing.store.notifications import breaker_events
from reprocessing.store.safety import breaker_resets, circuit_breakers
from tests.reprocessing.incidents import is_open, statements, told
from tests.reprocessing.store.safety.test_circuit_breakers import Bench

pytestmark = pytest.mark.django_db(transaction=True)

WHO: dict[str, Any] = {"by": "ann", "reason": "s3cret words"}


def look_after(bench: Bench, outcomes: str) -> None:
    bench.send(outcomes)
    bench.look()


def opened(bench: Bench) -> Bench:
    look_after(bench, "xxxxx")
    return bench


def subject(bench: Bench) -> str:
    return f"breaker:{bench.breaker.pk}"


@pytest.mark.parametrize("letters", [50, pytest.param(5_000, marks=[pytest.mark.soak, pytest.mark.long])])
def test_many_failures_open_one_incident(letters: int) -> None:
    bench = Bench()
    bench.send("x" * letters)
    for _ in range(3):
        bench.look()
    assert is_open("breaker_open") == {
        subject(bench): {
            "target": f"{bench.dlq.name}-source", "breaker_id": bench.breaker.pk, "dlq": bench.dlq.name,
            "why": f"{min(letters, 100)} messages in a row failed", "seconds": 30.0,
        }
    }  # fmt: skip
    assert Incident.objects.get().dlq == bench.dlq


def test_the_incident_of_a_target_of_two_dlqs_names_neither() -> None:
    bench, other = Bench(), Bench()
    other.source.target = bench.target
    other.source.save()
    opened(bench)
    assert "dlq" not in is_open("breaker_open")[subject(bench)]
    assert Incident.objects.get().dlq is None


def test_closing_a_breaker_ends_the_incident_and_reopening_continues_it() -> None:
    bench = opened(Bench(canaries_to_close=1))
    bench.half_open()
    look_after(bench, "x")
    assert told("breaker_open") == [(subject(bench), 2, True)]
    bench.half_open()
    look_after(bench, "v")
    assert told("breaker_open") == [(subject(bench), 2, False)]


def test_a_canary_that_does_not_close_the_breaker_does_not_end_the_incident() -> None:
    bench = opened(Bench(canaries_to_close=2))
    bench.half_open()
    look_after(bench, "v")
    assert told("breaker_open") == [(subject(bench), 1, True)]


def test_an_opening_and_its_announcement_are_committed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    bench.send("xxxxx")

    def breaks(_: object) -> None:
        raise ZeroDivisionError

    def look_and_fail() -> None:
        bench.look()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        rows.in_transaction(look_and_fail)
    assert (bench.breaker.state, told("breaker_open")) == ("closed", [])
    monkeypatch.setattr(breaker_events, "announce", breaks)
    with pytest.raises(ZeroDivisionError):
        bench.look()
    assert bench.breaker.state == "closed"


def test_a_failed_wave_opens_the_breaker_with_its_reason() -> None:
    bench = Bench()
    circuit_breakers.open_after({(bench.breaker.pk, bench.breaker.epoch)}, why="3 waves failed")
    assert is_open("breaker_open")[subject(bench)]["why"] == "3 waves failed"


def test_the_incident_of_a_manual_opening_omits_the_reason() -> None:
    bench = Bench()
    breaker_resets.reset([bench.target.pk], to="open", seconds=60, **WHO)
    facts = is_open("breaker_open")[subject(bench)]
    assert (facts["why"], facts["seconds"]) == ("a person opened it: ann", 60.0)
    breaker_resets.reset([bench.target.pk], to="closed", **WHO)
    assert told("breaker_open") == [(subject(bench), 1, False)]


def test_a_check_without_a_change_runs_two_statements() -> None:
    bench = Bench()
    bench.send("vvvx")
    with statements() as asked:
        bench.look()
    assert len(asked) == 2


def test_three_breakers_that_open_together_are_announced_with_one_statement() -> None:
    benches = [Bench() for _ in range(3)]
    for bench in benches:
        bench.send("xxxxx")
    with statements() as asked:
        circuit_breakers.move_breakers([bench.breaker.pk for bench in benches])
    assert len([statement for statement in asked if "INSERT INTO redrive_incident" in statement]) == 1
    assert len(is_open("breaker_open")) == 3
