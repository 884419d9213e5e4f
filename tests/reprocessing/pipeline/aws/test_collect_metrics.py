"""Metrics count what all processes did; what is not known gives no sample."""

from __future__ import annotations

import pytest

from reprocessing.domain.aws import metric_names
from reprocessing.domain.aws.metric_names import METRICS, Metric
from reprocessing.domain.targets.target_kind import TargetKind
from reprocessing.models import Breaker, DeadLetterQueue, Heartbeat, Source, Target
from reprocessing.pipeline.aws import collect_metrics
from reprocessing.store.aws import metrics
from reprocessing.store.capture import capture_lease
from reprocessing.store.maintenance import counters
from reprocessing.store.safety import stops
from tests.reprocessing.pipeline.bench import Clock, Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def told(what: Metric) -> dict[tuple[str, ...], float]:
    """Return the values by their labels, and by the part where there is one."""
    found = [sample for sample in collect_metrics.samples(count_lag=0) if sample.metric == what]
    return {(*sample.labels, *([sample.part] if sample.part else [])): sample.value for sample in found}


@pytest.fixture
def bench(clock: Clock) -> Workbench:
    return Workbench(fields={"max_attempts": 1})


def _replay(bench: Workbench, *bodies: str) -> None:
    bench.enqueue(*bodies)
    with bench.refusing("bad"):
        bench.replay()


@pytest.mark.soak
def test_what_letters_came_to_is_counted_by_dlq_folded_or_not(bench: Workbench) -> None:
    _replay(bench, "good", "better", "bad")
    expected = {"captured": 3.0, "delivered": 2.0, "failed": 1.0, "parked": 1.0}
    for _ in range(2):
        came = {what: told(one).get((bench.name,)) for what, one in metric_names.LETTER_COUNTERS.items()}
        assert came == {**dict.fromkeys(metric_names.LETTER_COUNTERS, 0.0), **expected}
        counters.fold_deltas()


def test_a_counter_goes_on_when_its_letters_are_forgotten(bench: Workbench) -> None:
    _replay(bench, "good")
    counters.fold_deltas()
    assert counters.delete_old_hours(history=-7200) > 0
    assert told(metric_names.LETTER_COUNTERS["delivered"]) == {(bench.name,): 1.0}


def test_letters_are_told_by_state_and_reason_and_as_the_sums_that_alarms_are_set_on(bench: Workbench) -> None:
    _replay(bench, "good", "bad")
    bench.bury("new")
    bench.capture()
    assert told(metric_names.LETTERS) == {
        (bench.name, "captured", ""): 1, (bench.name, "delivered", ""): 1, (bench.name, "parked", "attempts_spent"): 1,
    }  # fmt: skip
    assert told(metric_names.UNFINISHED) == {(bench.name,): 1}
    assert told(metric_names.PARKED) == {(bench.name,): 1}


def test_nothing_is_told_of_what_nobody_has_asked(bench: Workbench) -> None:
    unknown = {
        metric_names.VISIBLE, metric_names.IN_FLIGHT, metric_names.OLDEST, metric_names.EXPIRY, metric_names.CONSUMED,
    }  # fmt: skip
    assert not unknown & {sample.metric for sample in collect_metrics.samples(count_lag=0)}
    capture_lease.note_depth(bench.dlq.pk, visible=7, in_flight=3)
    Heartbeat.record("redrive-control")
    assert told(metric_names.VISIBLE) == {(bench.name,): 7}
    assert told(metric_names.IN_FLIGHT) == {(bench.name,): 3}
    assert 0 <= told(metric_names.CONSUMED)["redrive-control",] < 60


def test_ages_and_deadlines_are_those_of_the_oldest_unfinished_letter(bench: Workbench, clock: Clock) -> None:
    bench.bury("first")
    bench.capture()
    clock.advance(1000)
    (age,), (left,) = told(metric_names.OLDEST).values(), told(metric_names.EXPIRY).values()
    assert 1000 <= age < 1060
    assert age + left == pytest.approx(bench.dlq.retention, abs=5)


def test_brakes_are_told_as_they_stand(bench: Workbench) -> None:
    name = bench.source_url.rsplit("/", 1)[-1]
    assert told(metric_names.ALLOWED) == {(name, ""): float("inf")}
    Breaker.objects.filter(target=bench.target).update(state="open", retry_at="2999-01-01T00:00:00Z")
    assert told(metric_names.BREAKER) == {(name, ""): 2}
    assert told(metric_names.ALLOWED) == {(name, ""): 0}


def test_targets_of_one_name_are_told_apart_by_their_arns(bench: Workbench) -> None:
    name, queue = bench.source_url.rsplit("/", 1)[-1], bench.target.arn
    function = f"arn:aws:lambda:eu-west-1:000000000000:function:{name}"
    abroad = f"arn:aws:sqs:ap-south-1:000000000000:{name}"
    for arn, kind in ((function, TargetKind.LAMBDA), (abroad, TargetKind.SQS)):
        target = Target.objects.create(kind=kind, arn=arn, region=arn.split(":")[3], rate=None)
        Source.objects.create(dlq=bench.dlq, arn=arn, target=target)
    places = {one.arn: one.pk for one in Target.objects.all()}
    metrics.add_to_sums(
        {(metric_names.ATTEMPTS.name, places[arn], ""): n for arn, n in ((queue, 2.0), (function, 3.0))}
    )
    Breaker.objects.filter(target__arn=function).update(state="open", retry_at="2999-01-01T00:00:00Z")
    assert told(metric_names.ATTEMPTS) == {(queue,): 2, (function,): 3, (abroad,): 0}
    assert told(metric_names.BREAKER) == {(queue, ""): 0, (function, ""): 2, (abroad, ""): 0}
    assert told(metric_names.UNSETTLED) == {(queue,): 0, (function,): 0, (abroad,): 0}
    series = [(sample.metric.name, sample.labels, sample.part) for sample in collect_metrics.samples(count_lag=0)]
    assert len(series) == len(set(series))


def test_what_is_stopped_is_told(bench: Workbench) -> None:
    assert (told(metric_names.HALTED), told(metric_names.STOPPED)) == ({(): 0}, {(bench.name,): 0})
    stops.stop(None, by="a test", reason="to see it")
    stops.stop(bench.dlq.pk, by="a test", reason="to see it")
    assert (told(metric_names.HALTED), told(metric_names.STOPPED)) == ({(): 1}, {(bench.name,): 1})


def test_turns_are_counted_with_their_seconds_and_the_letters_they_sent(bench: Workbench) -> None:
    _replay(bench, "one", "two")
    name = bench.source_url.rsplit("/", 1)[-1]
    assert told(metric_names.ATTEMPTS) == {(name,): 2}
    assert told(metric_names.CAPTURES)[bench.name, "+Inf"] == 1
    slices = told(metric_names.SLICES)
    assert slices["+Inf",] == 1
    assert 0 < slices["sum",] < 60


def test_counters_begin_with_0_and_turns_that_found_nothing_are_not_counted(bench: Workbench) -> None:
    """A counter that begins with its first event shows no growth for that event."""
    bench.capture()
    bench.replay()
    assert (told(metric_names.CAPTURES), told(metric_names.SLICES)) == ({}, {})
    name = bench.source_url.rsplit("/", 1)[-1]
    assert (told(metric_names.CAPTURE_ERRORS), told(metric_names.SLICE_ERRORS)) == ({(bench.name,): 0}, {(): 0})
    assert (told(metric_names.THROTTLES), told(metric_names.ATTEMPTS)) == ({("sqs",): 0}, {(name,): 0})


def test_a_turn_that_fails_is_counted_as_one(bench: Workbench) -> None:
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(url=f"{bench.dlq_url}-gone")
    with pytest.raises(Exception, match="gone"):
        bench.capture()
    assert told(metric_names.CAPTURE_ERRORS) == {(bench.name,): 1}
    assert told(metric_names.CAPTURES)[bench.name, "+Inf"] == 1


def test_turns_of_all_processes_add_up() -> None:
    for seconds in (0.05, 3.0, 700.0):
        metrics.add_to_sums(
            {(metric_names.SLICES.name, 0, part): n for part, n in metric_names.histogram_parts(seconds).items()}
        )
    assert told(metric_names.SLICES) == {
        ("0.1",): 1, ("0.5",): 1, ("1",): 1, ("2.5",): 1, ("5",): 2, ("10",): 2, ("30",): 2, ("60",): 2, ("150",): 2,
        ("+Inf",): 3, ("sum",): pytest.approx(703.05),
    }  # fmt: skip


def test_every_metric_has_a_name_of_its_own() -> None:
    exposed = [name for metric in METRICS for name in metric.exposed]
    assert len(set(exposed)) == len(exposed)
    in_cloudwatch = [metric.cloudwatch for metric in METRICS if metric.cloudwatch]
    assert len(set(in_cloudwatch)) == len(in_cloudwatch)
