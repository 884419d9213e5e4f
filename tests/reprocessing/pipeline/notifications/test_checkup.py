"""The doctor looks by itself: an error that is new is told, one that is cured is concluded, at bounded cost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.client import BaseClient
from django.conf import settings

from reprocessing.domain.aws.queue_spec import OWN_VISIBILITY
from reprocessing.domain.maintenance.findings import (
    DoctorFinding,
    error_finding,
    ok_finding,
    unknown_finding,
    warning_finding,
)
from reprocessing.gateways.redis.send_rate import Rates
from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.maintenance import doctor
from reprocessing.pipeline.maintenance.doctor import CheckContext, CheckResult
from reprocessing.pipeline.maintenance.doctor import dlqs as dlq_checks
from reprocessing.pipeline.notifications import checkup
from tests.race.abreast import together
from tests.reprocessing.incidents import is_open, told
from tests.reprocessing.pipeline.bench import BRISK, Workbench
from tests.reprocessing.store.stock import Stock

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "s3cret-answer"


def now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251  # a door, as in the command


def check_context(*own_queues: str) -> CheckContext:
    conf = replace(BRISK, own_queues=own_queues)
    return CheckContext(names=(), control="redrive-control", conf=conf, rates=Rates.at(settings.REDIS_URL), now=now)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[DoctorFinding]]:
    """What the doctor finds at the service, by the part."""
    parts: dict[str, list[DoctorFinding]] = {}

    def service(_: CheckContext) -> Iterator[CheckResult]:
        yield from (CheckResult(title, tuple(findings)) for title, findings in parts.items())

    monkeypatch.setattr(doctor, "run_service_checks", service)
    monkeypatch.setattr(doctor, "run_dlq_checks", lambda _: ())
    return parts


def check() -> None:
    checkup.checkup(check_context())


def test_an_error_is_told_once_without_what_aws_answered_and_concluded_when_it_is_gone(
    found: dict[str, list[DoctorFinding]],
) -> None:
    found["Redis"] = [error_finding("Redis", SECRET, SECRET, SECRET), warning_finding("Redis", SECRET)]
    check()
    together([check] * 3)
    assert is_open("doctor_worse") == {
        "doctor:Redis": {"errors": 1, "warnings": 1, "finding": "There is an error at Redis."}
    }
    assert told("doctor_worse") == [("doctor:Redis", 1, True)]
    found["Redis"] = [unknown_finding("Redis", "")]
    check()
    assert list(is_open("doctor_worse")) == ["doctor:Redis"]
    found["Redis"] = [warning_finding("Redis", "")]
    check()
    assert told("doctor_worse") == [("doctor:Redis", 1, False)]


def test_an_error_at_another_part_is_another_incident_and_a_warning_is_none(
    found: dict[str, list[DoctorFinding]],
) -> None:
    found |= {
        "Redis": [error_finding("Redis", "", "", "")],
        "clocks": [warning_finding("clocks", "")],
        "lanes": [ok_finding("lanes", "")],
    }
    check()
    found["lanes"] = [error_finding("lanes", "", "", "")]
    check()
    assert [subject for subject, _, _ in told("doctor_worse")] == ["doctor:Redis", "doctor:lanes"]


def test_an_error_of_a_part_that_there_is_no_more_is_over(
    found: dict[str, list[DoctorFinding]], monkeypatch: pytest.MonkeyPatch
) -> None:
    stock = Stock()
    error = error_finding("", "", "", "")
    monkeypatch.setattr(doctor, "run_dlq_checks", lambda of: [CheckResult(of.names[0], (error,))])
    found |= {"Redis": [error], "lanes": [ok_finding("lanes", "")]}
    check()
    found.pop("Redis")
    DeadLetterQueue.objects.filter(pk=stock.dlq.pk).update(name="renamed")
    check()
    old = f"doctor:{stock.dlq.name}"
    assert sorted(told("doctor_worse")) == sorted([("doctor:Redis", 1, False), (old, 1, False),
                                                   ("doctor:renamed", 1, True)])  # fmt: skip


def test_dlqs_take_turns_five_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    stocks = [Stock() for _ in range(7)]
    looked: list[str] = []

    def dlqs_alone(of: CheckContext) -> Iterator[CheckResult]:
        looked.extend(of.names)
        yield CheckResult(of.names[0], (error_finding(of.names[0], "", "", ""),))

    monkeypatch.setattr(doctor, "run_service_checks", lambda _: ())
    monkeypatch.setattr(doctor, "run_dlq_checks", dlqs_alone)
    names = [stock.dlq.name for stock in stocks]
    check()
    assert looked == names[:5]
    check()
    assert looked[5:] == [*names[5:], *names[:3]]
    check()
    assert looked[10:] == names[3:] + names[:1]
    assert [times for _, times, _ in told("doctor_worse")] == [1] * 7


def test_checks_that_take_long_begin_with_no_other_dlq_and_what_they_found_is_told_of(
    found: dict[str, list[DoctorFinding]], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [Stock().dlq.name for _ in range(3)]
    error, seconds = error_finding("", "", "", ""), iter([0.0, 1.0, checkup.CHECK_SECONDS])
    monkeypatch.setattr(doctor, "run_dlq_checks", lambda of: [CheckResult(of.names[0], (error,))])
    found["Redis"] = [error]
    checkup.checkup(check_context(), clock=lambda: next(seconds))
    assert is_open("doctor_worse").keys() == {"doctor:Redis", f"doctor:{names[0]}", f"doctor:{names[1]}"}
    checkup.checkup(check_context(), clock=iter([0.0, checkup.CHECK_SECONDS]).__next__)
    assert f"doctor:{names[2]}" in is_open("doctor_worse")


def test_checks_that_a_time_limit_ends_have_told_of_what_they_found(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Stock(), Stock()
    error = error_finding("", "", "", "")

    def findings(row: DeadLetterQueue, _: object) -> list[DoctorFinding]:
        if row.pk == second.dlq.pk:
            raise TimeoutError
        return [error]

    monkeypatch.setattr(doctor, "run_service_checks", lambda _: [CheckResult("Redis", (error,))])
    monkeypatch.setattr(dlq_checks, "findings", findings)
    with pytest.raises(TimeoutError):
        checkup.checkup(replace(check_context(), ended_by=(TimeoutError,)))
    assert is_open("doctor_worse").keys() == {"doctor:Redis", f"doctor:{first.dlq.name}"}


@pytest.mark.soak
def test_a_real_look_tells_of_a_queue_that_is_gone_and_calls_aws_a_bounded_number_of_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Workbench()
    calls: list[str] = []
    call = getattr(BaseClient, "_make_api_call")  # noqa: B009  # boto3's stubs do not know it

    def counting(self: BaseClient, operation: str, parameters: Any) -> Any:  # noqa: ANN401  botocore's
        calls.append(operation)
        return call(self, operation, parameters)

    monkeypatch.setattr(BaseClient, "_make_api_call", counting)
    gone = f"{bench.source_url}-is-gone"
    checkup.checkup(check_context(gone))
    own = "doctor:the service's own queues"
    (dlq,) = is_open("doctor_worse").keys() - {own}  # no queue names it as its dead-letter queue
    assert dlq == f"doctor:{bench.dlq.name}"
    assert len(calls) <= 25, calls
    name = gone.rsplit("/", 1)[-1]
    policy = {"deadLetterTargetArn": bench.arn(bench.queue(f"{name}-dlq")), "maxReceiveCount": "5"}
    attributes = {"VisibilityTimeout": str(OWN_VISIBILITY), "RedrivePolicy": json.dumps(policy)}
    bench.sqs.set_queue_attributes(QueueUrl=bench.queue(name), Attributes=attributes)
    calls.clear()
    checkup.checkup(check_context(gone))
    assert len(calls) <= 20, calls  # of one queue of the service, and one DLQ with one source queue
    assert is_open("doctor_worse").keys() == {dlq}
