"""The Prometheus endpoint /metrics: each web process returns all metrics of the whole service.

A request needs the token of REDRIVE_METRICS_TOKEN (`authorization` in Prometheus's configuration). If the variable is
not set, the endpoint returns 404. Metrics contain numbers, and names of DLQs and targets, but no message data.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import assert_never

from django.conf import settings
from django.db import Error as DatabaseError
from django.http import HttpRequest, HttpResponse, HttpResponseNotFound
from django.views.decorators.http import require_safe
from prometheus_client.core import CollectorRegistry, CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from reprocessing import conf
from reprocessing.domain.aws.metric_names import Kind, Metric, Sample
from reprocessing.pipeline.aws import collect_metrics


class _Samples(Collector):
    """Passes samples to Prometheus's client library, grouped by metric. Samples of the same metric must be adjacent."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._samples = samples

    def collect(self) -> Iterator[Family]:
        for metric, found in groupby(self._samples, key=lambda sample: sample.metric):
            yield _family(metric, list(found))


@require_safe
def metrics_page(request: HttpRequest) -> HttpResponse:
    """Return the metrics as text, or status 404 (no token is set), 401 (wrong token) or 503 (PostgreSQL is down)."""
    token = settings.METRICS_TOKEN
    if not token:
        return HttpResponseNotFound("There are no metrics here: REDRIVE_METRICS_TOKEN is not set.\n", "text/plain")
    scheme, _, given = request.headers.get("Authorization", "").strip().partition(" ")
    # RFC 9110: the name of an authentication scheme is case-insensitive.
    if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), token.encode()):
        hint = "Send the token of REDRIVE_METRICS_TOKEN: Authorization: Bearer TOKEN.\n"
        return HttpResponse(hint, "text/plain", 401, headers={"WWW-Authenticate": "Bearer"})
    try:
        samples = collect_metrics.samples(count_lag=conf.current().count_lag.total_seconds())
    except DatabaseError:
        return HttpResponse("PostgreSQL does not answer.\n", "text/plain", 503)
    registry = CollectorRegistry()
    registry.register(_Samples(samples))
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(encode(registry), content_type, headers={"Cache-Control": "no-store"})


def _family(metric: Metric, samples: list[Sample]) -> Family:
    match metric.kind:
        case Kind.HISTOGRAM:
            return _histogram(metric, samples)
        case Kind.COUNTER:
            return _plain(CounterMetricFamily(metric.name, metric.means, labels=metric.labels), samples)
        case Kind.GAUGE:
            return _plain(GaugeMetricFamily(metric.name, metric.means, labels=metric.labels), samples)
        case _:
            assert_never(metric.kind)


def _plain(family: CounterMetricFamily | GaugeMetricFamily, samples: Iterable[Sample]) -> Family:
    for sample in samples:
        family.add_metric(sample.labels, sample.value)
    return family


def _histogram(metric: Metric, samples: list[Sample]) -> HistogramMetricFamily:
    family = HistogramMetricFamily(metric.name, metric.means, labels=metric.labels)
    for labels, found in groupby(samples, key=lambda sample: sample.labels):
        parts = {sample.part: sample.value for sample in found}
        total = parts.pop("sum", 0.0)
        family.add_metric(labels, sorted(parts.items(), key=lambda item: float(item[0])), sum_value=total)
    return family
