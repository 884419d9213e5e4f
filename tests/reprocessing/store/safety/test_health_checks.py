from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection, transaction

from reprocessing.domain.safety.health_check import HealthResult, HealthUnknown, Healthy, Unhealthy
from reprocessing.models import AuditAct, AuditEntry, Breaker, HealthCheck, Lane, Rule, Target
from reprocessing.models.safety import CheckKind
from reprocessing.store.ordering import lanes
from reprocessing.store.safety import health_checks, stops
from reprocessing.store.safety.health_checks import CheckQuestion
from tests.reprocessing.pipeline.bench import Clock
from tests.reprocessing.store.stock import Stock

pytestmark = pytest.mark.django_db(transaction=True)

ALARM = CheckQuestion(CheckKind.ALARM, "orders")
EVERY, MAX_AGE = 10, 30
LATER = "2100-01-01T00:00Z"


class Checked(Stock):
    """A target with a health check, and a lane that is due unless the fields say otherwise."""

    def __init__(self, **lane: object) -> None:
        super().__init__()
        add(self.target)
        values = {"phase": "ready", "due_at": lanes.database_now(), **lane}
        Lane.objects.filter(pk=self.lane.pk).update(**values)

    def told(self) -> health_checks.CheckStatus:
        (found,) = health_checks.checks_of([self.target.pk])
        return found

    def find(self, finding: HealthResult) -> int:
        return health_checks.record_results([(check, finding) for check in health_checks.claim_all([self.target.pk])])

    def another_lane(self, target: Target, **lane: object) -> None:
        """A due lane whose head goes to this target."""
        values = {
            "phase": "ready",
            "due_at": lanes.database_now(),
            "breaker": Breaker.objects.get(target=target),
            **lane,
        }
        of_dlq = {"dlq": self.dlq, "source": self.source, "run": self.run, "key_hash": uuid.uuid4().bytes}
        Lane.objects.create(**{**of_dlq, **values})


def add(target: Target, asked: CheckQuestion = ALARM) -> int:
    return health_checks.add_check(target.pk, asked, by="ann", reason="why")


def idle() -> Checked:
    return Checked(phase="idle", due_at=None)


def bare() -> Target:
    """A target with a health check, which no source names."""
    found = Target.objects.create(arn="arn:aws:sqs:us-east-1:0:bare", url="http://127.0.0.1:9/0/b", region="us-east-1")
    add(found)
    return found


def claimed() -> set[int]:
    return {check.target_id for check in health_checks.claim_due(limit=99)}


@pytest.fixture
def stock() -> Checked:
    return Checked()


def test_a_check_is_claimed_once_each_time_it_is_due(clock: Clock) -> None:
    target = Checked().target.pk
    assert (health_checks.are_due(), claimed()) == (True, {target})
    assert (health_checks.are_due(), claimed()) == (False, set())
    clock.advance(EVERY / 2)
    assert claimed() == set()
    clock.advance(EVERY / 2)
    assert claimed() == {target}


def test_a_claimed_check_says_what_is_needed_to_run_it(clock: Clock, stock: Checked) -> None:
    HealthCheck.objects.update(kind="http", subject="https://a.example/", expected_status=204)
    (check,) = health_checks.claim_due(limit=1)
    assert (check.kind, check.subject, check.expected_status) == ("http", "https://a.example/", 204)
    assert (check.ceiling, check.url, check.region) == (None, stock.target.url, stock.target.region)
    assert timedelta(0) <= lanes.database_now() - check.began < timedelta(seconds=10)


@pytest.mark.parametrize(
    "lane", [{"phase": "idle", "due_at": None}, {"phase": "awaiting", "due_at": None}, {"due_at": LATER}, {"run": None}]
)
def test_a_target_for_which_nothing_waits_is_not_checked(lane: dict[str, object]) -> None:
    Checked(**lane)
    assert (health_checks.are_due(), claimed()) == (False, set())


def test_targets_of_a_stopped_dlq_are_not_checked_until_it_is_resumed(stock: Checked) -> None:
    stops.stop(stock.dlq.pk, by="ann", reason="why")
    assert claimed() == set()
    stops.resume(stock.dlq.pk, by="ann", reason="why")
    assert claimed() == {stock.target.pk}


def test_a_target_is_checked_before_its_lane_comes_due() -> None:
    stock = Checked(due_at=lanes.database_now() + timedelta(seconds=20))
    assert claimed() == {stock.target.pk}


def test_only_targets_of_dlqs_with_due_lanes_are_checked() -> None:
    waiting, other = Checked(), idle()
    assert claimed() == {waiting.target.pk}
    assert (other.told().checked_at, other.told().verdict) == (None, "unknown")


@pytest.mark.parametrize(("enabled", "of_the_busy"), [(True, True), (True, False), (False, True)])
def test_the_target_of_a_rule_is_checked_while_the_rule_is_enabled_for_due_lanes(
    enabled: bool, of_the_busy: bool
) -> None:
    waiting, other = Checked(), idle()
    dlq = waiting.dlq if of_the_busy else other.dlq
    Rule.objects.create(name="r", dlq=dlq, action="divert", target=other.target, enabled=enabled, created_by="ann")
    assert claimed() == {waiting.target.pk} | ({other.target.pk} if enabled and of_the_busy else set())


def test_a_target_that_no_source_names_is_checked_while_any_lane_is_due() -> None:
    waiting, other = Checked(), bare()
    assert claimed() == {waiting.target.pk, other.pk}


def test_another_dlqs_target_is_checked_while_a_due_lane_waits_behind_it() -> None:
    waiting, others = Checked(), [idle() for _ in range(3)]
    for stock in [*others[:2], others[0], waiting]:
        waiting.another_lane(stock.target)
    assert claimed() == {waiting.target.pk, others[0].target.pk, others[1].target.pk}


def test_targets_behind_lanes_of_each_run_are_checked() -> None:
    waiting, others = [Checked(), Checked()], [idle() for _ in range(2)]
    waiting[0].another_lane(others[0].target)
    waiting[1].another_lane(others[1].target)
    assert claimed() == {stock.target.pk for stock in waiting + others}


def test_another_dlqs_target_is_checked_each_time_it_is_due(clock: Clock) -> None:
    waiting, other = Checked(), idle()
    waiting.another_lane(other.target)
    other.find(Unhealthy("in ALARM"))
    assert claimed() == {waiting.target.pk}
    clock.advance(EVERY)
    assert claimed() == {waiting.target.pk, other.target.pk}


@pytest.mark.parametrize(
    "lane", [{"phase": "idle", "due_at": None}, {"due_at": LATER}, {"run": None}, {"breaker": None}]
)
def test_another_dlqs_target_behind_which_no_due_lane_waits_is_not_checked(lane: dict[str, object]) -> None:
    waiting, other = Checked(), idle()
    waiting.another_lane(other.target, **lane)
    assert claimed() == {waiting.target.pk}


def test_for_one_dlq_only_the_targets_are_checked_that_its_lanes_wait_for() -> None:
    mine, others, other = Checked(), Checked(), idle()
    mine.another_lane(other.target)
    unnamed = bare()
    found = {check.target_id for check in health_checks.claim_due(limit=99, dlq=mine.dlq.pk)}
    assert found == {mine.target.pk, other.target.pk}
    assert claimed() == {others.target.pk, unnamed.pk}


def test_all_checks_of_a_target_can_be_claimed_at_any_time() -> None:
    stock = idle()
    add(stock.target, CheckQuestion(CheckKind.DEPTH, ceiling=5))
    for _ in range(2):
        assert sorted(check.kind for check in health_checks.claim_all([stock.target.pk])) == ["alarm", "depth"]


def test_a_check_is_claimed_by_one_of_two_workers_and_the_other_does_not_wait() -> None:
    first, second = Checked(), Checked()
    got: set[int] = set()

    def take() -> None:
        try:
            got.update(claimed())
        finally:
            connection.close()

    other = threading.Thread(target=take)
    with transaction.atomic():
        (mine,) = health_checks.claim_due(limit=1)
        other.start()
        other.join(5)
        assert not other.is_alive()
    assert sorted([mine.target_id, *got]) == sorted([first.target.pk, second.target.pk])


def test_a_result_counts_until_it_is_too_old(clock: Clock, stock: Checked) -> None:
    assert not stock.told().is_passing
    stock.find(Healthy("in OK"))
    assert (stock.told().verdict, stock.told().detail, stock.told().is_passing) == ("healthy", "in OK", True)
    clock.advance(MAX_AGE - 10)
    assert stock.told().is_passing
    clock.advance(10)
    assert (stock.told().verdict, stock.told().counts, stock.told().is_passing) == ("healthy", False, False)
    assert stock.told().age == pytest.approx(MAX_AGE, abs=10)


@pytest.mark.parametrize(
    ("finding", "verdict"), [(Unhealthy("in ALARM"), "unhealthy"), (HealthUnknown("DescribeAlarms failed"), "unknown")]
)
def test_a_check_that_is_not_healthy_lets_nothing_go(
    finding: Unhealthy | HealthUnknown, verdict: str, stock: Checked
) -> None:
    stock.find(Healthy())
    stock.find(finding)
    assert (stock.told().verdict, stock.told().detail, stock.told().is_passing) == (verdict, finding.why, False)


def test_many_results_are_recorded_at_once() -> None:
    stocks = [Checked() for _ in range(3)]
    found: list[HealthResult] = [Healthy("a"), Unhealthy("b"), HealthUnknown("c")]
    checks = {check.target_id: check for check in health_checks.claim_due(limit=9)}
    pairs = [(checks[stock.target.pk], finding) for stock, finding in zip(stocks, found, strict=True)]
    assert health_checks.record_results(pairs) == 3
    assert [stock.told().detail for stock in stocks] == ["a", "b", "c"]
    assert health_checks.record_results([]) == 0


def test_an_older_result_never_replaces_a_newer_one(clock: Clock, stock: Checked) -> None:
    (slow,) = health_checks.claim_due(limit=1)
    clock.advance(5)
    stock.find(Unhealthy("died meanwhile"))
    assert health_checks.record_results([(slow, Healthy())]) == 0
    assert stock.told().detail == "died meanwhile"


def test_a_result_is_as_old_as_the_beginning_of_its_check(clock: Clock, stock: Checked) -> None:
    (slow,) = health_checks.claim_due(limit=1)
    clock.advance(MAX_AGE)
    assert health_checks.record_results([(slow, Healthy())]) == 1
    assert not stock.told().is_passing


def _ask_otherwise(stock: Checked) -> None:
    HealthCheck.objects.update(kind="depth", subject="", ceiling=100)
    (slow,) = health_checks.claim_all([stock.target.pk])
    add(stock.target, CheckQuestion(CheckKind.DEPTH, ceiling=5))
    assert health_checks.record_results([(slow, Healthy("its depth is 50 messages"))]) == 0
    assert stock.told().ceiling == 5


def _ask_again(stock: Checked) -> None:
    stock.find(Healthy())
    assert add(stock.target) == stock.told().check_id


@pytest.mark.parametrize("asked", [_ask_otherwise, _ask_again])
def test_a_check_that_is_added_again_is_unknown_until_it_has_run(
    asked: Callable[[Checked], None], stock: Checked
) -> None:
    asked(stock)
    assert (stock.told().verdict, stock.told().checked_at, stock.told().is_passing) == ("unknown", None, False)


def test_adding_changing_and_removing_a_check_is_in_the_audit_log() -> None:
    stock = Stock()
    check = health_checks.add_check(stock.target.pk, CheckQuestion(CheckKind.AGE, ceiling=60), by="ann", reason="slow")
    health_checks.add_check(stock.target.pk, CheckQuestion(CheckKind.AGE, ceiling=90), by="bob", reason="slower")
    assert health_checks.remove_check(check, [stock.target.pk], by="cleo", reason="mended")
    kept = AuditEntry.objects.order_by("id").values_list("act", "target", "by", "reason", "before", "after")
    asked = {"check": check, "kind": "age", "subject": "", "expected_status": None}
    assert list(kept) == [
        (AuditAct.ADDED, stock.target.pk, "ann", "slow", {}, asked | {"ceiling": 60}),
        (
            AuditAct.CHANGED, stock.target.pk, "bob", "slower",
            {"check": check, "ceiling": 60, "expected_status": None}, asked | {"ceiling": 90},
        ),
        (AuditAct.CHANGED, stock.target.pk, "cleo", "mended", asked | {"ceiling": 90}, {}),
    ]  # fmt: skip
    assert health_checks.checks_of([stock.target.pk]) == []


def test_a_check_of_another_target_is_not_removed() -> None:
    mine, other = Stock(), Stock()
    check = add(other.target)
    assert not health_checks.remove_check(check, [mine.target.pk], by="ann", reason="why")
    assert (HealthCheck.objects.count(), AuditEntry.objects.count()) == (1, 1)
