"""Measure the service: every sample of every metric, from what Postgres keeps, in a handful of statements.

All processes write to the same tables, so that one of them can tell of all: no matter how many workers there are, where
they run, and which of them have died. What is not known gives no sample; nothing is told as 0 that was never asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from reprocessing.domain.aws import metric_names
from reprocessing.domain.aws.metric_names import Metric, Sample
from reprocessing.domain.lifecycle import OPEN, LetterState
from reprocessing.models import DeadLetterQueue
from reprocessing.models.safety import BreakerState
from reprocessing.store.aws import metrics
from reprocessing.store.aws.metrics import Sum
from reprocessing.store.dlqs import dlq_status
from reprocessing.store.dlqs.dlq_status import Watch
from reprocessing.store.maintenance import counters
from reprocessing.store.maintenance.counters import Kind
from reprocessing.store.ordering import lanes
from reprocessing.store.outcomes import pending_outcomes
from reprocessing.store.safety import breaker_status, stops
from reprocessing.store.safety.breaker_status import Bearing
from reprocessing.store.targets import targets

Names = Mapping[int, str]

_STATES: Final = {BreakerState.CLOSED: 0.0, BreakerState.HALF_OPEN: 1.0, BreakerState.OPEN: 2.0}
_UNFINISHED: Final = frozenset({LetterState.CAPTURED.value, *(state.value for state in OPEN)})
#: Metrics whose sums are kept by dlq, by target, and by nothing but their part.
_BY_DLQ: Final = {one.name: one for one in (metric_names.CAPTURES, metric_names.CAPTURE_ERRORS)}
_BY_TARGET: Final = {metric_names.ATTEMPTS.name: metric_names.ATTEMPTS}
_BY_PART: Final = {metric_names.THROTTLES.name: metric_names.THROTTLES}
_PLAIN: Final = {one.name: one for one in (metric_names.SLICES, metric_names.SLICE_ERRORS)}


def samples(*, count_lag: float) -> list[Sample]:
    """Every sample, as of now; those of one metric beside each other.

    Args:
        count_lag: seconds by which SQS's counts may lag behind.
    """
    watches = dlq_status.watches(copies=False)
    dlqs, called = {one.id: one.name for one in watches}, targets.names()
    found = [
        *_kept(dlqs, called),
        *_of_dlqs(watches),
        *_of_letters(counters.kinds(), dlqs),
        *_of_times(dlqs),
        *_of_breakers(breaker_status.bearings(called), called),
        *_of_outcomes(count_lag, called),
        *(Sample(metric_names.CONSUMED, (one.queue,), max(0.0, one.age)) for one in metrics.beats()),
        Sample(metric_names.HALTED, (), float(stops.stopped(None) is not None)),
    ]
    order = {one.name: place for place, one in enumerate(metric_names.METRICS)}
    return sorted(found, key=lambda one: (order[one.metric.name], one.labels))


def _kept(dlqs: Names, called: Names) -> list[Sample]:
    """What is summed up; what never happened as 0, so that the first time it does is seen as growth."""
    never: dict[tuple[Metric, tuple[str, ...], str], float] = {
        (one, (name,), ""): 0.0
        for one in (*metric_names.CAME_TO.values(), metric_names.CAPTURE_ERRORS)
        for name in dlqs.values()
    }
    never |= {(metric_names.ATTEMPTS, (name,), ""): 0.0 for name in called.values()}
    never |= {(metric_names.SLICE_ERRORS, (), ""): 0.0, (metric_names.THROTTLES, ("sqs",), ""): 0.0}
    found = (one for each in metrics.sums() if (one := sample_of(each, dlqs, called)) is not None)
    sums = never | {(one.metric, one.labels, one.part): one.value for one in found}
    return [Sample(*key[:2], value, key[2]) for key, value in sums.items()]


def names() -> tuple[Names, Names]:
    """The names of the dlqs and of the targets, by their ids."""
    return dict(DeadLetterQueue.objects.values_list("pk", "name")), targets.names()


def sample_of(one: Sum, dlqs: Names, called: Names) -> Sample | None:
    """The sample of a sum that is kept; None of dlqs and targets that are gone."""
    if one.name == metrics.CAME_TO and one.place in dlqs and one.part in metric_names.CAME_TO:
        return Sample(metric_names.CAME_TO[one.part], (dlqs[one.place],), one.value)
    if one.name in _BY_DLQ and one.place in dlqs:
        return Sample(_BY_DLQ[one.name], (dlqs[one.place],), one.value, one.part)
    if one.name in _BY_TARGET and one.place in called:
        return Sample(_BY_TARGET[one.name], (called[one.place],), one.value)
    if one.name in _BY_PART:
        return Sample(_BY_PART[one.name], (one.part,), one.value)
    return Sample(_PLAIN[one.name], (), one.value, one.part) if one.name in _PLAIN else None


def _of_dlqs(watches: Collection[Watch]) -> Iterator[Sample]:
    for one in watches:
        named = (one.name,)
        if one.depth_visible is not None:
            yield Sample(metric_names.VISIBLE, named, one.depth_visible)
        if one.depth_in_flight is not None:
            yield Sample(metric_names.IN_FLIGHT, named, one.depth_in_flight)
        yield Sample(metric_names.STOPPED, named, float(one.stopped_at is not None))
        yield Sample(metric_names.TROUBLE, named, float(bool(one.trouble)))


def _of_letters(kinds: Collection[Kind], dlqs: Names) -> Iterator[Sample]:
    """By state and reason, and the two sums that alarms are set on: 0 where a dlq has none."""
    for key in dict.fromkeys((one.dlq_id, one.state, one.reason) for one in kinds):
        n = sum(one.n for one in kinds if (one.dlq_id, one.state, one.reason) == key)
        if key[0] in dlqs:
            yield Sample(metric_names.LETTERS, (dlqs[key[0]], key[1], key[2]), n)
    for dlq, name in dlqs.items():
        its = [one for one in kinds if one.dlq_id == dlq]
        yield Sample(metric_names.UNFINISHED, (name,), sum(one.n for one in its if one.state in _UNFINISHED))
        yield Sample(metric_names.PARKED, (name,), sum(one.n for one in its if one.state == LetterState.PARKED))


def _of_times(dlqs: Names) -> Iterator[Sample]:
    """Ages and deadlines: none of a dlq that has nothing unfinished."""
    now = lanes.clock()
    oldest: dict[int, float] = {}
    for one in dlq_status.oldest():
        if one.state in _UNFINISHED:
            oldest[one.dlq_id] = max(oldest.get(one.dlq_id, 0.0), (now - one.died_at).total_seconds())
    yield from (Sample(metric_names.OLDEST, (dlqs[dlq],), age) for dlq, age in oldest.items() if dlq in dlqs)
    for dlq, at in dlq_status.expiries().items():
        if dlq in dlqs:
            yield Sample(metric_names.EXPIRY, (dlqs[dlq],), (at - now).total_seconds())


def _of_breakers(brakes: Collection[Bearing], called: Names) -> Iterator[Sample]:
    for one in brakes:
        labels = (called[one.target_id], one.rate_class or "")
        yield Sample(metric_names.BREAKER, labels, _STATES[BreakerState(one.state)])
        yield Sample(metric_names.ALLOWED, labels, float("inf") if one.allowed is None else one.allowed)


def _of_outcomes(count_lag: float, called: Names) -> Iterator[Sample]:
    """A target that several origins have is told of once."""
    open_at = {one.target_id: one.unsettled for one in pending_outcomes.of_targets(count_lag=count_lag)}
    for target, n in open_at.items():
        if target in called:
            yield Sample(metric_names.UNSETTLED, (called[target],), n)
