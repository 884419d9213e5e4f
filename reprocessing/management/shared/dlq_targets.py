"""Find the targets of a DLQ by the name or ARN that a user gives to a command."""

from __future__ import annotations

from django.core.management.base import CommandError
from django.db.models import Q

from reprocessing.models import DeadLetterQueue, Target


def targets_of(dlq: DeadLetterQueue, named: str | None) -> list[Target]:
    """Return the targets to which messages of the DLQ may be sent: the targets of its source queues and of rules.

    If `named` is given, return only the target with this name or ARN.

    Raises:
        CommandError: the DLQ has no target, or no target with this name or ARN.
    """
    by_rule = Q(rules__isnull=False) & (Q(rules__dlq=dlq) | Q(rules__dlq=None))
    found = list(Target.objects.filter(Q(sources__dlq=dlq) | by_rule).distinct().order_by("arn"))
    if not found:
        raise CommandError(
            f"{dlq.name} has no target yet. Add its source queue: manage.py add_dlq {dlq.name} --source URL --confirm"
        )
    if some := [target for target in found if named in {None, target.arn, str(target)}]:
        return some
    raise CommandError(f'{dlq.name} has no target named "{named}". It has: {", ".join(map(str, found))}.')
