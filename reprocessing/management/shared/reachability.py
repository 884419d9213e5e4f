"""Whether this process may reach a dlq's targets: it was started with the hosts and the secrets that they ask for."""

from __future__ import annotations

from django.core.management.base import CommandError

from reprocessing import conf
from reprocessing.domain.safety import url_policy
from reprocessing.domain.safety.url_policy import Denied
from reprocessing.models import DeadLetterQueue, Target
from reprocessing.models.target import TargetKind


def refuse_unreachable(dlq: DeadLetterQueue) -> None:
    """Refuse to send from here what this process may not: nothing would leave, and every letter would wait.

    Raises:
        CommandError: which host or secret is missing, and the cure.
    """
    view = conf.current()
    for target in Target.objects.filter(origins__dlq=dlq, origins__removed_at=None, kind=TargetKind.HTTP).distinct():
        found = url_policy.read(target.url, view.outbound_hosts)
        if isinstance(found, Denied):
            raise CommandError(
                f"Letters of {dlq.name} go to {target.url}, which this process may not reach: {found.why}. "
                f"{found.cure or 'Start it with REDRIVE_OUTBOUND_HOSTS as the workers have it.'}"
            )
        if target.secret and target.secret not in view.secrets:
            raise CommandError(
                f"Letters of {dlq.name} are signed with the secret {target.secret}, which this process does not have. "
                "Start it with REDRIVE_SECRETS as the workers have it."
            )
