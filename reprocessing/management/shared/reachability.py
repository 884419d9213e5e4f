"""Check that this process may reach the hosts of a DLQ's targets, and has their secrets."""

from __future__ import annotations

from django.core.management.base import CommandError

from reprocessing import conf
from reprocessing.domain.safety import url_policy
from reprocessing.domain.safety.url_policy import UrlDenied
from reprocessing.domain.targets.target_kind import TargetKind
from reprocessing.models import DeadLetterQueue, Target


def refuse_unreachable(dlq: DeadLetterQueue) -> None:
    """Check, before messages are sent, that this process may reach the hosts of HTTP targets and has their secrets.

    Raises:
        CommandError: a host is not allowed by REDRIVE_OUTBOUND_HOSTS, or a secret is not in REDRIVE_SECRETS.
    """
    view = conf.current()
    for target in Target.objects.filter(sources__dlq=dlq, sources__removed_at=None, kind=TargetKind.HTTP).distinct():
        found = url_policy.read_url(target.url, view.outbound_hosts)
        if isinstance(found, UrlDenied):
            raise CommandError(
                f"Messages of {dlq.name} go to {target.url}, which this process may not reach: {found.why}. "
                f"{found.cure or 'Set REDRIVE_OUTBOUND_HOSTS here as for the workers.'}"
            )
        if target.secret and target.secret not in view.secrets:
            raise CommandError(
                f"Messages of {dlq.name} are signed with the secret {target.secret}, which this process does not have. "
                "Set REDRIVE_SECRETS here as for the workers."
            )
