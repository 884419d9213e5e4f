"""A breaker's row follows its attempts: who looks, how often and when, makes no difference."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from reprocessing.models import Attempt, Breaker, DeadLetter, RateClass
from reprocessing.store.ordering.lanes import clock as now
from reprocessing.store.safety import breaker_resets, breaker_status, circuit_breakers, rate_ramps
from reprocessing.store.safety.circuit_breakers import Moved
from tests.race.abreast import together
from tests.reprocessing.pipeline.bench import Clock
from tests.reprocessing.store.stock import NOW, Stock

pytestmark = pytest.mark.django_db

#: What became of an attempt, a sign each: failed, well, open, saying nothing, returned after it was called well.
FATES: dict[str, dict[str, Any]] = {
    "x": {"ill": True, "outcome": "refused"},
    "v": {"ill": False, "outcome": "accepted"},
    "o": {},
    "-": {"outcome": "unknown"},
    "r": {"ill": False, "outcome": "accepted", "returned_at": NOW},
}


class Bench(Stock):
    """A target whose breaker is told of attempts."""

    def __init__(self, **policy: object) -> None:
        super().__init__()
        self.no = 0
        self.set(**policy)

    def set(self, **fields: object) -> None:
        Breaker.objects.filter(pk=self.breaker.pk).update(**fields)

    @property
    def breaker(self) -> Breaker:
        return Breaker.objects.get(target=self.target, rate_class=None)

    def send(
        self, fates: str, breaker: Breaker | None = None, *, letters: Sequence[DeadLetter] = (), **fields: object
    ) -> list[Attempt]:
        """Attempts of the breaker's present epoch, in the order of sending; of these letters, or each of a new one."""
        breaker = breaker or self.breaker
        letters = letters or self.more_letters(len(fates))
        at = now()
        rows = [
            Attempt(
                letter=letters[place], lane=self.lane, target=self.target, no=self.no + place, epoch=0, fence=1,
                opened_at=at, holds_lane=False, breaker=breaker,
                **{"breaker_epoch": breaker.epoch, "closed_at": None if fate == "o" else at, **FATES[fate], **fields},
            )
            for place, fate in enumerate(fates)
        ]  # fmt: skip
        self.no += len(rows)
        return Attempt.objects.bulk_create(rows)

    def look(self) -> list[tuple[str, str, str]]:
        return [(one.before, one.after, one.why) for one in circuit_breakers.look([self.breaker.pk])]

    def half_open(self, **fields: object) -> None:
        """As INTENT leaves it when it lets a canary go."""
        values = {"state": "half_open", "epoch": self.breaker.epoch + 1, "retry_at": None, "rest": 30.0}
        self.set(**{**values, "canary_until": now() + timedelta(seconds=8), **fields})

    def stands(self) -> tuple[str, int]:
        return self.breaker.state, self.breaker.epoch


def close(attempts: Iterable[Attempt], fate: str) -> None:
    Attempt.objects.filter(pk__in=[one.pk for one in attempts]).update(**FATES[fate], closed_at=now())


def test_a_row_of_failures_opens_it() -> None:
    bench = Bench(threshold=3, cooldown=7)
    bench.send("vvxvxx")
    assert (bench.look(), bench.stands()) == ([], ("closed", 0))
    bench.send("x")
    before = now()
    assert bench.look() == [("closed", "open", "3 messages in a row failed")]
    row = bench.breaker
    assert (row.state, row.epoch, row.rest, row.successes, row.canary_until) == ("open", 1, 7, 0, None)
    assert row.retry_at is not None
    assert before <= row.since == row.retry_at - timedelta(seconds=7) <= now()
    assert row.why == "3 messages in a row failed"


def test_looking_again_changes_nothing() -> None:
    bench = Bench()
    bench.send("xxxxx")
    bench.look()
    row = Breaker.objects.values().get()
    assert (bench.look(), Breaker.objects.values().get()) == ([], row)


def test_letters_that_came_back_count_whatever_was_said_of_them_before() -> None:
    bench = Bench()
    bench.send("rrrrr")
    assert bench.look() == [("closed", "open", "5 messages in a row failed")]


@pytest.mark.parametrize(("between", "opens"), [("o", False), ("v", False), ("-", True), ("---", True)])
def test_an_unsettled_letter_breaks_a_row_and_one_that_says_nothing_does_not(between: str, opens: bool) -> None:
    bench = Bench()
    bench.send(f"xx{between}xxx")
    assert bool(bench.look()) == opens


def test_a_letter_that_fails_again_says_nothing_more_until_the_next_epoch() -> None:
    bench = Bench(at_least=6, ratio=0.5)
    letters = bench.more_letters(4)
    for fates in ("xrxr", "rxrx", "xxxx"):
        bench.send(fates, letters=letters)
        assert bench.look() == []
    bench.set(epoch=1)
    bench.send("xxxx", letters=letters)
    assert bench.look() == []
    bench.send("x")
    assert bench.look() == [("closed", "open", "5 messages in a row failed")]


def test_retries_that_fail_neither_break_a_row_nor_lie_between_two_others() -> None:
    bench = Bench(threshold=3)
    letters = bench.more_letters(2)
    bench.send("xx", letters=letters)
    bench.send("xr" * 60, letters=letters * 60)
    assert bench.look() == []
    bench.send("x")
    assert bench.look() == [("closed", "open", "3 messages in a row failed")]


def test_a_window_does_not_reach_on_to_a_retry_that_fails() -> None:
    """What went well after the newest failure that counts is not looked at, however much it is."""
    bench = Bench(at_least=4)
    letters = bench.more_letters(1)
    bench.send("x", letters=letters)
    bench.send("vxxvvx" + "v" * 100)
    bench.send("x", letters=letters)
    assert bench.look() == [("closed", "open", "4 of 7 messages failed (57%)")]


def test_what_said_nothing_the_first_time_says_it_the_next() -> None:
    bench = Bench()
    letters = bench.more_letters(5)
    for fates in ("-----", "vvvvv", "ooooo", "xxxxx"):
        assert bench.look() == []
        bench.send(fates, letters=letters)
    assert bench.look() == [("closed", "open", "5 messages in a row failed")]


def test_a_failure_at_another_breaker_is_none_here() -> None:
    bench, other = Bench(), Bench()
    letters = bench.more_letters(5)
    bench.send("xxxxx", other.breaker, letters=letters)
    assert bench.look() == []
    bench.send("xxxxx", letters=letters)
    assert bench.look() == [("closed", "open", "5 messages in a row failed")]


def test_a_letter_that_is_taken_after_it_failed_breaks_a_row() -> None:
    bench = Bench()
    letters = bench.more_letters(2)
    bench.send("xx", letters=letters)
    bench.send("v", letters=letters)
    bench.send("xxx")
    assert bench.look() == []


def test_a_canary_decides_also_when_its_letter_failed_before() -> None:
    bench = Bench(cooldown_cap=100)
    letters = bench.more_letters(1)
    for rest in (30, 60):
        bench.half_open(rest=rest)
        bench.send("x", letters=letters)
        assert bench.look() == [("half_open", "open", f"the canary failed after a rest of {rest} s")]


def test_the_order_is_that_of_sending_not_of_settling() -> None:
    bench = Bench()
    late = bench.send("xxoxx")[2:3]
    bench.send("v" * 40)
    assert bench.look() == []
    close(late, "x")
    assert bench.look() == [("closed", "open", "5 messages in a row failed")]


def test_a_share_of_failures_opens_it_up_to_the_newest_failure() -> None:
    bench = Bench()
    bench.send("vx" * 9 + "v" + "o" * 50)
    assert bench.look() == []
    bench = Bench()
    bench.send("vx" * 10 + "o" * 50)
    assert bench.look() == [("closed", "open", "10 of 20 messages failed (50%)")]


def test_a_few_failures_among_thousands_do_not_open_it() -> None:
    bench = Bench()
    for _ in range(5):
        letters = [bench.letter] * 300 + bench.more_letters(1) + [bench.letter] * 100
        bench.send("v" * 300 + "x" + "o" * 100, letters=letters)
    assert bench.look() == []


def test_what_another_epoch_or_another_breaker_saw_does_not_count() -> None:
    bench, other = Bench(), Bench()
    bench.send("xxx")
    bench.set(epoch=1)
    bench.send("xx")
    other.send("xx", bench.breaker, breaker_epoch=0)
    other.send("xxx")
    assert circuit_breakers.look([bench.breaker.pk, other.breaker.pk]) == []


def test_a_class_of_letters_has_a_breaker_of_its_own() -> None:
    bench = Bench()
    vip = RateClass.objects.create(name="vip")
    own = Breaker.objects.create(target=bench.target, rate_class=vip)
    bench.send("xxxxx", own)
    name = f"{bench.target}, vip"
    why = "5 messages in a row failed"
    assert circuit_breakers.look([own.pk, bench.breaker.pk]) == [Moved(own.pk, name, "closed", "open", why)]
    assert bench.stands() == ("closed", 0)


def test_an_open_one_is_left_alone() -> None:
    bench = Bench(state="open", retry_at=NOW, epoch=3)
    bench.send("vvvvv")
    assert (bench.look(), bench.stands()) == ([], ("open", 3))


def test_a_canary_under_way_decides_nothing() -> None:
    bench = Bench()
    bench.half_open()
    bench.send("o")
    row = Breaker.objects.values().get()
    assert (bench.look(), Breaker.objects.values().get()) == ([], row)


@pytest.mark.parametrize("slot", [True, False])
def test_a_canary_that_failed_opens_it_for_twice_as_long(slot: bool) -> None:
    """Also when it was called well before, and the next one has not gone."""
    bench = Bench(cooldown_cap=100)
    bench.half_open(successes=2)
    bench.send("x" if slot else "r")
    if not slot:
        bench.set(canary_until=None)
    assert bench.look() == [("half_open", "open", "the canary failed after a rest of 30 s")]
    row = bench.breaker
    assert (row.epoch, row.rest, row.successes, row.canary_until) == (2, 60, 0, None)
    assert row.retry_at == row.since + timedelta(seconds=60)
    bench.half_open(rest=60)
    bench.send("x")
    bench.look()
    assert bench.breaker.rest == 100


def test_it_fails_since_its_first_failure_until_a_canary_goes_well() -> None:
    bench = Bench()
    bench.send("xxxxx")
    bench.look()
    since = bench.breaker.failing_since
    assert since == bench.breaker.since
    for fate, failing in (("x", since), ("-", since), ("v", None)):
        bench.half_open()
        bench.send(fate)
        bench.look()
        assert bench.breaker.failing_since == failing


@pytest.mark.parametrize(("to", "fails"), [("open", True), ("half_open", True), ("closed", False)])
def test_a_person_who_opens_it_does_not_say_that_it_is_well(to: breaker_resets.State, fails: bool) -> None:
    bench = Bench()
    bench.set(state="open", retry_at=now(), failing_since=NOW)
    breaker_resets.reset_one(breaker_status.bearings([bench.target.pk])[0], to=to, by="ann", reason="a test")
    assert bench.breaker.failing_since == (NOW if fails else None)


def test_what_failed_in_its_present_epoch_opens_it_and_what_failed_before_does_not() -> None:
    bench = Bench(epoch=3, rest=30.0, cooldown=20.0)
    assert circuit_breakers.open_after({(bench.breaker.pk, 2)}, why="a wave failed") == []
    (moved,) = circuit_breakers.open_after({(bench.breaker.pk, 3)}, why="a wave failed")
    assert (moved.before, moved.after, moved.why) == ("closed", "open", "a wave failed")
    assert (bench.stands(), bench.breaker.rest) == (("open", 4), 60)
    assert circuit_breakers.open_after({(bench.breaker.pk, 4)}, why="a wave failed") == []


def test_enough_canaries_close_it_and_the_ramp_begins_anew() -> None:
    bench = Bench(closes_after=2, ramp=1, ramp_ill=0.5)
    bench.half_open()
    bench.send("v")
    assert bench.look() == []
    row = bench.breaker
    assert (row.state, row.epoch, row.successes, row.canary_until) == ("half_open", 1, 1, None)
    bench.half_open()
    bench.send("v")
    assert bench.look() == [("half_open", "closed", "2 canaries succeeded")]
    row = bench.breaker
    assert (row.epoch, row.successes, row.canary_until, row.ramp, row.ramp_ill) == (3, 0, None, 0.1, 0)
    assert row.ramp_why == "from its start: the breaker has closed"


def test_a_canary_that_went_well_is_counted_once() -> None:
    bench = Bench()
    bench.half_open()
    bench.send("v")
    for _ in range(4):
        bench.look()
    assert (bench.stands(), bench.breaker.successes) == (("half_open", 1), 1)


def test_only_the_canary_of_this_very_epoch_decides() -> None:
    bench = Bench()
    bench.half_open()
    before = bench.send("o")
    bench.half_open()
    bench.send("o")
    close(before, "x")
    assert (bench.look(), bench.stands()) == ([], ("half_open", 2))
    bench.send("x", breaker_epoch=0)  # committed before it opened, numbered after
    assert (bench.look(), bench.stands()) == ([], ("half_open", 2))
    close(Attempt.objects.filter(breaker_epoch=2), "x")
    assert bench.look() == [("half_open", "open", "the canary failed after a rest of 30 s")]


def test_a_canary_from_which_nothing_follows_frees_its_slot() -> None:
    bench = Bench()
    bench.half_open(successes=1)
    bench.send("-")
    assert bench.look() == []
    row = bench.breaker
    assert (row.state, row.epoch, row.successes, row.canary_until) == ("half_open", 1, 1, None)


def test_a_canary_that_was_taken_keeps_its_slot_until_an_hour_after_its_deadline() -> None:
    bench = Bench()
    bench.half_open()
    deadline = now() + timedelta(minutes=2)
    bench.send("o", taken_at=now(), deadline=deadline)
    for _ in range(2):
        assert bench.look() == []
        assert bench.breaker.canary_until == deadline + timedelta(hours=1)


def test_all_breakers_together_take_three_statements() -> None:
    benches = [Bench() for _ in range(4)]
    for bench in benches[:3]:
        bench.send("xxxxx")
    ids = [bench.breaker.pk for bench in benches]
    with CaptureQueriesContext(connection) as queries:
        assert len(circuit_breakers.look(ids)) == 3
    assert len(queries) <= 3
    with CaptureQueriesContext(connection) as queries:
        assert circuit_breakers.look([]) == []
    assert len(queries) == 0


def test_openings_are_warned_of_and_closings_are_told(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(closes_after=1)
    bench.send("xxxxx")
    with caplog.at_level(logging.INFO):
        bench.look()
        bench.half_open()
        bench.send("v")
        bench.look()
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("WARNING", f"The breaker of {bench.target} opened: 5 messages in a row failed. Nothing goes there for 30 s."),
        ("INFO", f"The breaker of {bench.target} closed: the canary succeeded. Its rate ramps up."),
    ]


def test_a_sweep_looks_where_nobody_has_looked() -> None:
    failing, decided, well = Bench(), Bench(closes_after=1), Bench()
    failing.send("xxxxx")
    decided.half_open()
    decided.send("v")
    well.send("vvv")
    assert {(one.before, one.after) for one in circuit_breakers.sweep()} == {
        ("closed", "open"),
        ("half_open", "closed"),
    }
    assert [one.breaker.state for one in (failing, decided, well)] == ["open", "closed", "closed"]


# The ramp


def climbed(bench: Bench) -> tuple[float, str]:
    rate_ramps.climb([bench.breaker.pk])
    return bench.breaker.ramp, bench.breaker.ramp_why


@pytest.mark.django_db(transaction=True)
def test_a_ramp_takes_a_step_when_it_is_due_and_something_was_settled(clock: Clock) -> None:
    bench = Bench(ramp_at=now())
    bench.send("vvv")
    assert climbed(bench) == (0.1, "")  # not due
    clock.advance(11)
    assert climbed(bench) == (0.2, "the rate rises: 0 of 3 messages failed")
    assert climbed(bench) == (0.2, "the rate rises: 0 of 3 messages failed")  # not due
    clock.advance(11)
    bench.send("oo")
    assert climbed(bench) == (0.2, "the rate rises: 0 of 3 messages failed")  # nothing new
    bench.send("vxx")
    assert climbed(bench) == (0.1, "the rate falls: 2 of 8 messages failed, 0% before")
    assert bench.breaker.ramp_ill == 2 / 8


@pytest.mark.django_db(transaction=True)
def test_a_retry_that_fails_settles_nothing_for_a_ramp(clock: Clock) -> None:
    bench = Bench(ramp_at=now())
    clock.advance(11)
    bench.send("v")
    letters = bench.more_letters(1)
    for settled in (1, 0):
        bench.send("x", letters=letters)
        assert rate_ramps.climb([bench.breaker.pk]) == settled
        clock.advance(11)
    assert bench.breaker.ramp_why == "as before: 1 of 2 messages failed"


@pytest.mark.django_db(transaction=True)
def test_a_ramp_at_the_whole_rate_notes_that_something_was_settled(clock: Clock) -> None:
    bench = Bench(ramp=1, ramp_at=now())
    for _ in range(40):
        clock.advance(11)
        bench.send("v")
        assert climbed(bench)[0] == 1
    assert rate_ramps.after_rest() == 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("how", ["climb", "after_rest", "sweep"])
def test_after_five_minutes_without_anything_settled_it_begins_anew(clock: Clock, how: str) -> None:
    bench = Bench(ramp=0.8, ramp_ill=0.3, ramp_at=now())
    clock.advance(270)
    assert rate_ramps.after_rest([bench.breaker.pk]) == 0
    clock.advance(31)
    bench.send("v")
    if how == "climb":
        assert rate_ramps.climb([bench.breaker.pk]) == 1
    elif how == "sweep":
        circuit_breakers.sweep()
    else:
        assert rate_ramps.after_rest([bench.breaker.pk]) == 1
    row = bench.breaker
    assert (row.ramp, row.ramp_ill) == (0.1, 0)
    assert row.ramp_why == "from its start: nothing had been settled for 5 minutes before"


@pytest.mark.parametrize(
    "fields", [{"state": "open", "retry_at": NOW}, {"state": "half_open"}, {"ramp_from": 1, "ramp": 1}]
)
def test_where_no_ramp_is_asked_for_none_is_climbed(fields: dict[str, object]) -> None:
    bench = Bench(ramp_at=NOW, **fields)
    bench.send("vvv")
    with CaptureQueriesContext(connection) as queries:
        assert rate_ramps.climb([bench.breaker.pk]) == 0
    assert len(queries) == 1
    assert rate_ramps.after_rest() == 0


@pytest.mark.parametrize(("start", "said"), [(0.5, "from its start: an old word"), (1, "")])
def test_why_the_ramp_stands_where_it_does_is_said_only_while_there_is_one(start: float, said: str) -> None:
    bench = Bench(ramp_from=start, ramp=1, ramp_why="from its start: an old word")
    (found,) = breaker_status.bearings([bench.breaker.target_id])
    assert found.ramp_why == said


# Two at the same time


@pytest.mark.django_db(transaction=True)
def test_of_two_who_look_one_opens_it(clock: Clock) -> None:
    benches = [Bench() for _ in range(5)]
    for bench in benches:
        bench.send("xxxxx")
    ids = [bench.breaker.pk for bench in benches]
    one, other = together([lambda: circuit_breakers.look(ids), lambda: circuit_breakers.look(ids[::-1])])
    assert sorted(moved.breaker_id for moved in one + other) == ids
    assert {bench.stands() for bench in benches} == {("open", 1)}


@pytest.mark.django_db(transaction=True)
def test_of_two_who_look_at_a_canary_one_counts_it(clock: Clock) -> None:
    bench = Bench()
    bench.half_open()
    bench.send("v")
    assert together([bench.look] * 2) == [[], []]
    assert (bench.stands(), bench.breaker.successes, bench.breaker.canary_until) == (("half_open", 1), 1, None)


@pytest.mark.django_db(transaction=True)
def test_of_two_who_climb_one_takes_the_step(clock: Clock) -> None:
    bench = Bench(ramp_at=NOW)
    bench.send("v")
    ids = [bench.breaker.pk]
    assert sum(together([lambda: rate_ramps.climb(ids)] * 2)) == 1
    assert bench.breaker.ramp == 0.2


Meanwhile = Callable[[Callable[[], object]], None]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Between reading and moving of the next look, this happens."""
    move = circuit_breakers._move

    def plan(happens: Callable[[], object]) -> None:
        def late(wanted: Any) -> set[int]:  # noqa: ANN401  those of _move
            monkeypatch.setattr(circuit_breakers, "_move", move)
            happens()
            return move(wanted)

        monkeypatch.setattr(circuit_breakers, "_move", late)

    return plan


def test_a_canary_counts_also_when_its_slot_was_kept_for_longer_meanwhile(meanwhile: Meanwhile) -> None:
    bench = Bench(closes_after=1)
    bench.half_open()
    bench.send("v")
    meanwhile(lambda: bench.set(canary_until=now() + timedelta(hours=1)))
    assert bench.look() == [("half_open", "closed", "the canary succeeded")]


@pytest.mark.parametrize("fate", ["v", "x", "-"])
def test_a_canary_whose_place_was_taken_meanwhile_decides_nothing(meanwhile: Meanwhile, fate: str) -> None:
    bench = Bench()
    bench.half_open()
    bench.send(fate)
    meanwhile(bench.half_open)
    assert bench.look() == []
    assert (bench.stands(), bench.breaker.successes, bench.breaker.canary_until is None) == (("half_open", 2), 0, False)


def test_the_slot_of_a_canary_that_was_counted_meanwhile_is_not_kept_nor_is_it_counted_again(
    meanwhile: Meanwhile,
) -> None:
    bench = Bench()
    bench.half_open()
    canary = bench.send("o", taken_at=now(), deadline=now() + timedelta(minutes=2))

    def counted() -> None:
        close(canary, "v")
        bench.look()

    meanwhile(counted)
    for _ in range(2):
        assert (bench.look(), bench.stands()) == ([], ("half_open", 1))
        assert (bench.breaker.successes, bench.breaker.canary_until) == (1, None)


def _reset_by_ann(bench: Bench, to: breaker_resets.State) -> None:
    (seen,) = breaker_status.bearings([bench.target.pk])
    breaker_resets.reset_one(seen, to=to, by="ann", reason="the shop is down", seconds=600)


@pytest.mark.parametrize("to", ["open", "half_open", "closed"])
def test_the_late_failure_of_a_canary_moves_no_breaker_that_a_person_has_reset(to: breaker_resets.State) -> None:
    bench = Bench(threshold=1)
    bench.half_open()
    canary = bench.send("o")
    _reset_by_ann(bench, to)
    row = Breaker.objects.values().get()
    close(canary, "x")
    assert (bench.look(), Breaker.objects.values().get()) == ([], row)


@pytest.mark.parametrize("to", ["open", "half_open", "closed"])
def test_a_canary_that_failed_opens_nothing_that_a_person_resets_meanwhile(
    meanwhile: Meanwhile, to: breaker_resets.State
) -> None:
    bench = Bench()
    bench.half_open()
    bench.send("x")
    meanwhile(lambda: _reset_by_ann(bench, to))
    assert (bench.look(), bench.stands(), bench.breaker.canary_until) == ([], (to, 2), None)
    assert bench.breaker.why.endswith('by ann: "the shop is down"')


def test_what_was_reset_meanwhile_is_not_opened(meanwhile: Meanwhile) -> None:
    bench = Bench()
    bench.send("xxxxx")
    meanwhile(lambda: breaker_resets.reset([bench.target.pk], to="closed", by="ann", reason="mended"))
    assert (bench.look(), bench.stands()) == ([], ("closed", 1))
