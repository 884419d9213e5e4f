"""Define the CloudWatch alarms to create, and compare existing alarms with them.

The alarm `messages-present` counts visible and in-flight messages together. A capture hides the messages that it
receives, so an alarm on visible messages alone would end during a capture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from reprocessing.domain.aws import metric_names
from reprocessing.domain.aws.metric_names import Metric
from reprocessing.domain.runs.forecast import duration_in_words

PREFIX: Final = "redrive"
UNPUBLISHED_NAMESPACE: Final = "nowhere"  #: the namespace in alarms if the service publishes no metrics
_SQS: Final = "AWS/SQS"
_MINUTE, _DAY = 60, 86_400


@dataclass(frozen=True, slots=True)
class AlarmMetric:
    """One CloudWatch metric of an alarm. `stat`: how the values of a period become one value, such as Maximum."""

    namespace: str
    name: str
    dimensions: tuple[tuple[str, str], ...]
    stat: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """One CloudWatch alarm as it should be.

    Attributes:
        dlq: the name of the DLQ that the alarm is about; empty: the alarm is not about a DLQ.
        description: text that says what is wrong, and what to do.
        metrics: the metrics; if there are several, their sum is compared with the threshold.
        above: the alarm fires above the threshold; if false, below the threshold.
        period: seconds of one period. The alarm fires after `periods` periods in a row.
        missing: what a period without data counts as (CloudWatch's TreatMissingData), such as notBreaching.
    """

    name: str
    dlq: str = ""
    description: str
    metrics: tuple[AlarmMetric, ...]
    threshold: float
    above: bool = True
    period: int = _MINUTE
    periods: int = 1
    missing: str = "notBreaching"

    @property
    def is_on_sqs_metrics(self) -> bool:
        """Return whether the alarm uses only SQS's own metrics, which CloudWatch has in the queue's region."""
        return all(metric.namespace == _SQS for metric in self.metrics)

    def request(self, actions: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the parameters of CloudWatch's call PutMetricAlarm. `actions`: ARNs that the alarm notifies."""
        comparison = "GreaterThanThreshold" if self.above else "LessThanThreshold"
        parameters: dict[str, Any] = {
            "AlarmName": self.name, "AlarmDescription": self.description, "ActionsEnabled": True,
            "AlarmActions": list(actions), "ComparisonOperator": comparison, "Threshold": self.threshold,
            "EvaluationPeriods": self.periods, "TreatMissingData": self.missing,
        }  # fmt: skip
        if len(self.metrics) == 1:
            return parameters | _metric(self.metrics[0]) | {"Statistic": self.metrics[0].stat, "Period": self.period}
        return parameters | {"Metrics": [*_summed(self.metrics, self.period)]}


@dataclass(frozen=True, slots=True)
class AlarmMissing:
    """CloudWatch has no alarm with this name."""


@dataclass(frozen=True, slots=True)
class ParameterDiffers:
    """A parameter (`what`) of an existing alarm has another value than wanted."""

    what: str
    found: Any = field(hash=False)
    wanted: Any = field(hash=False)


Difference: TypeAlias = AlarmMissing | ParameterDiffers


def alarms_of_dlq(
    dlq: str, queue: str, sources: tuple[str, ...], *, namespace: str, retention: float
) -> Iterator[Alarm]:
    """Yield the alarms of one DLQ, such as "messages are present" and "the oldest message expires soon".

    Args:
        dlq: the DLQ's name in this service.
        queue: the DLQ's name in SQS.
        sources: names of the source queues.
        namespace: the CloudWatch namespace of the service's own metrics.
        retention: seconds for which the DLQ keeps a message. In a standard DLQ, retention begins when a message is
            first sent. CloudWatch measures a message's age from its arrival in the DLQ, which is later.
    """
    sooner = "" if queue.endswith(".fifo") else ", or sooner, because its retention began when it was first sent"
    yield Alarm(
        name=f"{PREFIX}-{dlq}-messages-present", dlq=dlq,
        description=f"Messages are in {queue}, visible or in flight. Run manage.py redrive_status {dlq}.",
        metrics=(
            _of_queue("ApproximateNumberOfMessagesVisible", queue),
            _of_queue("ApproximateNumberOfMessagesNotVisible", queue),
        ), threshold=0,
    )  # fmt: skip
    for source in sources:
        yield Alarm(
            name=f"{PREFIX}-{source}-age-too-high", dlq=dlq,
            description=f"The oldest message of {source} is older than 5 minutes: check whether its consumers fail.",
            metrics=(_of_queue("ApproximateAgeOfOldestMessage", source),), threshold=300, periods=3,
        )  # fmt: skip
    yield Alarm(
        name=f"{PREFIX}-{dlq}-messages-expire", dlq=dlq,
        description=f"The oldest message of {queue} has used up 3/4 of its retention: SQS deletes it within "
        f"{duration_in_words(retention / 4)}{sooner}. A message that is not captured is then lost. Run: manage.py "
        f"drain_dlq {dlq}, a dry run, which captures.",
        metrics=(_of_queue("ApproximateAgeOfOldestMessage", queue),), threshold=round(retention * 0.75),
    )  # fmt: skip
    ours = (("Dlq", dlq),)
    yield Alarm(
        name=f"{PREFIX}-{dlq}-letters-expire", dlq=dlq,
        description=f"Within a day, SQS deletes an unfinished message from the DLQ of {dlq}. "
        f"PostgreSQL keeps the message. Run manage.py redrive_status {dlq}.",
        metrics=(_own(metric_names.EXPIRY, ours, namespace, "Minimum"),), threshold=_DAY, above=False,
    )  # fmt: skip
    yield Alarm(
        name=f"{PREFIX}-{dlq}-parked", dlq=dlq,
        description=f"Messages of {dlq} were parked: review them in the parking lot of the admin.",
        metrics=(_own(metric_names.LETTER_COUNTERS["parked"], ours, namespace, "Sum"),), threshold=0,
        period=5 * _MINUTE,
    )  # fmt: skip
    yield Alarm(
        name=f"{PREFIX}-{dlq}-redrive-fails", dlq=dlq,
        description=f"Messages of {dlq} fail again after they were redriven: check the consumer's fix.",
        metrics=(_own(metric_names.LETTER_COUNTERS["failed"], ours, namespace, "Sum"),), threshold=20,
        period=5 * _MINUTE,
    )  # fmt: skip
    yield Alarm(
        name=f"{PREFIX}-{dlq}-last-error", dlq=dlq,
        description=f"A capture or AWS's native redrive of {dlq} fails. Run manage.py redrive_status {dlq}.",
        metrics=(_own(metric_names.LAST_ERROR, ours, namespace, "Minimum"),), threshold=0, periods=5,
    )  # fmt: skip
    yield Alarm(
        name=f"{PREFIX}-{dlq}-letters-get-old", dlq=dlq,
        description=f"An unfinished message of {dlq} was sent more than a day ago. Run manage.py redrive_status {dlq}.",
        metrics=(_own(metric_names.OLDEST, ours, namespace, "Maximum"),), threshold=_DAY, period=5 * _MINUTE, periods=3,
    )  # fmt: skip


def alarms_of_target(target: str, *, namespace: str) -> Iterator[Alarm]:
    """Yield the alarms of one target, such as "its circuit breaker is open".

    `namespace`: the CloudWatch namespace of the service's own metrics.
    """
    yield Alarm(
        name=f"{PREFIX}-{target}-breaker-open",
        description=f"The circuit breaker of {target} is open, because messages fail there. "
        f"Check {target} and its consumer.",
        metrics=(_own(metric_names.BREAKER, (("Target", target),), namespace, "Maximum"),), threshold=1, periods=3,
    )  # fmt: skip


def alarms_of_service(*, namespace: str) -> Iterator[Alarm]:
    """Yield the alarms of the whole service.

    The alarm `consumes-nothing` also fires when CloudWatch gets no data: a stopped service publishes no metrics.
    `namespace`: the CloudWatch namespace of the service's own metrics.
    """
    yield Alarm(
        name=f"{PREFIX}-consumes-nothing",
        description="No worker has consumed a task for 5 minutes, or no metrics arrive: beat, the workers, "
        "PostgreSQL or Redis is down. Run manage.py redrive_status, and follow the runbook.",
        metrics=(_own(metric_names.CONSUMED, (("Queue", "redrive-control"),), namespace, "Maximum"),), threshold=300,
        periods=3, missing="breaching",
    )  # fmt: skip
    yield Alarm(
        name=f"{PREFIX}-everything-stopped",
        description="Everything has been stopped for an hour. "
        "To resume: manage.py resume_redrive --all --reason WHY --confirm.",
        metrics=(_own(metric_names.HALTED, (), namespace, "Minimum"),), threshold=0, period=5 * _MINUTE, periods=12,
    )  # fmt: skip
    yield Alarm(
        name=f"{PREFIX}-throttled",
        description="AWS throttles requests to SQS: a quota of SQS or KMS is used up. "
        "Lower the rates, or raise the quota.",
        metrics=(_own(metric_names.THROTTLES, (("Service", "sqs"),), namespace, "Sum"),),
        threshold=100, period=5 * _MINUTE,
    )  # fmt: skip


def differences(
    wanted: Alarm, found: Mapping[str, Any] | None, actions: tuple[str, ...] = ()
) -> tuple[Difference, ...]:
    """Return how an existing alarm differs from the wanted alarm; empty: it does not differ.

    `found`: the alarm as DescribeAlarms returned it; None: it does not exist. `actions`: the ARNs that the alarm should
    notify; empty: the alarm keeps its current actions.
    """
    if found is None:
        return (AlarmMissing(),)
    parameters = wanted.request(actions)
    if not actions:
        del parameters["AlarmActions"]
    of_one, of_sum = {"Namespace", "MetricName", "Dimensions", "Statistic", "Period"}, {"Metrics"}
    absent = dict.fromkeys(of_sum if len(wanted.metrics) == 1 else of_one)
    return tuple(
        ParameterDiffers(name, found.get(name), value)
        for name, value in (parameters | absent).items()
        if _plainly(found.get(name)) != _plainly(value)
    )


def dimension_name(label: str) -> str:
    """Return the CloudWatch dimension's name for a Prometheus label, such as "Dlq" for "dlq"."""
    return "".join(part.capitalize() for part in label.split("_"))


def _plainly(value: Any) -> Any:  # noqa: ANN401  # CloudWatch's values
    """Return a parameter's value in a form for comparison: lists are sorted, empty parts are removed."""
    if isinstance(value, Mapping):
        return {name: _plainly(member) for name, member in value.items() if member not in (None, [], "")}
    if isinstance(value, list | tuple):
        return sorted((_plainly(member) for member in value), key=repr) or None
    return value


def _of_queue(name: str, queue: str) -> AlarmMetric:
    return AlarmMetric(_SQS, name, (("QueueName", queue),), "Maximum")


def _own(metric: Metric, dimensions: tuple[tuple[str, str], ...], namespace: str, stat: str) -> AlarmMetric:
    if not metric.cloudwatch:
        raise ValueError(f"{metric.name} is not published to CloudWatch.")
    return AlarmMetric(namespace, metric.cloudwatch, dimensions, stat)


def _metric(stream: AlarmMetric) -> dict[str, Any]:
    dimensions = [{"Name": name, "Value": value} for name, value in stream.dimensions]
    return {"Namespace": stream.namespace, "MetricName": stream.name, "Dimensions": dimensions}


def _summed(streams: tuple[AlarmMetric, ...], period: int) -> Iterator[dict[str, Any]]:
    for number, stream in enumerate(streams):
        stat = {"Metric": _metric(stream), "Period": period, "Stat": stream.stat}
        yield {"Id": f"m{number}", "MetricStat": stat, "ReturnData": False}
    expression = " + ".join(f"FILL(m{number}, 0)" for number in range(len(streams)))
    yield {"Id": "sum", "Expression": expression, "Label": "visible and in flight", "ReturnData": True}
