from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from reprocessing.models import Attempt, Breaker, Letter, RateClass
from reprocessing.store.ordering.lanes import database_now as now
from reprocessing.store.safety import breaker_resets, breaker_status, circuit_breakers, rate_ramps
from reprocessing.store.safety.circuit_breakers import MovedBreaker
from tests.race.abreast import together
from tests.reprocessing.pipeline.bench import Clock
from tests.reprocessing.store.stock import NOW, Stock

pytestmark = pytest.mark.django_db

#: Outcomes of attempts: failed, succeeded, open, neither, returned after a success.
FATES: dict[str, dict[str, Any]] = {
    "x": {"counts_as_failure": True, "outcome": "refused"},
    "v": {"counts_as_failure": False, "outcome": "accepted"},
    "o": {},
    "-": {"outcome": "unknown"},
    "r": {"counts_as_failure": False, "outcome": "accepted", "returned_at": NOW},
}
ROW3, ROW5 = "3 messages in a row failed", "5 messages in a row failed"
FIVE = [("closed", "open", ROW5)]


class Bench(Stock):
    """A target, its breaker, and attempts that count there."""

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
        self, fates: str, breaker: Breaker | None = None, *, letters: Sequence[Letter] = (), **fields: object
    ) -> list[Attempt]:
        """Create attempts in the breaker's present epoch, of these letters, or each of a new one."""
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
        return [(moved.before, moved.after, moved.why) for moved in circuit_breakers.move_breakers([self.breaker.pk])]

    def half_open(self, **fields: object) -> None:
        """As the intent leaves it when it lets a canary go."""
        values = {"state": "half_open", "epoch": self.breaker.epoch + 1, "retry_at": None, "current_cooldown": 30.0}
        self.set(**{**values, "canary_until": now() + timedelta(seconds=8), **fields})

    def state(self) -> tuple[str, int]:
        return self.breaker.state, self.breaker.epoch

    def canary(self) -> tuple[str, int, int, object]:
        row = self.breaker
        return row.state, row.epoch, row.successes, row.canary_until


def close(attempts: Iterable[Attempt], fate: str) -> None:
    Attempt.objects.filter(pk__in=[attempt.pk for attempt in attempts]).update(**FATES[fate], closed_at=now())


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.mark.parametrize(
    ("policy", "story", "why"),
    [
        pytest.param({"threshold": 3}, ["vvxvxx", "x"], ROW3, id="a row"),
        pytest.param({}, ["rrrrr"], ROW5, id="returns count whatever their outcome was before"),
        pytest.param({}, ["xxoxxx"], None, id="an open attempt breaks a row"),
        pytest.param({}, ["xx", "ab:xx", "ab:v", "xxx"], None, id="a success of a letter that failed breaks a row"),
        pytest.param({}, ["xx-xxx"], ROW5, id="an attempt that says nothing breaks no row"),
        pytest.param({}, ["xx---xxx"], ROW5, id="several that say nothing break no row"),
        pytest.param({}, ["vx" * 9 + "v" + "o" * 50], None, id="a share of too few"),
        pytest.param({}, ["vx" * 10 + "o" * 50], "10 of 20 messages failed (50%)", id="a share"),
        pytest.param({}, ["abcde:-----", "abcde:vvvvv", "abcde:ooooo", "abcde:xxxxx"], ROW5, id="said at last"),
        pytest.param({"threshold": 3}, ["ab:xx", *["ab:xr"] * 60, "x"], ROW3, id="retries are not in a row"),
        pytest.param(
            {"at_least": 4}, ["a:x vxxvvx" + "v" * 100 + " a:x"], "4 of 7 messages failed (57%)",
            id="a retry that fails does not extend the window",
        ),
    ],
)  # fmt: skip
def test_failures_in_a_row_or_a_share_of_failures_open_a_breaker(
    policy: dict[str, object], story: Sequence[str], why: str | None
) -> None:
    """Attempts of new letters, or of named ones; only the last step may open the breaker."""
    bench = Bench(**policy)
    named = dict(zip("abcde", bench.more_letters(5), strict=True))
    for step in story:
        assert bench.look() == []
        for names, _, fates in (sent.rpartition(":") for sent in step.split()):
            bench.send(fates, letters=[named[name] for name in names])
    assert bench.look() == ([("closed", "open", why)] if why else [])


def test_an_opened_breaker_rests_for_its_cooldown_and_looking_again_changes_nothing() -> None:
    bench = Bench(cooldown=7)
    bench.send("xxxxx")
    before = now()
    assert bench.look() == FIVE
    row = bench.breaker
    assert (*bench.canary(), row.current_cooldown, row.why) == ("open", 1, 0, None, 7, "5 messages in a row failed")
    assert row.retry_at is not None
    assert before <= row.since == row.retry_at - timedelta(seconds=7) <= now()
    values = Breaker.objects.values().get()
    assert (bench.look(), Breaker.objects.values().get()) == ([], values)


def test_a_letter_that_fails_again_counts_only_in_the_next_epoch() -> None:
    bench = Bench(at_least=6, ratio=0.5)
    letters = bench.more_letters(4)
    for fates in ("xrxr", "rxrx", "xxxx"):
        bench.send(fates, letters=letters)
        assert bench.look() == []
    bench.set(epoch=1)
    bench.send("xxxx", letters=letters)
    assert bench.look() == []
    bench.send("x")
    assert bench.look() == FIVE


def test_a_failure_at_another_breaker_does_not_count_here() -> None:
    bench, other = Bench(), Bench()
    letters = bench.more_letters(5)
    bench.send("xxxxx", other.breaker, letters=letters)
    assert bench.look() == []
    bench.send("xxxxx", letters=letters)
    assert bench.look() == FIVE


def test_attempts_count_in_the_order_of_sending(bench: Bench) -> None:
    late = bench.send("xxoxx")[2:3]
    bench.send("v" * 40)
    assert bench.look() == []
    close(late, "x")
    assert bench.look() == FIVE


def test_attempts_of_another_epoch_or_another_breaker_do_not_count() -> None:
    bench, other = Bench(), Bench()
    bench.send("xxx")
    bench.set(epoch=1)
    bench.send("xx")
    other.send("xx", bench.breaker, breaker_epoch=0)
    other.send("xxx")
    assert circuit_breakers.move_breakers([bench.breaker.pk, other.breaker.pk]) == []


def test_a_rate_class_has_its_own_breaker(bench: Bench) -> None:
    own = Breaker.objects.create(target=bench.target, rate_class=RateClass.objects.create(name="vip"))
    bench.send("xxxxx", own)
    moved = MovedBreaker(own.pk, f"{bench.target}, vip", "closed", "open", "5 messages in a row failed")
    assert circuit_breakers.move_breakers([own.pk, bench.breaker.pk]) == [moved]
    assert bench.state() == ("closed", 0)


def test_an_open_breaker_is_left_alone() -> None:
    bench = Bench(state="open", retry_at=NOW, epoch=3)
    bench.send("vvvvv")
    assert (bench.look(), bench.state()) == ([], ("open", 3))


def test_an_open_canary_decides_nothing(bench: Bench) -> None:
    bench.half_open()
    bench.send("o")
    row = Breaker.objects.values().get()
    assert (bench.look(), Breaker.objects.values().get()) == ([], row)


def test_a_canary_decides_also_when_its_letter_failed_before() -> None:
    bench = Bench(cooldown_cap=100)
    letters = bench.more_letters(1)
    for current_cooldown in (30, 60):
        bench.half_open(current_cooldown=current_cooldown)
        bench.send("x", letters=letters)
        assert bench.look() == [("half_open", "open", f"the canary failed after a cooldown of {current_cooldown} s")]


@pytest.mark.parametrize("counted_before", [False, True])
def test_a_failed_canary_opens_the_breaker_for_twice_as_long_up_to_its_cap(counted_before: bool) -> None:
    bench = Bench(cooldown_cap=100)
    bench.half_open(successes=2)
    bench.send("r" if counted_before else "x")
    if counted_before:
        bench.set(canary_until=None)
    assert bench.look() == [("half_open", "open", "the canary failed after a cooldown of 30 s")]
    row = bench.breaker
    assert (*bench.canary(), row.current_cooldown) == ("open", 2, 0, None, 60)
    assert row.retry_at == row.since + timedelta(seconds=60)
    bench.half_open(current_cooldown=60)
    bench.send("x")
    bench.look()
    assert bench.breaker.current_cooldown == 100


def test_failing_since_lasts_from_the_first_opening_to_a_successful_canary(bench: Bench) -> None:
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
def test_only_closing_a_breaker_by_hand_ends_failing_since(to: breaker_resets.State, fails: bool) -> None:
    bench = Bench(state="open", retry_at=now(), failing_since=NOW)
    breaker_resets.reset_one(breaker_status.breaker_statuses([bench.target.pk])[0], to=to, by="ann", reason="a test")
    assert bench.breaker.failing_since == (NOW if fails else None)


def test_a_failed_wave_opens_a_breaker_only_in_the_epoch_of_its_failures() -> None:
    bench = Bench(epoch=3, current_cooldown=30.0, cooldown=20.0)
    assert circuit_breakers.open_after({(bench.breaker.pk, 2)}, why="a wave failed") == []
    (moved,) = circuit_breakers.open_after({(bench.breaker.pk, 3)}, why="a wave failed")
    assert (moved.before, moved.after, moved.why) == ("closed", "open", "a wave failed")
    assert (bench.state(), bench.breaker.current_cooldown) == (("open", 4), 60)
    assert circuit_breakers.open_after({(bench.breaker.pk, 4)}, why="a wave failed") == []


def test_enough_successful_canaries_close_the_breaker_and_the_ramp_restarts() -> None:
    bench = Bench(canaries_to_close=2, ramp=1, ramp_failure_ratio=0.5)
    bench.half_open()
    bench.send("v")
    assert (bench.look(), bench.canary()) == ([], ("half_open", 1, 1, None))
    bench.half_open()
    bench.send("v")
    assert bench.look() == [("half_open", "closed", "2 canaries succeeded")]
    row = bench.breaker
    assert (*bench.canary(), row.ramp, row.ramp_failure_ratio) == ("closed", 3, 0, None, 0.1, 0)
    assert row.ramp_reason == "from its start: the breaker has closed"


@pytest.mark.parametrize(("fate", "successes"), [("v", 2), ("-", 1)])
def test_a_canary_is_counted_once_and_frees_its_slot(fate: str, successes: int, bench: Bench) -> None:
    bench.half_open(successes=1)
    bench.send(fate)
    for _ in range(4):
        assert (bench.look(), bench.canary()) == ([], ("half_open", 1, successes, None))


def test_only_the_canary_of_this_epoch_decides(bench: Bench) -> None:
    bench.half_open()
    before = bench.send("o")
    bench.half_open()
    bench.send("o")
    close(before, "x")
    assert (bench.look(), bench.state()) == ([], ("half_open", 2))
    bench.send("x", breaker_epoch=0)  # committed before it opened, numbered after
    assert (bench.look(), bench.state()) == ([], ("half_open", 2))
    close(Attempt.objects.filter(breaker_epoch=2), "x")
    assert bench.look() == [("half_open", "open", "the canary failed after a cooldown of 30 s")]


def test_a_canary_that_was_taken_keeps_its_slot_until_an_hour_after_its_deadline(bench: Bench) -> None:
    bench.half_open()
    deadline = now() + timedelta(minutes=2)
    bench.send("o", taken_at=now(), deadline=deadline)
    for _ in range(2):
        assert bench.look() == []
        assert bench.breaker.canary_until == deadline + timedelta(hours=1)


def test_any_number_of_breakers_takes_three_statements() -> None:
    benches = [Bench() for _ in range(4)]
    for bench in benches[:3]:
        bench.send("xxxxx")
    ids = [bench.breaker.pk for bench in benches]
    with CaptureQueriesContext(connection) as queries:
        assert len(circuit_breakers.move_breakers(ids)) == 3
    assert len(queries) <= 3
    with CaptureQueriesContext(connection) as queries:
        assert circuit_breakers.move_breakers([]) == []
    assert len(queries) == 0


def test_openings_and_closings_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(canaries_to_close=1)
    bench.send("xxxxx")
    with caplog.at_level(logging.INFO):
        bench.look()
        bench.half_open()
        bench.send("v")
        bench.look()
    name = f"The circuit breaker of {bench.target}"
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", f"{name} opened: 5 messages in a row failed. Nothing is sent there for 30 s."),
        ("INFO", f"{name} closed: the canary succeeded. Its rate ramps up."),
    ]


def test_a_sweep_moves_breakers_whose_worker_died() -> None:
    failing, decided, well = Bench(), Bench(canaries_to_close=1), Bench()
    failing.send("xxxxx")
    decided.half_open()
    decided.send("v")
    well.send("vvv")
    moved = {(breaker.before, breaker.after) for breaker in circuit_breakers.move_all_breakers()}
    assert moved == {("closed", "open"), ("half_open", "closed")}
    assert [bench.breaker.state for bench in (failing, decided, well)] == ["open", "closed", "closed"]


# The ramp


def climbed(bench: Bench) -> tuple[float, str]:
    rate_ramps.step_due_ramps([bench.breaker.pk])
    return bench.breaker.ramp, bench.breaker.ramp_reason


@pytest.mark.django_db(transaction=True)
def test_a_ramp_steps_when_it_is_due_and_something_was_settled(clock: Clock) -> None:
    bench = Bench(ramp_at=now())
    bench.send("vvv")
    assert climbed(bench) == (0.1, "")  # not due
    clock.advance(11)
    rises = (0.2, "the rate rises: 0 of 3 messages failed")
    assert [climbed(bench), climbed(bench)] == [rises, rises]  # then not due
    clock.advance(11)
    bench.send("oo")
    assert climbed(bench) == rises  # nothing new
    bench.send("vxx")
    assert climbed(bench) == (0.1, "slower now: 2 of 8 messages failed; 0 % failed before")
    assert bench.breaker.ramp_failure_ratio == 2 / 8


@pytest.mark.django_db(transaction=True)
def test_a_failed_retry_does_not_count_as_settled_for_a_ramp(clock: Clock) -> None:
    bench = Bench(ramp_at=now())
    clock.advance(11)
    bench.send("v")
    letters = bench.more_letters(1)
    for settled in (1, 0):
        bench.send("x", letters=letters)
        assert rate_ramps.step_due_ramps([bench.breaker.pk]) == settled
        clock.advance(11)
    assert bench.breaker.ramp_reason == "the rate stays: 1 of 2 messages failed"


@pytest.mark.soak
@pytest.mark.django_db(transaction=True)
def test_a_ramp_at_the_whole_rate_is_not_idle_while_messages_are_settled(clock: Clock) -> None:
    bench = Bench(ramp=1, ramp_at=now())
    for _ in range(40):
        clock.advance(11)
        bench.send("v")
        assert climbed(bench)[0] == 1
    assert rate_ramps.reset_idle_ramps() == 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "restart", [rate_ramps.step_due_ramps, rate_ramps.reset_idle_ramps, lambda _: circuit_breakers.move_all_breakers()]
)
def test_a_ramp_restarts_after_five_idle_minutes(clock: Clock, restart: Callable[[list[int]], object]) -> None:
    bench = Bench(ramp=0.8, ramp_failure_ratio=0.3, ramp_at=now())
    clock.advance(270)
    assert rate_ramps.reset_idle_ramps([bench.breaker.pk]) == 0
    clock.advance(31)
    bench.send("v")
    restart([bench.breaker.pk])
    row = bench.breaker
    assert (row.ramp, row.ramp_failure_ratio) == (0.1, 0)
    assert row.ramp_reason == "from its start: nothing had been settled for 5 minutes before"


@pytest.mark.parametrize(
    "fields", [{"state": "open", "retry_at": NOW}, {"state": "half_open"}, {"ramp_from": 1, "ramp": 1}]
)
def test_a_breaker_that_is_not_closed_or_has_no_ramp_takes_no_step(fields: dict[str, object]) -> None:
    bench = Bench(ramp_at=NOW, **fields)
    bench.send("vvv")
    with CaptureQueriesContext(connection) as queries:
        assert rate_ramps.step_due_ramps([bench.breaker.pk]) == 0
    assert len(queries) == 1
    assert rate_ramps.reset_idle_ramps() == 0


@pytest.mark.parametrize(("start", "said"), [(0.5, "from its start: an old word"), (1, "")])
def test_the_reason_for_a_ramp_is_shown_only_while_there_is_a_ramp(start: float, said: str) -> None:
    bench = Bench(ramp_from=start, ramp=1, ramp_reason="from its start: an old word")
    (found,) = breaker_status.breaker_statuses([bench.breaker.target_id])
    assert found.ramp_reason == said


# Two at the same time


@pytest.mark.soak
@pytest.mark.django_db(transaction=True)
def test_of_two_simultaneous_looks_one_opens_a_breaker(clock: Clock) -> None:
    benches = [Bench() for _ in range(5)]
    for bench in benches:
        bench.send("xxxxx")
    ids = [bench.breaker.pk for bench in benches]
    first, second = together(
        [lambda: circuit_breakers.move_breakers(ids), lambda: circuit_breakers.move_breakers(ids[::-1])]
    )
    assert sorted(moved.breaker_id for moved in first + second) == ids
    assert {bench.state() for bench in benches} == {("open", 1)}


@pytest.mark.django_db(transaction=True)
def test_of_two_simultaneous_looks_one_counts_a_canary(clock: Clock, bench: Bench) -> None:
    bench.half_open()
    bench.send("v")
    assert together([bench.look] * 2) == [[], []]
    assert bench.canary() == ("half_open", 1, 1, None)


@pytest.mark.django_db(transaction=True)
def test_of_two_simultaneous_climbs_one_takes_the_step(clock: Clock) -> None:
    bench = Bench(ramp_at=NOW)
    bench.send("v")
    assert sum(together([lambda: rate_ramps.step_due_ramps([bench.breaker.pk])] * 2)) == 1
    assert bench.breaker.ramp == 0.2


Meanwhile = Callable[[Callable[[], object]], None]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Call a function between the next look's read and its move."""
    move = circuit_breakers._move

    def plan(happens: Callable[[], object]) -> None:
        def late(wanted: Any) -> set[int]:  # noqa: ANN401  those of _move
            monkeypatch.setattr(circuit_breakers, "_move", move)
            happens()
            return move(wanted)

        monkeypatch.setattr(circuit_breakers, "_move", late)

    return plan


def test_a_canary_counts_although_its_slot_was_extended_meanwhile(meanwhile: Meanwhile) -> None:
    bench = Bench(canaries_to_close=1)
    bench.half_open()
    bench.send("v")
    meanwhile(lambda: bench.set(canary_until=now() + timedelta(hours=1)))
    assert bench.look() == [("half_open", "closed", "the canary succeeded")]


@pytest.mark.parametrize("fate", ["v", "x", "-"])
def test_a_canary_that_another_one_replaced_meanwhile_decides_nothing(
    meanwhile: Meanwhile, fate: str, bench: Bench
) -> None:
    bench.half_open()
    bench.send(fate)
    meanwhile(bench.half_open)
    assert bench.look() == []
    assert (bench.state(), bench.breaker.successes, bench.breaker.canary_until is None) == (("half_open", 2), 0, False)


def test_a_canary_that_was_counted_meanwhile_is_not_counted_again(meanwhile: Meanwhile, bench: Bench) -> None:
    bench.half_open()
    canary = bench.send("o", taken_at=now(), deadline=now() + timedelta(minutes=2))

    def counted() -> None:
        close(canary, "v")
        bench.look()

    meanwhile(counted)
    for _ in range(2):
        assert (bench.look(), bench.canary()) == ([], ("half_open", 1, 1, None))


def _reset_by_ann(bench: Bench, to: breaker_resets.State) -> None:
    (seen,) = breaker_status.breaker_statuses([bench.target.pk])
    breaker_resets.reset_one(seen, to=to, by="ann", reason="the shop is down", seconds=600)


@pytest.mark.parametrize("to", ["open", "half_open", "closed"])
def test_the_late_failure_of_a_canary_moves_no_breaker_that_was_reset_by_hand(to: breaker_resets.State) -> None:
    bench = Bench(threshold=1)
    bench.half_open()
    canary = bench.send("o")
    _reset_by_ann(bench, to)
    row = Breaker.objects.values().get()
    close(canary, "x")
    assert (bench.look(), Breaker.objects.values().get()) == ([], row)


@pytest.mark.parametrize("to", ["open", "half_open", "closed"])
def test_a_failed_canary_moves_no_breaker_that_is_reset_meanwhile(
    meanwhile: Meanwhile, to: breaker_resets.State, bench: Bench
) -> None:
    bench.half_open()
    bench.send("x")
    meanwhile(lambda: _reset_by_ann(bench, to))
    assert (bench.look(), bench.state(), bench.breaker.canary_until) == ([], (to, 2), None)
    assert bench.breaker.why.endswith('by ann: "the shop is down"')


def test_a_breaker_that_is_reset_meanwhile_is_not_opened(meanwhile: Meanwhile, bench: Bench) -> None:
    bench.send("xxxxx")
    meanwhile(lambda: breaker_resets.reset([bench.target.pk], to="closed", by="ann", reason="mended"))
    assert (bench.look(), bench.state()) == ([], ("closed", 1))
