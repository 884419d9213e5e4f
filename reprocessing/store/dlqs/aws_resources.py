"""AWS resources that the configured DLQs use, as needs of IAM permissions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from django.db.models import Q

from reprocessing.domain.aws.iam_policy import ALL, Purpose, Use
from reprocessing.domain.message.arn import Named, read
from reprocessing.models.dlq import DeadLetterQueue, Origin
from reprocessing.models.rule import Rule
from reprocessing.models.safety import CheckKind, HealthCheck
from reprocessing.models.target import QUEUES, Target, TargetKind

#: Uses of targets that are not queues.
_PURPOSES = {
    TargetKind.LAMBDA: (Purpose.INVOKE,), TargetKind.TOPIC: (Purpose.LISTENERS, Purpose.PUBLISH),
    TargetKind.BUS: (Purpose.RULES, Purpose.PUT), TargetKind.HTTP: (),
}  # fmt: skip


def uses(dlqs: Sequence[DeadLetterQueue]) -> Iterator[Use]:
    """Yield what these DLQs use, with repetitions; parking queues are left to `parking_queues`."""
    for dlq in dlqs:
        yield from of_dlq(dlq.arn, dlq.role_arn)
    for origin in Origin.objects.filter(dlq__in=dlqs).select_related("dlq"):
        arn = read(origin.arn)
        if arn and arn.named is Named.SUBSCRIPTION:
            yield Use(Purpose.SUBSCRIBER, arn.text, origin.dlq.role_arn)
        if arn and arn.named is Named.QUEUE:
            yield Use(Purpose.LOOK, arn.text, origin.dlq.role_arn)
    targets = targets_of(dlqs)
    for target in targets:
        if target.kind in QUEUES:
            yield from of_queue(target.arn, target.role_arn)
        else:
            yield from (Use(purpose, target.arn, target.role_arn) for purpose in _PURPOSES[TargetKind(target.kind)])
    yield from _checks(targets)


def of_dlq(arn: str, role: str = "") -> Iterator[Use]:
    """Yield the uses of a DLQ."""
    yield from (Use(purpose, arn, role) for purpose in (Purpose.WATCH, Purpose.TAKE))


def of_queue(arn: str, role: str = "") -> Iterator[Use]:
    """Yield the uses of a queue that letters are sent to."""
    yield from (Use(purpose, arn, role) for purpose in (Purpose.LOOK, Purpose.SEND))


def targets_of(dlqs: Sequence[DeadLetterQueue]) -> list[Target]:
    """Return the targets of these DLQs, by source queue or rule."""
    ruled = Rule.objects.filter(Q(dlq__in=dlqs) | Q(dlq=None), target__isnull=False).values("target")
    return list(
        Target.objects.filter(Q(origins__dlq__in=dlqs, origins__removed_at=None) | Q(pk__in=ruled))
        .distinct()
        .order_by("arn")
    )


def _checks(targets: Iterable[Target]) -> Iterator[Use]:
    """Yield uses of health checks. They run as the service itself, whatever the role of the target."""
    purposes = {CheckKind.ALARM: Purpose.ALARMS, CheckKind.AGE: Purpose.AGES}
    for check in HealthCheck.objects.filter(target__in=targets, kind__in=purposes).select_related("target"):
        yield Use(purposes[CheckKind(check.kind)], ALL, within=check.target.region)
