"""Check the service's own queues (of Celery tasks) and their DLQs, with only the permissions that workers have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reprocessing.domain.aws.queue_spec import OWN_VISIBILITY
from reprocessing.domain.errors import QueueUnreachable
from reprocessing.domain.maintenance.findings import (
    DoctorFinding,
    error_finding,
    ok_finding,
    unknown_finding,
    warning_finding,
)
from reprocessing.domain.message.arn import resource_name
from reprocessing.gateways.sqs import QueueAddress, QueueFacts, depth, describe
from reprocessing.gateways.sqs.permission_probe import SENDING, TAKING
from reprocessing.pipeline.maintenance.doctor.sqs_permissions import missing_rights

_MEND: Final = "manage.py provision_queues --own shows what is wrong; --confirm repairs it."


def findings(urls: Sequence[str]) -> Iterator[DoctorFinding]:
    """Yield findings about each of the service's own queues: settings, permissions, failed tasks in its DLQ.

    `urls`: the URLs of these queues.
    """
    if not urls:
        why = "Without them, beat and workers do nothing. Only drain_dlq works."
        yield warning_finding(
            "own queues", "settings.REDRIVE names no OWN_QUEUES.", why, "Set REDRIVE_CONTROL_QUEUE_URL, … ."
        )
    for url in urls:
        try:
            address = QueueAddress.of(url)
            facts = describe(address)
        except QueueUnreachable as error:
            why = "Without it no task of its kind reaches a worker."
            cure = f"{_MEND} If it exists, check the URL, the region and the permissions."
            yield error_finding(url.rpartition("/")[2], str(error), why, cure)
            continue
        found = [*_settings(address, facts), *missing_rights(address, (*TAKING, *SENDING)), *_dead(address, facts)]
        yield from found or [ok_finding(address.name, "correct.")]


def _settings(address: QueueAddress, facts: QueueFacts) -> Iterator[DoctorFinding]:
    seconds, region = int(facts.visibility.total_seconds()), facts.arn.split(":")[3]
    if region != address.region:
        why = "Calls are signed for the wrong region: AWS refuses them, or they reach another queue."
        yield error_finding(
            address.name,
            f"It is in {region}, but requests go to {address.region}.",
            why,
            f"AWS_DEFAULT_REGION={region}",
        )
    if facts.fifo:
        why = "Tasks of a group wait for each other, and a task that fails blocks the others."
        yield error_finding(address.name, "It is a FIFO queue.", why, "Name a standard queue in its variable.")
    if seconds < OWN_VISIBILITY:
        why = "A task that takes longer is given to a second worker while the first still runs it."
        yield error_finding(address.name, f"It hides a task for {seconds} s, not for {OWN_VISIBILITY} s.", why, _MEND)
    if facts.redrive is None:
        why = "A task that no worker can do comes back without end, and delays other tasks."
        yield error_finding(address.name, "It has no redrive policy.", why, _MEND)


def _dead(address: QueueAddress, facts: QueueFacts) -> Iterator[DoctorFinding]:
    """Yield a finding if the DLQ of one of the service's own queues has failed tasks, or cannot be read.

    The DLQ is in the same account and region as the queue.
    """
    if facts.redrive is None:
        return
    name = resource_name(facts.redrive.target_arn)
    beside = QueueAddress(address.url.removesuffix(address.name) + name, address.region, address.role)
    try:
        n = depth(beside).total
    except QueueUnreachable as error:
        say = unknown_finding if "AccessDenied" in str(error) else error_finding  # workers do not need that permission
        yield say(name, str(error), f"It is where failed tasks of {address.name} go.", _MEND)
        return
    if n:
        why = "Each of these tasks killed workers, or is unknown to the workers (of another version?)."
        cure = f"Read the workers' logs; then aws sqs purge-queue --queue-url {beside.url}: PostgreSQL has all work."
        yield error_finding(name, f"Tasks of {address.name} failed: {n:,}.", why, cure)
