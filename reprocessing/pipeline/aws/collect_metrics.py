"""Read the metrics of all processes from PostgreSQL, as samples. A sample is a metric, its labels and a value.

If a value is not known, its sample is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from reprocessing.domain.aws import metric_names
from reprocessing.domain.aws.metric_names import Metric, Sample
from reprocessing.domain.lifecycle import OPEN_STATES, LetterState
from reprocessing.models import DeadLetterQueue
from reprocessing.models.safety import BreakerState
from reprocessing.store.aws import metrics
from reprocessing.store.aws.metrics import MetricSum
from reprocessing.store.dlqs import dlq_status
from reprocessing.store.dlqs.dlq_status import DlqStatus
from reprocessing.store.maintenance import counters
from reprocessing.store.maintenance.counters import CountByState
from reprocessing.store.ordering import lanes
from reprocessing.store.outcomes import pending_outcomes
from reprocessing.store.safety import breaker_status, stops
from reprocessing.store.safety.breaker_status import BreakerStatus
from reprocessing.store.targets import targets

Names = Mapping[int, str]

_STATES: Final = {BreakerState.CLOSED: 0.0, BreakerState.HALF_OPEN: 1.0, BreakerState.OPEN: 2.0}
_UNFINISHED: Final = frozenset({LetterState.CAPTURED.value, *(state.value for state in OPEN_STATES)})
_BY_DLQ: Final = {metric.name: metric for metric in (metric_names.CAPTURES, metric_names.CAPTURE_ERRORS)}
_OF_SERVICE: Final = {metric.name: metric for metric in (metric_names.SLICES, metric_names.SLICE_ERRORS)}


def samples(*, count_lag: float) -> list[Sample]:
    """Return the current samples of all metrics, sorted by metric.

    `count_lag`: the longest time (s) after which SQS's message counts show a change.
    """
    watches = dlq_status.dlq_statuses(copies=False)
    dlqs, called = {watch.id: watch.name for watch in watches}, targets.names_in_metrics()
    found = [
        *_kept(dlqs, called),
        *_of_dlqs(watches),
        *_of_letters(counters.counts_by_state(), dlqs),
        *_of_times(dlqs),
        *_of_breakers(breaker_status.breaker_statuses(called), called),
        *_of_outcomes(count_lag, called),
        *(Sample(metric_names.CONSUMED, (beat.queue,), max(0.0, beat.age)) for beat in metrics.heartbeats()),
        Sample(metric_names.HALTED, (), float(stops.stop_of(None) is not None)),
    ]
    order = {metric.name: place for place, metric in enumerate(metric_names.METRICS)}
    return sorted(found, key=lambda sample: (order[sample.metric.name], sample.labels))


def _kept(dlqs: Names, called: Names) -> list[Sample]:
    """Return a sample of every counter, with the value 0 if nothing was counted yet.

    Without these zeros, Prometheus would not see the growth from 0 to the first counted event.
    """
    by_dlq = (*metric_names.LETTER_COUNTERS.values(), metric_names.CAPTURE_ERRORS)
    never: dict[tuple[Metric, tuple[str, ...], str], float] = {
        (metric, (name,), ""): 0.0 for metric in by_dlq for name in dlqs.values()
    }
    never |= {(metric_names.ATTEMPTS, (name,), ""): 0.0 for name in called.values()}
    never |= {(metric_names.SLICE_ERRORS, (), ""): 0.0, (metric_names.THROTTLES, ("sqs",), ""): 0.0}
    found = (sample for total in metrics.current_sums() if (sample := sample_of(total, dlqs, called)) is not None)
    sums = never | {(sample.metric, sample.labels, sample.part): sample.value for sample in found}
    return [Sample(*key[:2], value, key[2]) for key, value in sums.items()]


def dlq_and_target_names() -> tuple[Names, Names]:
    """Return two mappings, from DLQ id to the DLQ's name and from target id to the target's name."""
    return dict(DeadLetterQueue.objects.values_list("pk", "name")), targets.names_in_metrics()


def sample_of(total: MetricSum, dlqs: Names, called: Names) -> Sample | None:
    """Return the sample of a counter that is stored in PostgreSQL; None if its DLQ or target no longer exists."""
    if total.name == metrics.LETTER_EVENTS and total.place in dlqs and total.part in metric_names.LETTER_COUNTERS:
        return Sample(metric_names.LETTER_COUNTERS[total.part], (dlqs[total.place],), total.value)
    if total.name in _BY_DLQ and total.place in dlqs:
        return Sample(_BY_DLQ[total.name], (dlqs[total.place],), total.value, total.part)
    if total.name == metric_names.ATTEMPTS.name and total.place in called:
        return Sample(metric_names.ATTEMPTS, (called[total.place],), total.value)
    if total.name == metric_names.THROTTLES.name:
        return Sample(metric_names.THROTTLES, (total.part,), total.value)
    return Sample(_OF_SERVICE[total.name], (), total.value, total.part) if total.name in _OF_SERVICE else None


def _of_dlqs(watches: Collection[DlqStatus]) -> Iterator[Sample]:
    for watch in watches:
        named = (watch.name,)
        if watch.depth_visible is not None:
            yield Sample(metric_names.VISIBLE, named, watch.depth_visible)
        if watch.depth_in_flight is not None:
            yield Sample(metric_names.IN_FLIGHT, named, watch.depth_in_flight)
        yield Sample(metric_names.STOPPED, named, float(watch.stopped_at is not None))
        yield Sample(metric_names.LAST_ERROR, named, float(bool(watch.last_error)))


def _of_letters(kinds: Collection[CountByState], dlqs: Names) -> Iterator[Sample]:
    """Yield, for each DLQ, how many letters are in each state, and how many are parked for each reason."""
    counts = Counter[tuple[int, str, str]]()
    for kind in kinds:
        counts[kind.dlq_id, kind.state, kind.reason] += kind.n
    for (dlq, state, reason), n in counts.items():
        if dlq in dlqs:
            yield Sample(metric_names.LETTERS, (dlqs[dlq], state, reason), n)
    for dlq, name in dlqs.items():
        of_dlq = [kind for kind in kinds if kind.dlq_id == dlq]
        yield Sample(metric_names.UNFINISHED, (name,), sum(kind.n for kind in of_dlq if kind.state in _UNFINISHED))
        yield Sample(metric_names.PARKED, (name,), sum(kind.n for kind in of_dlq if kind.state == LetterState.PARKED))


def _of_times(dlqs: Names) -> Iterator[Sample]:
    """Yield, for each DLQ, the age of its oldest unfinished letter, and the time until SQS deletes one of its messages.

    Both are in seconds. SQS deletes messages at the end of their retention.
    """
    now = lanes.database_now()
    oldest: dict[int, float] = {}
    for letter in dlq_status.oldest_letters():
        if letter.state in _UNFINISHED:
            age = (now - letter.first_sent_at).total_seconds()
            oldest[letter.dlq_id] = max(oldest.get(letter.dlq_id, 0.0), age)
    yield from (Sample(metric_names.OLDEST, (dlqs[dlq],), age) for dlq, age in oldest.items() if dlq in dlqs)
    for dlq, at in dlq_status.expiries().items():
        if dlq in dlqs:
            yield Sample(metric_names.EXPIRY, (dlqs[dlq],), (at - now).total_seconds())


def _of_breakers(breakers: Collection[BreakerStatus], called: Names) -> Iterator[Sample]:
    for brake in breakers:
        labels = (called[brake.target_id], brake.rate_class or "")
        yield Sample(metric_names.BREAKER, labels, _STATES[BreakerState(brake.state)])
        yield Sample(metric_names.ALLOWED, labels, float("inf") if brake.allowed is None else brake.allowed)


def _of_outcomes(count_lag: float, called: Names) -> Iterator[Sample]:
    """Yield a sample for each target: how many letters sent to it await their outcome."""
    pending = {target.target_id: target.unsettled for target in pending_outcomes.of_targets(count_lag=count_lag)}
    for target, n in pending.items():
        if target in called:
            yield Sample(metric_names.UNSETTLED, (called[target],), n)
