"""Rules decide about heads, and errors of rules are shown."""

from __future__ import annotations

import json
import logging
from datetime import datetime, timedelta

import pytest

from reprocessing.domain.message.identity import key_hash
from reprocessing.domain.routing.message_fields import BODY_LIMIT
from reprocessing.models import Breaker, Claim, HealthCheck, Lane, Letter, RateClass, Rule, Target
from reprocessing.pipeline.maintenance import recover
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.pipeline.routing import route
from reprocessing.pipeline.routing.route import RuleBook
from reprocessing.store.ordering import lanes
from reprocessing.store.ordering.lanes import HandedBack
from reprocessing.store.routing import routable_letters, routing_decisions, rule_changes
from reprocessing.store.routing import rules as rules_of
from tests.race.abreast import elsewhere
from tests.reprocessing.pipeline.bench import Clock, Workbench
from tests.reprocessing.pipeline.interposed import happens_before
from tests.reprocessing.pipeline.rulings import BY_KEY, LEASE, ask, ask_all, change_the_rules, disable, leased, rule
from tests.reprocessing.post import statements

pytestmark = pytest.mark.django_db(transaction=True)

MINUTE = 60.0


def _target(name: str, **fields: object) -> Target:
    arn = f"arn:aws:sqs:eu-west-1:0:{name}"
    return Target.objects.create(arn=arn, url=f"http://127.0.0.1:9/0/{name}", region="eu-west-1", **fields)


def _routes(bench: Workbench) -> dict[str, tuple[str, str | None]]:
    found = Letter.objects.filter(dlq=bench.dlq).values_list("payload__body", "route", "rule__name")
    return {bytes(body).decode(): (route, name) for body, route, name in found}


def test_the_first_matching_rule_decides() -> None:
    bench = Workbench(fields={"tenant": "attribute:tenant"})
    rule("second", "hold", "body:kind exists", position=2)
    rule("first", "quarantine", "body:kind equals bad", position=1)
    turned = ask_all(bench, '{"kind": "bad"}', '{"kind": "good"}', '{"other": 1}')
    assert bench.states() == {'{"kind": "bad"}': "parked", '{"kind": "good"}': "waiting", '{"other": 1}': "waiting"}
    assert _routes(bench) == {
        '{"kind": "bad"}': ("quarantine", "first"),
        '{"kind": "good"}': ("hold", "second"),
        '{"other": 1}': ("", None),
    }
    parked = bench.letter(state="parked")
    assert (parked.reason, parked.detail) == ("quarantined", "first")
    assert [copy.message_id for copy in turned.deletable] == [parked.message_id]
    assert sorted(lane.phase for lane in turned.lane_states) == ["held", "idle", "leased"]


def test_a_rule_for_one_dlq_decides_nothing_in_another() -> None:
    one, other = Workbench(), Workbench()
    rule("bad", "quarantine", dlq=one.dlq)
    for bench in (one, other):
        bench.enqueue("x")
    ask(leased())
    assert [bench.states()["x"] for bench in (one, other)] == ["parked", "waiting"]


def test_a_discarded_letter_is_finished_and_names_its_rule() -> None:
    bench = Workbench()
    rule("noise", "discard", "body:kind equals noise")
    turned = ask_all(bench, '{"kind": "noise"}')
    letter = bench.letter()
    assert (letter.state, letter.detail, letter.reason) == ("discarded", "noise", "")
    assert [copy.message_id for copy in turned.deletable] == [letter.message_id]


def test_behind_a_quarantined_letter_the_next_one_is_asked() -> None:
    bench = Workbench(fields=BY_KEY)
    rule("bad", "quarantine", "attribute:tenant equals acme")
    bench.bury("first", key="k", tenant="acme")
    bench.capture()
    bench.bury("second", key="k", tenant="acme")
    bench.capture()
    bench.enqueue("third", key="k", tenant="other")
    first = ask(leased())
    second = ask(first.lane_states)
    third = ask(second.lane_states)
    assert bench.states() == {"first": "parked", "second": "parked", "third": "waiting"}
    assert [lane.phase for lane in third.lane_states] == ["leased"]


def test_disabling_a_rule_wakes_the_letters_that_it_held() -> None:
    bench = Workbench()
    held = rule("wait", "hold")
    ask_all(bench, "x", "y")
    assert list(Lane.objects.values_list("phase", "due_at", "why")) == [("held", None, "rule wait holds it")] * 2
    disable(held)
    assert route.wake_stopped(RuleBook.load()) == 2
    assert [(lane.phase, lane.why) for lane in Lane.objects.all()] == [("ready", "")] * 2
    assert bench.replay().taken == 2
    assert set(_routes(bench).values()) == {("", None)}


def test_letters_are_woken_once_a_version() -> None:
    bench = Workbench()
    held = rule("wait", "hold")
    ask_all(bench, "x")
    book = route.refresh_rules(lanes.database_now())
    Letter.objects.update(rulebook_version=0)
    assert route.refresh_rules(lanes.database_now(), book) is book
    assert bench.letter().rulebook_version == 0
    disable(held)
    assert route.refresh_rules(lanes.database_now(), book).version == 2
    assert (bench.letter().rulebook_version, bench.lane().phase) == (2, "ready")


def test_a_held_letter_stays_held_when_another_rule_changes() -> None:
    bench = Workbench()
    rule("wait", "hold")
    ask_all(bench, "x")
    change_the_rules()
    assert route.wake_stopped(RuleBook.load()) == 1
    assert (bench.lane().phase, bench.letter().rulebook_version) == ("held", rules_of.version())
    assert route.wake_stopped(RuleBook.load()) == 0
    assert Rule.objects.get(name="wait").match_count == 1


def test_a_delayed_letter_is_delayed_once(clock: Clock) -> None:
    bench = Workbench()
    rule("later", "delay", delay=MINUTE)
    ask_all(bench, "x")
    due = bench.letter().due_at
    lane = bench.lane()
    assert (lane.phase, lane.due_at, lane.why) == ("ready", due, "rule later delays it")
    change_the_rules()
    assert route.wake_stopped(RuleBook.load()) == 1
    assert bench.letter().due_at == due
    clock.advance(MINUTE)
    rule("other", "discard", "body:kind equals nowhere", position=1)
    assert [lane.phase for lane in ask(leased()).lane_states] == ["leased"]
    assert bench.letter().due_at == due


def test_a_delay_ends_when_its_rule_is_disabled(clock: Clock) -> None:
    bench = Workbench()
    later = rule("later", "delay", delay=MINUTE)
    ask_all(bench, "x")
    disable(later, wake=True)
    assert (bench.letter().due_at, bench.replay().taken) == (None, 1)


def _delayed_and_refused(clock: Clock) -> tuple[Workbench, Rule, datetime | None]:
    bench = Workbench(fields={"backoff_base": 60 * MINUTE, "backoff_jitter": "none"})
    later = rule("later", "delay", delay=MINUTE)
    ask_all(bench, "x")
    clock.advance(MINUTE + LEASE)
    with bench.refusing("x"):
        assert bench.replay().failed == 1
    return bench, later, bench.letter().due_at


def test_the_backoff_of_a_delayed_letter_does_not_depend_on_rules(clock: Clock) -> None:
    bench, later, due = _delayed_and_refused(clock)
    change_the_rules()
    route.wake_stopped(RuleBook.load())
    assert bench.letter().due_at == due
    disable(later, wake=True)
    assert (bench.letter().due_at, rules_of.rule_statuses()[0].stopped) == (due, 0)


def test_a_refused_letter_is_not_delayed_again(clock: Clock) -> None:
    bench, _, _ = _delayed_and_refused(clock)
    clock.advance(61 * MINUTE)
    change_the_rules()
    assert bench.replay().taken == 1


def test_a_letter_that_only_earlier_tools_tried_is_delayed(clock: Clock) -> None:
    bench = Workbench()
    rule("later", "replay")
    ask_all(bench, "x", redrive_attempt="2")
    clock.advance(LEASE + 1)
    rule("later", "delay", delay=MINUTE)
    ask(leased())
    assert (_routes(bench), bench.letter().due_at is None) == ({"x": ("delay", "later")}, False)


def test_a_shorter_delay_applies_to_waiting_letters() -> None:
    bench = Workbench()
    rule("later", "delay", delay=60 * MINUTE)
    ask_all(bench, "x")
    rule("later", "delay", delay=MINUTE)
    route.wake_stopped(RuleBook.load())
    due = bench.letter().due_at
    assert due is not None
    assert due <= lanes.database_now() + timedelta(seconds=MINUTE)


def test_a_letter_is_diverted_and_returns_to_its_own_target() -> None:
    bench = Workbench(fields={"idempotency_key": "attribute:idem"})
    other = _target("other")
    ways = rule("elsewhere", "divert", target=other)
    bench.enqueue("x", idem="k")
    letter = bench.letter()
    Claim.objects.create(
        target=bench.target, key_space=str(bench.dlq.pk), key_hash=key_hash("k"), letter=letter, state="held",
        body_hash=letter.body_hash, until=lanes.database_now(),
    )  # fmt: skip
    standings = ask(leased()).lane_states
    assert [head.target_id for head in standings] == [other.pk]
    assert list(Claim.objects.values_list("state", "until")) == [("free", None)]
    disable(ways)
    assert [head.target_id for head in ask(standings).lane_states] == [bench.target.pk]
    letter.refresh_from_db()
    assert (letter.target_id, letter.rule_id, letter.route) == (bench.target.pk, None, "")


def test_a_letter_of_a_deleted_divert_rule_goes_to_its_own_target() -> None:
    bench = Workbench()
    ways = rule("elsewhere", "divert", target=_target("other"))
    lanes.hand_back([HandedBack(lane.lane_id, lane.fence) for lane in ask_all(bench, "x").lane_states])
    rule_changes.remove(ways.pk, by="anna", reason="a mistake")
    route.wake_stopped(RuleBook.load())
    rule_changes.erase(ways.pk)
    assert (bench.replay().taken, bench.delivered_bodies()) == (1, ["x"])


def test_a_rate_class_has_its_own_breaker_with_the_target_s_policy() -> None:
    bench = Workbench()
    Breaker.objects.filter(target=bench.target).update(threshold=7, cooldown=11, ramp_from=0.25, state="open",
                                                       retry_at=lanes.database_now())  # fmt: skip
    slow = RateClass.objects.create(name="slow", rate=1)
    rule("slowly", "replay", rate_class=slow)
    bench.enqueue("x", "y")
    Lane.objects.update(breaker=None)
    ask(leased())
    made = Breaker.objects.get(rate_class=slow)
    assert (made.target_id, made.threshold, made.cooldown, made.ramp_from, made.ramp, made.state) == (
        bench.target.pk, 7, 11, 0.25, 0.25, "closed",
    )  # fmt: skip
    assert set(Letter.objects.values_list("rate_class__name", flat=True)) == {"slow"}


def test_a_rule_that_fails_holds_only_that_letter() -> None:
    bench = Workbench()
    rule("odd", "discard", "body:length(n) equals 1")
    ask_all(bench, '{"n": 5}', '{"n": "one"}')
    assert bench.states() == {'{"n": 5}': "waiting", '{"n": "one"}': "waiting"}
    lane = bench.lane(letters__payload__body=b'{"n": 5}')
    last_error = "body:length(n): length() was given a value of the wrong type"
    assert (lane.phase, lane.why) == ("held", f"rule odd could not be evaluated: {last_error}")
    assert _routes(bench) == {'{"n": 5}': ("erred", "odd"), '{"n": "one"}': ("", None)}
    odd = Rule.objects.get()
    assert (odd.match_count, odd.error_count, odd.last_error) == (0, 1, last_error)
    rule("odd", "discard", "body:n equals 5")
    route.wake_stopped(RuleBook.load())
    assert bench.states()['{"n": 5}'] == "discarded"


@pytest.mark.parametrize(
    ("field", "condition"), [("message_type", "type equals paid"), ("tenant", "tenant equals acme")]
)
def test_a_field_that_cannot_be_read_in_a_dlq_holds_only_the_messages_of_that_dlq(field: str, condition: str) -> None:
    broken, sound = Workbench(fields={field: "nonsense:x"}), Workbench()
    rule("odd", "hold", condition)
    for bench in (broken, sound):
        bench.enqueue("x")
    sound.replay()
    recover.sweep_all(conf=sound.conf)
    assert (sound.delivered_bodies(), broken.delivered_bodies(), broken.lane().phase) == (["x"], [], "held")
    why = f'rule odd could not be evaluated: {condition.split(maxsplit=1)[0]}: "nonsense:x" is not a selector. Write '
    assert broken.lane().why.startswith(why)


def test_a_body_too_large_for_rules_is_held_and_not_loaded() -> None:
    bench = Workbench()
    rule("odd", "discard", "body:n equals 1")
    large = json.dumps({"n": 1, "rest": "x" * BODY_LIMIT})
    bench.enqueue(large)
    standings = leased()
    loaded = routable_letters.load_waiting([head.letter_id or 0 for head in standings], bodies=True)
    assert [(letter.size, bytes(letter.body)) for letter in loaded] == [(len(large), b"")]
    ask(standings)
    why = f"its body has {len(large)} bytes, and rules read {BODY_LIMIT} at most"
    assert bench.lane().why == f"rule odd could not be evaluated: body:n: {why}"


def test_a_rule_that_cannot_be_parsed_holds_its_letters() -> None:
    bench = Workbench()
    rule("odd", "discard", "body:n equals 1")
    Rule.objects.update(conditions=["body:n resembles 1"])
    ask_all(bench, "x")
    assert (bench.lane().phase, bench.letter().route) == ("held", "erred")
    assert bench.lane().why.startswith('rule odd could not be evaluated: "body:n resembles 1" is not a condition')


def test_a_rule_that_fails_often_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    bench = Workbench()
    rule("fine", "replay", "body:n equals one", position=1)
    rule("odd", "discard", "body:length(n) equals 9", position=2)
    bench.enqueue('{"n": 5}', '{"n": 6}', '{"n": "one"}', '{"n": 7}')
    fine = bench.letter(payload__body=b'{"n": "one"}').pk
    found = sorted(leased(), key=lambda head: head.letter_id == fine)
    with caplog.at_level(logging.ERROR):
        ask(found[:2])
        ask(found[2:], RuleBook.load())
    said = [record.getMessage() for record in caplog.records]
    what = "Rule odd could not be evaluated for 2 of 2 messages, which are held."
    assert said == [
        (
            f"{what} Correct it (manage.py add_rule odd --reason WHY shows it), or disable it "
            "(manage.py disable_rule odd --reason WHY --confirm)."
        )
    ]


def test_other_threads_may_ask_while_errors_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench()
    rule("odd", "discard", "body:length(n) equals 9", position=1)
    rule("even", "discard", "body:length(m) equals 9", position=2)
    bench.enqueue('{"n": 5}', '{"m": 5}')
    book = RuleBook.load()
    loaded = routable_letters.load_waiting(list(Letter.objects.values_list("pk", flat=True)), bodies=True)
    even, odd = sorted(loaded, key=lambda letter: bytes(letter.body))
    book.ask(odd)

    class Meanwhile(float):
        def __mul__(self, other: float) -> float:
            book.ask(even)
            return float(self) * other

    monkeypatch.setattr(rules_of, "ERROR_SHARE", Meanwhile(rules_of.ERROR_SHARE))
    assert [(failing.name, erred, asked) for failing, erred, asked in book.failing_rules()] == [("odd", 1, 1)]


def test_hits_count_each_letter_once() -> None:
    bench = Workbench()
    rule("fine", "replay")
    standings = ask_all(bench, "x", "y").lane_states
    change_the_rules()
    ask(standings)
    fine = Rule.objects.get(name="fine")
    assert (fine.match_count, fine.error_count, fine.last_hit_at is not None) == (2, 0, True)


def test_decisions_of_an_old_book_are_not_written() -> None:
    bench = Workbench()
    bad = rule("bad", "quarantine")
    bench.enqueue("x")
    book, standings = RuleBook.load(), leased()
    disable(bad)
    turned = ask(standings, book)
    assert (bench.states(), bench.letter().rulebook_version) == ({"x": "waiting"}, 0)
    assert [lane.phase for lane in turned.lane_states] == ["leased"]
    assert RuleBook.load(book) is not book
    current = RuleBook.load()
    assert RuleBook.load(current) is current


def test_a_rule_disabled_during_routing_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench()
    wait = rule("wait", "hold")
    bench.enqueue("x")
    standings = leased()

    def lift() -> int:
        disable(wait)
        return route.wake_stopped(RuleBook.load())

    def lift_elsewhere() -> None:
        with elsewhere() as begin:  # whoever lifts it sees nothing to wake yet
            assert begin(lift).result(20) == 0

    happens_before(monkeypatch, routing_decisions, "record_reasons", lift_elsewhere, once=True)
    ask(standings)
    assert (bench.lane().phase, bench.replay().taken) == ("ready", 1)


def test_a_lost_lane_is_left_to_its_new_owner() -> None:
    bench = Workbench()
    rule("bad", "quarantine")
    bench.enqueue("x")
    standings = leased()
    Lane.objects.update(fence=9_000_000)
    assert ask(standings).lane_states == []
    assert bench.states() == {"x": "waiting"}


def test_two_decisions_at_once_are_written_once() -> None:
    bench = Workbench()
    rule("fine", "replay")
    bench.enqueue("x")
    standings, book = leased(), RuleBook.load()
    loaded = routable_letters.load_waiting([bench.letter().pk], bodies=False)
    ask(standings, book)
    again = [
        routing_decisions.RoutingDecision(asked.letter_id, asked.rulebook_version, "hold", rule_id=None)
        for asked in loaded
    ]
    assert routing_decisions.write(again, [lane.lane_id for lane in standings], version=book.version, owned=True) == []
    assert bench.letter().route == "replay"


def test_a_deleted_rule_decides_nothing() -> None:
    bench = Workbench()
    bad = rule("bad", "replay")
    bench.enqueue("x")
    standings, book = leased(), RuleBook.load()
    Rule.objects.filter(pk=bad.pk).delete()
    assert [lane.phase for lane in ask(standings, book).lane_states] == ["leased"]
    assert (bench.letter().route, bench.letter().rulebook_version) == ("", 0)


def test_waking_leaves_a_leased_lane_to_its_owner() -> None:
    bench = Workbench()
    wait = rule("wait", "replay")
    ask_all(bench, "x")
    Letter.objects.update(route="hold")
    disable(wait, wake=True)
    assert (bench.lane().phase, bench.letter().route) == ("leased", "hold")


def test_a_release_wins_over_the_rule_that_quarantined() -> None:
    bench = Workbench()
    rule("bad", "quarantine")
    ask_all(bench, "x")
    act_on_parked.release([bench.letter().pk], by="anna", reason="it is meant")
    change_the_rules()
    assert [lane.phase for lane in ask(leased()).lane_states] == ["leased"]
    assert bench.letter().state == "waiting"


def test_a_letter_diverted_to_an_unhealthy_target_returns() -> None:
    bench = Workbench()
    ways = rule("elsewhere", "divert", target=(other := _target("other")))
    HealthCheck.objects.create(target=other, kind="http", subject="https://shop.example.com/health")
    bench.enqueue("x")
    assert (bench.replay().taken, bench.lane().breaker) == (0, Breaker.objects.get(target=other))
    disable(ways, wake=True)
    assert (bench.replay().taken, bench.delivered_bodies()) == (1, ["x"])


def test_a_lane_of_an_unhealthy_target_is_asked_once() -> None:
    bench = Workbench()
    HealthCheck.objects.create(target=bench.target, kind="http", subject="https://shop.example.com/health")
    rule("never", "hold", "body:kind equals never")
    bench.redrive("x")
    route.wake_stopped(RuleBook.load())
    assert (bench.lane().breaker, leased()) == (Breaker.objects.get(target=bench.target), [])


def test_large_heads_are_asked_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench()
    rule("bad", "quarantine", "body:n exists")
    monkeypatch.setattr(routable_letters, "CHUNK", 9)
    ask_all(bench, *(f'{{"n": {number}}}' for number in range(5)))
    assert set(bench.states().values()) == {"parked"}


def test_attributes_are_loaded_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench()
    for _ in range(3):
        bench.bury("x", colour="red")
    bench.ready()
    monkeypatch.setattr(routable_letters, "CHUNK", 1)
    every = list(Letter.objects.values_list("pk", flat=True))
    since = lanes.database_now() - timedelta(days=1)
    assert len(routable_letters.load_waiting(every, bodies=False)) == 1
    assert len(routable_letters.captured_since(since=since, dlq=None, below=None, bodies=False)) == 1


def test_many_heads_take_as_many_statements_as_one() -> None:
    bench = Workbench(fields=BY_KEY)
    rule("acme", "replay", "tenant in acme,globex")
    counts = []
    for number in (1, 9):
        for n in range(number):
            bench.bury("x", key=f"{number}-{n}", tenant="acme")
        bench.ready()
        standings, book = leased(), RuleBook.load()
        book.reads_bodies([bench.dlq.pk])
        with statements() as sent:
            ask(standings, book)
        counts.append(len(sent))
    assert counts[0] == counts[1]


def test_a_rule_acts_on_letters_behind_an_open_breaker() -> None:
    bench = Workbench(fields={"tenant": "attribute:tenant"})
    bench.bury("bad", tenant="acme")
    bench.enqueue("good", tenant="other")
    Breaker.objects.update(state="open", retry_at=lanes.database_now() + timedelta(hours=1), current_cooldown=3600)
    bench.replay()
    assert set(bench.states().values()) == {"waiting"}
    rule("acme", "quarantine", "tenant equals acme")
    route.refresh_rules(lanes.database_now())
    bench.replay()
    assert bench.states() == {"bad": "parked", "good": "waiting"}
    assert lanes.lease("nobody", limit=9, lease=8) == []  # the other one was asked, and waits for the breaker
