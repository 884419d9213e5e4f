"""Of a hundred tenants, one's letters are poison: a rule that is added while the drain runs puts them aside."""

from __future__ import annotations

import io
import json
from collections import Counter
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models import QuerySet
from django_celery_beat.models import IntervalSchedule

from reprocessing.domain.lifecycle import LetterState, ParkedReason
from reprocessing.models import Attempt, DeadLetterQueue, Lane, Letter
from reprocessing.store.ordering import lanes
from tests.conditions import eventually
from tests.faults.fleet import Beat, Worker
from tests.reprocessing.pipeline.bench import Workbench
from tests.stories.consumer import Consumer
from tests.stories.scene import Witness, lettered, published

pytestmark = pytest.mark.django_db(transaction=True)

TENANTS, KEYS, EACH = 100, 5, 10
POISON, WAITS = "tenant-13", "tenant-77"
SLICE = 5.0
POLICY: dict[str, Any] = {
    "ordering_key": "attribute:key", "sequence": "attribute:n", "tenant": "attribute:tenant", "max_attempts": 9,
}  # fmt: skip
WHO: dict[str, Any] = {"by": "a test", "reason": "one tenant's letters", "confirm": True}


@pytest.mark.soak
@pytest.mark.alone
@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_rest_of_the_tenant_is_quarantined_within_a_cycle_and_all_the_others_finish(tmp_path: Path) -> None:
    witness = Witness()
    bench = Workbench(fields=POLICY, target_fields={"rate": 100.0, "burst": 50.0})
    _bury(bench, range(TENANTS), EACH)
    _dies_back(bench)
    mended: set[str] = set()
    with ExitStack() as stack:
        stack.enter_context(Consumer(bench.source_url, lambda one: _tenant(one) != POISON or POISON in mended))
        for number in range(2):
            stack.enter_context(Worker(tmp_path, f"worker-{number}"))
        _rule("hold", WAITS, enable=True)
        stack.enter_context(Beat(every=1.0))
        eventually(lambda: Attempt.objects.filter(letter__in=_letters(POISON)).count() >= EACH // 5, within=90)
        _rule("quarantine", POISON)
        share = _preview("quarantine")
        call_command("enable_rule", "quarantine", **WHO)
        enabled = lanes.database_now()
        assert Attempt.objects.values("letter").distinct().count() < (TENANTS - 1) * EACH  # it is in full swing
        eventually(lambda: _states(POISON) == {LetterState.PARKED: EACH}, within=60)
        everybody_else = (TENANTS - 2) * EACH
        eventually(lambda: _delivered() == everybody_else, within=120)
        late = (_last_sent(POISON) - enabled).total_seconds()
        assert late < SLICE
        assert set(_letters(POISON).values_list("reason", "detail")) == {(ParkedReason.QUARANTINED, "quarantine")}
        assert share["would_act_on"] > 0
        assert share["would_act_on"] + share["under_way"] == EACH
        assert _states(WAITS) == {LetterState.WAITING: EACH}
        assert set(Lane.objects.filter(pk__in=_letters(WAITS).values("lane")).values_list("phase", flat=True)) == {
            "held"
        }
        call_command("disable_rule", "hold", **WHO)
        eventually(lambda: _delivered() == everybody_else + EACH, within=60)
        mended.add(POISON)
        call_command("disable_rule", "quarantine", release=True, **WHO)
        eventually(lambda: _delivered() == TENANTS * EACH, within=60)
    judgement = witness.judges(bench, identity="event", ordering="key", sequence="n", advance="settled", max_attempts=9)
    assert (judgement.findings, judgement.counts()["delivered"]) == ((), TENANTS * EACH)
    print(f"the last of the tenant's letters went {late:.1f} s after its rule was enabled")  # noqa: T201


def _bury(bench: Workbench, tenants: range, each: int) -> None:
    """The letters of each tenant on several keys, those of all tenants mixed."""
    published(
        bench.sqs, bench.dlq_url,
        (
            lettered(f"{n}", tenant=f"tenant-{tenant}", key=f"{tenant}/{n % KEYS}", n=f"{n // KEYS}",
                     event=f"{tenant}:{n}")
            for n in range(each) for tenant in tenants
        ),
    )  # fmt: skip


def _dies_back(bench: Workbench) -> None:
    """Judged by absence; what its consumer fails is in the dlq with the next receive. Beat redrives it."""
    policy = json.dumps({"deadLetterTargetArn": bench.dlq.arn, "maxReceiveCount": "1"})
    bench.sqs.set_queue_attributes(QueueUrl=bench.source_url, Attributes={"RedrivePolicy": policy})
    bench.judge_by_absence(window=1, visibility=1)
    every, _ = IntervalSchedule.objects.get_or_create(every=1, period="seconds")
    DeadLetterQueue.objects.update(mode="automatic", interval=every, next_poll_at=None)


def _tenant(message: dict[str, Any]) -> str:
    return str(message["MessageAttributes"]["tenant"]["StringValue"])


def _rule(action: str, tenant: str, *, enable: bool = False) -> None:
    call_command("add_rule", action, when=[f"tenant equals {tenant}"], then=action, enable=enable, **WHO)


def _preview(rule: str) -> dict[str, Any]:
    said = io.StringIO()
    call_command("test_rules", rule=rule, json=True, stdout=said)
    (share,) = json.loads(said.getvalue())["rules"]
    return dict(share)


def _letters(tenant: str) -> QuerySet[Letter]:
    """By their keys, which begin with the tenant's number."""
    return Letter.objects.filter(ordering_key__startswith=f"{tenant.removeprefix('tenant-')}/")


def _states(tenant: str) -> Counter[str]:
    return Counter(_letters(tenant).values_list("state", flat=True))


def _delivered() -> int:
    return Letter.objects.filter(state=LetterState.DELIVERED).count()


def _last_sent(tenant: str) -> datetime:
    return Attempt.objects.filter(letter__in=_letters(tenant)).latest("opened_at").opened_at
