"""Alarms as they are wanted, and what an alarm that is there differs in. Named as CloudWatch names them.

The thresholds of the first two are those that teams know: any message in a dead-letter queue, and an age above five
minutes, three minutes in a row, in the queue itself. The first counts visible and hidden messages together: a capture
hides what it takes, and an alarm on the visible ones alone falls silent when it should ring.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from reprocessing.domain.aws import metric_names
from reprocessing.domain.aws.metric_names import Metric
from reprocessing.domain.runs.forecast import in_words

PREFIX: Final = "redrive"
NOWHERE: Final = "nowhere"  #: the namespace of metrics that nobody tells
_SQS: Final = "AWS/SQS"
_MINUTE, _DAY = 60, 86_400


@dataclass(frozen=True, slots=True)
class Stream:
    """One metric in CloudWatch, and how its values of a period become one."""

    namespace: str
    name: str
    dimensions: tuple[tuple[str, str], ...]
    stat: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """One alarm.

    Attributes:
        of: what it is about: a dlq's name, or nothing.
        means: what is the matter when it rings, and what to do; its description there.
        streams: added up where they are several.
        above: it rings above `threshold`; else below.
        periods: of `period` seconds, in a row.
        missing: what no data means: notBreaching, breaching or missing.
    """

    name: str
    of: str = ""
    means: str
    streams: tuple[Stream, ...]
    threshold: float
    above: bool = True
    period: int = _MINUTE
    periods: int = 1
    missing: str = "notBreaching"

    @property
    def is_of_sqs(self) -> bool:
        """Whether it is on SQS's own metrics, which are where the queue is."""
        return all(one.namespace == _SQS for one in self.streams)

    def request(self, actions: tuple[str, ...] = ()) -> dict[str, Any]:
        """What PutMetricAlarm takes. AWS: PutMetricAlarm."""
        comparison = "GreaterThanThreshold" if self.above else "LessThanThreshold"
        told: dict[str, Any] = {
            "AlarmName": self.name, "AlarmDescription": self.means, "ActionsEnabled": True,
            "AlarmActions": list(actions), "ComparisonOperator": comparison, "Threshold": self.threshold,
            "EvaluationPeriods": self.periods, "TreatMissingData": self.missing,
        }  # fmt: skip
        if len(self.streams) == 1:
            return told | _plain(self.streams[0], self.period)
        return told | {"Metrics": [*_summed(self.streams, self.period)]}


@dataclass(frozen=True, slots=True)
class Missing:
    """There is no alarm of this name."""


@dataclass(frozen=True, slots=True)
class Differs:
    """It is there, and other than wanted: what, as it is, as it is wanted."""

    what: str
    found: Any = field(hash=False)
    wanted: Any = field(hash=False)


Difference: TypeAlias = Missing | Differs


def of_dlq(dlq: str, queue: str, origins: tuple[str, ...], *, namespace: str, retention: float) -> Iterator[Alarm]:
    """The alarms of one dlq.

    Args:
        dlq: its name here.
        queue: its name in SQS.
        origins: names of the queues whose messages die into it.
        namespace: of the service's own metrics.
        retention: seconds for which the dlq keeps a message. CloudWatch has a dead message's age from its death on; a
            standard queue drops it by its whole age (AWS: Setting-up dead-letter queue retention in Amazon SQS).
    """
    sooner = "" if queue.endswith(".fifo") else ", sooner by as long as it lay in its queue before it died"
    yield Alarm(
        name=f"{PREFIX}-{dlq}-messages-present", of=dlq,
        means=f"Messages are in {queue}, visible or hidden. Look at the desk, or run manage.py redrive_status {dlq}.",
        streams=(
            _of_queue("ApproximateNumberOfMessagesVisible", queue),
            _of_queue("ApproximateNumberOfMessagesNotVisible", queue),
        ), threshold=0,
    )  # fmt: skip
    for origin in origins:
        yield Alarm(
            name=f"{PREFIX}-{origin}-age-too-high", of=dlq,
            means=f"The consumers of {origin} are behind, or fail: its oldest message is older than 5 minutes.",
            streams=(_of_queue("ApproximateAgeOfOldestMessage", origin),), threshold=300, periods=3,
        )  # fmt: skip
    yield Alarm(
        name=f"{PREFIX}-{dlq}-messages-expire", of=dlq,
        means=f"The oldest message of {queue} has used up 3/4 of its retention: SQS drops it within "
        f"{in_words(retention / 4)}{sooner}, and what was not captured is lost. Capture: manage.py drain_dlq {dlq}, "
        "a dry run.",
        streams=(_of_queue("ApproximateAgeOfOldestMessage", queue),), threshold=round(retention * 0.75),
    )  # fmt: skip
    ours = (("Dlq", dlq),)
    yield Alarm(
        name=f"{PREFIX}-{dlq}-letters-expire", of=dlq,
        means=f"SQS drops the first copy of an unfinished letter of {dlq} within a day: only PostgreSQL has it then.",
        streams=(_own(metric_names.EXPIRY, ours, namespace, "Minimum"),), threshold=_DAY, above=False,
    )  # fmt: skip
    yield Alarm(
        name=f"{PREFIX}-{dlq}-parked", of=dlq,
        means=f"Letters of {dlq} were parked: they wait for a person, at the desk.",
        streams=(_own(metric_names.CAME_TO["parked"], ours, namespace, "Sum"),), threshold=0, period=5 * _MINUTE,
    )  # fmt: skip
    yield Alarm(
        name=f"{PREFIX}-{dlq}-redrive-fails", of=dlq,
        means=f"Letters of {dlq} fail again: its consumer is not mended, or not for these.",
        streams=(_own(metric_names.CAME_TO["failed"], ours, namespace, "Sum"),), threshold=20, period=5 * _MINUTE,
    )  # fmt: skip
    yield Alarm(
        name=f"{PREFIX}-{dlq}-capture-trouble", of=dlq,
        means=f"Captures of {dlq} fail, or AWS's own redrive of it: manage.py redrive_status {dlq} says why.",
        streams=(_own(metric_names.TROUBLE, ours, namespace, "Minimum"),), threshold=0, periods=5,
    )  # fmt: skip
    yield Alarm(
        name=f"{PREFIX}-{dlq}-letters-get-old", of=dlq,
        means=f"An unfinished letter of {dlq} was sent more than a day ago: nothing of it moves. Run "
        f"manage.py redrive_status {dlq}.",
        streams=(_own(metric_names.OLDEST, ours, namespace, "Maximum"),), threshold=_DAY, period=5 * _MINUTE, periods=3,
    )  # fmt: skip


def of_target(target: str, *, namespace: str) -> Iterator[Alarm]:
    """The alarms of one target, by its name."""
    yield Alarm(
        name=f"{PREFIX}-{target}-breaker-open", means=f"The breaker of {target} is open: what is sent there fails.",
        streams=(_own(metric_names.BREAKER, (("Target", target),), namespace, "Maximum"),), threshold=1, periods=3,
    )  # fmt: skip


def of_service(*, namespace: str) -> Iterator[Alarm]:
    """The alarms of the service itself. The first is its dead man's switch: whoever is dead tells nothing."""
    yield Alarm(
        name=f"{PREFIX}-consumes-nothing",
        means="No worker has taken a task for five minutes, or none tells: beat, the workers, PostgreSQL or Redis is "
        "down. Run manage.py redrive_status, and read the runbook.",
        streams=(_own(metric_names.CONSUMED, (("Queue", "redrive-control"),), namespace, "Maximum"),), threshold=300,
        periods=3, missing="breaching",
    )  # fmt: skip
    yield Alarm(
        name=f"{PREFIX}-everything-stopped",
        means="Everything has been stopped for an hour. Is it forgotten? Run "
        "manage.py resume_redrive --all --reason WHY --confirm.",
        streams=(_own(metric_names.HALTED, (), namespace, "Minimum"),), threshold=0, period=5 * _MINUTE, periods=12,
    )  # fmt: skip
    yield Alarm(
        name=f"{PREFIX}-throttled", means="AWS throttles the service: its quota, or a KMS key's, is used up.",
        streams=(_own(metric_names.THROTTLES, (("Service", "sqs"),), namespace, "Sum"),),
        threshold=100, period=5 * _MINUTE,
    )  # fmt: skip


def differences(
    wanted: Alarm, found: Mapping[str, Any] | None, actions: tuple[str, ...] = ()
) -> tuple[Difference, ...]:
    """What an alarm that is there differs in; without `actions` it keeps those that it has.

    Args:
        wanted: the alarm.
        found: of DescribeAlarms; None: there is none.
        actions: ARNs of what it is to tell.
    """
    if found is None:
        return (Missing(),)
    told = wanted.request(actions)
    if not actions:
        del told["AlarmActions"]
    of_one, of_sum = {"Namespace", "MetricName", "Dimensions", "Statistic", "Period"}, {"Metrics"}
    absent = dict.fromkeys(of_sum if len(wanted.streams) == 1 else of_one)
    return tuple(
        Differs(name, found.get(name), value)
        for name, value in (told | absent).items()
        if not _same(found.get(name), value)
    )


def dimension(label: str) -> str:
    """CloudWatch's name of a label's dimension."""
    return "".join(part.capitalize() for part in label.split("_"))


def _same(found: Any, wanted: Any) -> bool:  # noqa: ANN401  # of whatever shape CloudWatch has it
    return bool(_plainly(found) == _plainly(wanted))


def _plainly(value: Any) -> Any:  # noqa: ANN401
    """Without order where there is none, and nothing for what is empty."""
    if isinstance(value, Mapping):
        return {name: _plainly(one) for name, one in value.items() if one not in (None, [], "")}
    if isinstance(value, list | tuple):
        return sorted((_plainly(one) for one in value), key=repr) or None
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _of_queue(name: str, queue: str) -> Stream:
    return Stream(_SQS, name, (("QueueName", queue),), "Maximum")


def _own(one: Metric, dimensions: tuple[tuple[str, str], ...], namespace: str, stat: str) -> Stream:
    if not one.cloudwatch:
        raise ValueError(f"{one.name} is not told to CloudWatch.")
    return Stream(namespace, one.cloudwatch, dimensions, stat)


def _plain(one: Stream, period: int) -> dict[str, Any]:
    return {
        "Namespace": one.namespace, "MetricName": one.name, "Dimensions": _dimensions(one), "Statistic": one.stat,
        "Period": period,
    }  # fmt: skip


def _summed(streams: tuple[Stream, ...], period: int) -> Iterator[dict[str, Any]]:
    for number, one in enumerate(streams):
        metric_ = {"Namespace": one.namespace, "MetricName": one.name, "Dimensions": _dimensions(one)}
        stat = {"Metric": metric_, "Period": period, "Stat": one.stat}
        yield {"Id": f"m{number}", "MetricStat": stat, "ReturnData": False}
    expression = " + ".join(f"FILL(m{number}, 0)" for number in range(len(streams)))
    yield {"Id": "sum", "Expression": expression, "Label": "visible and hidden", "ReturnData": True}


def _dimensions(one: Stream) -> list[dict[str, str]]:
    return [{"Name": name, "Value": value} for name, value in one.dimensions]
