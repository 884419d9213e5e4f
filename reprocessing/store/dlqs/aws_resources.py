"""List the AWS resources for which the service needs IAM permissions, from the configured DLQs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from django.db.models import Q

from reprocessing.domain.aws.iam_policy import ANY_RESOURCE, Purpose, ResourceUse
from reprocessing.domain.message.arn import ResourceKind, read
from reprocessing.domain.targets.target_kind import QUEUE_KINDS, TargetKind
from reprocessing.models.dlq import DeadLetterQueue, Source
from reprocessing.models.rule import Rule
from reprocessing.models.safety import CheckKind, HealthCheck
from reprocessing.models.target import Target

#: What the service does with a target that is not a queue, by the target's kind.
_PURPOSES = {
    TargetKind.LAMBDA: (Purpose.INVOKE,), TargetKind.TOPIC: (Purpose.LISTENERS, Purpose.PUBLISH),
    TargetKind.BUS: (Purpose.RULES, Purpose.PUT), TargetKind.HTTP: (),
}  # fmt: skip


def required_permissions(dlqs: Sequence[DeadLetterQueue]) -> Iterator[ResourceUse]:
    """Yield each AWS resource that the service uses for these DLQs, with the purpose for which it is used.

    A resource may be yielded twice. Parking queues are left out.
    """
    for dlq in dlqs:
        yield from uses_of_dlq(dlq.arn, dlq.role_arn)
    for source in Source.objects.filter(dlq__in=dlqs).select_related("dlq"):
        arn = read(source.arn)
        if arn and arn.named is ResourceKind.SUBSCRIPTION:
            yield ResourceUse(Purpose.SUBSCRIBER, arn.text, source.dlq.role_arn)
        if arn and arn.named is ResourceKind.QUEUE:
            yield ResourceUse(Purpose.LOOK, arn.text, source.dlq.role_arn)
    targets = targets_of(dlqs)
    for target in targets:
        if target.kind in QUEUE_KINDS:
            yield from uses_of_queue(target.arn, target.role_arn)
        else:
            yield from (
                ResourceUse(purpose, target.arn, target.role_arn) for purpose in _PURPOSES[TargetKind(target.kind)]
            )
    yield from _checks(targets)


def uses_of_dlq(arn: str, role: str = "") -> Iterator[ResourceUse]:
    """Yield each use of a DLQ that needs IAM permissions.

    `role`: ARN of the role with which the service uses the DLQ; empty: the service's own role.
    """
    yield from (ResourceUse(purpose, arn, role) for purpose in (Purpose.WATCH, Purpose.TAKE))


def uses_of_queue(arn: str, role: str = "") -> Iterator[ResourceUse]:
    """Yield each use of a target queue that needs IAM permissions.

    `role`: ARN of the role with which the service uses the queue; empty: the service's own role.
    """
    yield from (ResourceUse(purpose, arn, role) for purpose in (Purpose.LOOK, Purpose.SEND))


def targets_of(dlqs: Sequence[DeadLetterQueue]) -> list[Target]:
    """Return the targets of these DLQs: the targets of their source queues, and of rules for these or for all DLQs."""
    ruled = Rule.objects.filter(Q(dlq__in=dlqs) | Q(dlq=None), target__isnull=False).values("target")
    return list(
        Target.objects.filter(Q(sources__dlq__in=dlqs, sources__removed_at=None) | Q(pk__in=ruled))
        .distinct()
        .order_by("arn")
    )


def _checks(targets: Iterable[Target]) -> Iterator[ResourceUse]:
    """Yield the resources that health checks read. They run with the service's own role, not with the target's role."""
    purposes = {CheckKind.ALARM: Purpose.ALARMS, CheckKind.AGE: Purpose.AGES}
    for check in HealthCheck.objects.filter(target__in=targets, kind__in=purposes).select_related("target"):
        yield ResourceUse(purposes[CheckKind(check.kind)], ANY_RESOURCE, within=check.target.region)
