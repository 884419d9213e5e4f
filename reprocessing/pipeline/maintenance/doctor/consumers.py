"""Check the consumers of source queues by their CloudWatch metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import assert_never

from reprocessing.domain.aws.consumer_health import (
    ConsumerHealth,
    FailingConsumers,
    FallingBehind,
    KeepingUp,
    SlowOrCrashing,
    TooFewValues,
    judge_consumers,
)
from reprocessing.domain.errors import CloudWatchUnreachable
from reprocessing.domain.maintenance.findings import (
    DoctorFinding,
    error_finding,
    ok_finding,
    unknown_finding,
    warning_finding,
)
from reprocessing.domain.runs.forecast import duration_in_words
from reprocessing.domain.targets.target_kind import QUEUE_KINDS
from reprocessing.gateways.aws_services.cloudwatch_get import series
from reprocessing.gateways.sqs import QueueAddress
from reprocessing.models import DeadLetterQueue, Target


def findings(rows: Sequence[DeadLetterQueue], now: datetime) -> Iterator[DoctorFinding]:
    """Yield findings about the consumers of these DLQs' source queues.

    If CloudWatch refuses or does not answer, a finding says that the state of the consumers is unknown.
    """
    found = Target.objects.filter(sources__dlq__in=rows, sources__removed_at=None, kind__in=QUEUE_KINDS)
    places: dict[tuple[str, str], list[QueueAddress]] = {}
    for target in found.distinct().order_by("arn"):
        address = QueueAddress(target.url, target.region, target.role_arn)
        places.setdefault((target.region, target.role_arn), []).append(address)
    for (region, role), queues in places.items():
        names = ", ".join(queue.name for queue in queues[:5]) + (" …" if len(queues) > 5 else "")  # noqa: PLR2004
        try:
            told = series(region, queues, role=role, now=now)
        except CloudWatchUnreachable as error:
            yield unknown_finding(names, f"The state of their consumers is unknown: {error}")
            continue
        for queue in queues:
            yield from (_said(queue.name, vital) for vital in judge_consumers(told[queue.url]))


def _said(name: str, vital: ConsumerHealth) -> DoctorFinding:
    match vital:
        case KeepingUp():
            return ok_finding(name, "its consumers keep up.")
        case TooFewValues(why):
            return unknown_finding(name, f"The state of its consumers is unknown: {why}.")
        case FallingBehind(before, now):
            ages = duration_in_words(now), duration_in_words(before)
            what = f"Its oldest message is {ages[0]} old, and was {ages[1]} old at the start of the last hour."
            cure = "Give it more consumers, or redrive more slowly: manage.py add_dlq DLQ --rate R --confirm"
            return warning_finding(
                name, what, "Its consumers fall behind, and redriven messages wait with the others.", cure
            )
        case SlowOrCrashing(before, now):
            what = f"{now:,.0f} messages of it are in flight, and were {before:,.0f} at the start of the last hour."
            why = "Its consumers are too slow, or crash: messages that they do not delete fail again."
            return warning_finding(
                name, what, why, "Look for crashes and slow calls in the consumer's log before redriving."
            )
        case FailingConsumers(sent, received, deleted):
            what = f"In the last hour {sent:,.0f} were sent, {received:,.0f} received, {deleted:,.0f} deleted."
            why = "Its consumers fail: messages that are redriven now fail again."
            cure = "Repair the consumer first. Until then: manage.py stop_redrive DLQ --reason WHY --confirm"
            return error_finding(name, what, why, cure)
        case _:
            assert_never(vital)
