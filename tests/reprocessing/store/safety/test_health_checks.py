"""Which checks are due and for whom, and what their verdicts are worth."""

from __future__ import annotations

import threading
import uuid
from datetime import timedelta

import pytest
from django.db import connection, transaction

from reprocessing.domain.safety.health_check import Finding, Healthy, Unhealthy, Unknown
from reprocessing.models import Act, Breaker, HealthCheck, Lane, Review, Rule, Target
from reprocessing.models.safety import CheckKind
from reprocessing.store.ordering import lanes
from reprocessing.store.safety import health_checks
from reprocessing.store.safety.health_checks import Question
from tests.reprocessing.pipeline.bench import Clock
from tests.reprocessing.store.stock import Stock

pytestmark = pytest.mark.django_db(transaction=True)

ALARM = Question(CheckKind.ALARM, "orders")
EVERY, MAX_AGE = 10, 30


def add(target: Target, asked: Question = ALARM) -> int:
    return health_checks.add(target.pk, asked, by="ann", reason="why")


def busy(**lane: object) -> Stock:
    """A target with a check, that a lane waits for."""
    stock = Stock()
    add(stock.target)
    values = {"phase": "ready", "due_at": lanes.clock(), **lane}
    Lane.objects.filter(pk=stock.lane.pk).update(**values)
    return stock


def claimed() -> list[int]:
    return [one.target_id for one in health_checks.claim(limit=99)]


def told(stock: Stock) -> health_checks.Told:
    (found,) = health_checks.told([stock.target.pk])
    return found


def find(stock: Stock, finding: Finding) -> int:
    return health_checks.record([(one, finding) for one in health_checks.claim_all([stock.target.pk])])


def test_a_target_that_letters_wait_for_is_asked_once_each_time_it_is_due(clock: Clock) -> None:
    stock = busy()
    assert [health_checks.are_due(), claimed(), health_checks.are_due(), claimed()] == [
        True,
        [stock.target.pk],
        False,
        [],
    ]
    clock.advance(EVERY / 2)
    assert claimed() == []
    clock.advance(EVERY / 2)
    assert claimed() == [stock.target.pk]


def test_what_is_claimed_says_all_that_is_needed_to_look(clock: Clock) -> None:
    stock = busy()
    HealthCheck.objects.update(kind="http", subject="https://a.example/", expected_status=204)
    (one,) = health_checks.claim(limit=1)
    assert (one.kind, one.subject, one.expected_status, one.ceiling) == ("http", "https://a.example/", 204, None)
    assert (one.url, one.region) == (stock.target.url, stock.target.region)
    assert timedelta(0) <= lanes.clock() - one.began < timedelta(seconds=10)


@pytest.mark.parametrize(
    "idle",
    [
        {"phase": "idle", "due_at": None},
        {"phase": "awaiting", "due_at": None},
        {"due_at": "2100-01-01T00:00Z"},
        {"run": None},
    ],
)
def test_a_target_that_nobody_waits_for_is_not_asked(idle: dict[str, object]) -> None:
    busy(**idle)
    assert [health_checks.are_due(), claimed()] == [False, []]


def test_a_stopped_dlqs_targets_are_not_asked_until_it_is_resumed() -> None:
    stock = busy()
    stock.dlq.stopped_at, stock.dlq.stopped_by, stock.dlq.stop_reason = lanes.clock(), "ann", "why"
    stock.dlq.save()
    assert claimed() == []
    stock.dlq.stopped_at, stock.dlq.stopped_by, stock.dlq.stop_reason = None, "", ""
    stock.dlq.save()
    assert claimed() == [stock.target.pk]


def test_a_lane_that_comes_due_soon_has_its_target_asked_before() -> None:
    stock = busy(due_at=lanes.clock() + timedelta(seconds=20))
    assert claimed() == [stock.target.pk]


def test_only_targets_of_dlqs_that_wait_are_asked() -> None:
    waiting, idle = busy(), busy(phase="idle", due_at=None)
    assert claimed() == [waiting.target.pk]
    assert [told(idle).checked_at, told(idle).verdict] == [None, "unknown"]


@pytest.mark.parametrize(("enabled", "of_the_busy"), [(True, True), (True, False), (False, True)])
def test_where_a_rule_sends_letters_is_asked_while_the_rule_holds_for_them(enabled: bool, of_the_busy: bool) -> None:
    waiting, idle = busy(), busy(phase="idle", due_at=None)
    dlq = waiting.dlq if of_the_busy else idle.dlq
    Rule.objects.create(name="r", dlq=dlq, action="divert", target=idle.target, enabled=enabled, made_by="ann")
    expected = {waiting.target.pk, idle.target.pk} if enabled and of_the_busy else {waiting.target.pk}
    assert set(claimed()) == expected


def test_a_target_that_no_origin_names_is_asked_while_anybody_waits() -> None:
    waiting = busy()
    other = Target.objects.create(arn="arn:aws:sqs:us-east-1:0:other", url="http://127.0.0.1:9/0/o", region="us-east-1")
    add(other)
    assert set(claimed()) == {waiting.target.pk, other.pk}


def behind(stock: Stock, target: Target, **lane: object) -> None:
    """Another lane of the dlq, whose head goes to this target."""
    values = {"phase": "ready", "due_at": lanes.clock(), "breaker": Breaker.objects.get(target=target), **lane}
    Lane.objects.create(
        **{"dlq": stock.dlq, "origin": stock.origin, "run": stock.run, "key_hash": uuid.uuid4().bytes, **values}
    )


def test_another_dlqs_target_is_asked_while_a_due_lane_waits_behind_it() -> None:
    waiting, idle = busy(), [busy(phase="idle", due_at=None) for _ in range(3)]
    for one in [*idle[:2], idle[0], waiting]:
        behind(waiting, one.target)
    assert set(claimed()) == {waiting.target.pk, idle[0].target.pk, idle[1].target.pk}


def test_each_run_has_the_targets_asked_that_its_own_lanes_wait_behind() -> None:
    waiting, idle = [busy(), busy()], [busy(phase="idle", due_at=None) for _ in range(2)]
    behind(waiting[0], idle[0].target)
    behind(waiting[1], idle[1].target)
    assert set(claimed()) == {one.target.pk for one in waiting + idle}


def test_another_dlqs_target_is_asked_again_each_time_it_is_due(clock: Clock) -> None:
    waiting, idle = busy(), busy(phase="idle", due_at=None)
    behind(waiting, idle.target)
    find(idle, Unhealthy("in ALARM"))
    assert claimed() == [waiting.target.pk]
    clock.advance(EVERY)
    assert set(claimed()) == {waiting.target.pk, idle.target.pk}


@pytest.mark.parametrize(
    "idle", [{"phase": "idle", "due_at": None}, {"due_at": "2100-01-01T00:00Z"}, {"run": None}, {"breaker": None}]
)
def test_another_dlqs_target_that_no_due_lane_waits_behind_is_not_asked(idle: dict[str, object]) -> None:
    waiting, other = busy(), busy(phase="idle", due_at=None)
    behind(waiting, other.target, **idle)
    assert claimed() == [waiting.target.pk]


def test_for_one_dlq_alone_what_its_lanes_wait_for_is_asked_and_nothing_else() -> None:
    mine, others, idle = busy(), busy(), busy(phase="idle", due_at=None)
    behind(mine, idle.target)
    bare = Target.objects.create(arn="arn:aws:sqs:us-east-1:0:bare", url="http://127.0.0.1:9/0/b", region="us-east-1")
    add(bare)
    assert {one.target_id for one in health_checks.claim(limit=99, dlq=mine.dlq.pk)} == {mine.target.pk, idle.target.pk}
    assert set(claimed()) == {others.target.pk, bare.pk}


def test_on_demand_all_checks_of_a_target_are_claimed_also_when_nobody_waits() -> None:
    stock = busy(phase="idle", due_at=None)
    add(stock.target, Question(CheckKind.DEPTH, ceiling=5))
    assert [one.kind for one in health_checks.claim_all([stock.target.pk])] == ["alarm", "depth"]
    assert len(health_checks.claim_all([stock.target.pk])) == 2


def test_of_two_checkers_one_is_given_a_check_and_the_other_does_not_wait_for_it() -> None:
    first, second = busy(), busy()
    got: list[int] = []

    def take() -> None:
        try:
            got.extend(claimed())
        finally:
            connection.close()

    other = threading.Thread(target=take)
    with transaction.atomic():
        (mine,) = health_checks.claim(limit=1)
        other.start()
        other.join(5)
        assert not other.is_alive()
    assert sorted([mine.target_id, *got]) == sorted([first.target.pk, second.target.pk])


def test_a_verdict_counts_until_it_is_stale(clock: Clock) -> None:
    stock = busy()
    assert not told(stock).lets_go
    find(stock, Healthy("in OK"))
    assert (told(stock).verdict, told(stock).detail, told(stock).lets_go) == ("healthy", "in OK", True)
    clock.advance(MAX_AGE - 10)
    assert told(stock).lets_go
    clock.advance(10)
    assert (told(stock).verdict, told(stock).counts, told(stock).lets_go) == ("healthy", False, False)
    assert told(stock).age == pytest.approx(MAX_AGE, abs=10)


@pytest.mark.parametrize(
    ("finding", "verdict"), [(Unhealthy("in ALARM"), "unhealthy"), (Unknown("DescribeAlarms failed"), "unknown")]
)
def test_what_is_not_healthy_lets_nothing_go(finding: Unhealthy | Unknown, verdict: str) -> None:
    stock = busy()
    find(stock, Healthy())
    find(stock, finding)
    assert (told(stock).verdict, told(stock).detail, told(stock).lets_go) == (verdict, finding.why, False)


def test_many_verdicts_are_one_statement_and_each_is_its_checks_own() -> None:
    stocks = [busy() for _ in range(3)]
    found: list[Finding] = [Healthy("a"), Unhealthy("b"), Unknown("c")]
    looks = {one.target_id: one for one in health_checks.claim(limit=9)}
    pairs = [(looks[stock.target.pk], finding) for stock, finding in zip(stocks, found, strict=True)]
    assert health_checks.record(pairs) == 3
    assert [told(stock).detail for stock in stocks] == ["a", "b", "c"]
    assert health_checks.record([]) == 0


def test_an_older_finding_never_replaces_a_newer_one(clock: Clock) -> None:
    stock = busy()
    (slow,) = health_checks.claim(limit=1)
    clock.advance(5)
    find(stock, Unhealthy("died meanwhile"))
    assert health_checks.record([(slow, Healthy())]) == 0
    assert told(stock).detail == "died meanwhile"


def test_what_was_found_counts_from_when_the_look_began(clock: Clock) -> None:
    stock = busy()
    (slow,) = health_checks.claim(limit=1)
    clock.advance(MAX_AGE)
    assert health_checks.record([(slow, Healthy())]) == 1
    assert not told(stock).lets_go


def test_a_finding_about_another_question_is_not_written_down() -> None:
    stock = Stock()
    add(stock.target, Question(CheckKind.DEPTH, ceiling=100))
    (slow,) = health_checks.claim_all([stock.target.pk])
    add(stock.target, Question(CheckKind.DEPTH, ceiling=5))
    assert health_checks.record([(slow, Healthy("its depth is 50 messages"))]) == 0
    assert (told(stock).ceiling, told(stock).verdict) == (5, "unknown")


def test_a_question_asked_anew_is_unknown_until_somebody_looked() -> None:
    stock = Stock()
    first = add(stock.target)
    find(stock, Healthy())
    assert add(stock.target, Question(CheckKind.ALARM, "orders")) == first
    assert (told(stock).verdict, told(stock).checked_at, told(stock).lets_go) == ("unknown", None, False)


def test_adding_changing_and_removing_is_known_by_who_and_why() -> None:
    stock = Stock()
    check = health_checks.add(stock.target.pk, Question(CheckKind.AGE, ceiling=60), by="ann", reason="slow")
    health_checks.add(stock.target.pk, Question(CheckKind.AGE, ceiling=90), by="bob", reason="slower")
    assert health_checks.remove(check, [stock.target.pk], by="cleo", reason="mended")
    kept = Review.objects.order_by("id").values_list("act", "target", "by", "reason", "before", "after")
    asked = {"check": check, "kind": "age", "subject": "", "expected_status": None}
    assert list(kept) == [
        (Act.ADDED, stock.target.pk, "ann", "slow", {}, asked | {"ceiling": 60}),
        (
            Act.CHANGED, stock.target.pk, "bob", "slower",
            {"check": check, "ceiling": 60, "expected_status": None}, asked | {"ceiling": 90},
        ),
        (Act.CHANGED, stock.target.pk, "cleo", "mended", asked | {"ceiling": 90}, {}),
    ]  # fmt: skip
    assert health_checks.told([stock.target.pk]) == []


def test_a_check_of_another_target_is_not_removed() -> None:
    mine, other = Stock(), Stock()
    check = add(other.target)
    assert not health_checks.remove(check, [mine.target.pk], by="ann", reason="why")
    assert HealthCheck.objects.count() == 1
    assert Review.objects.count() == 1
