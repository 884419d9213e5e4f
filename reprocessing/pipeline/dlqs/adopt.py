"""Add discovered DLQs in mode observe, with the same examination and registration as add_dlq."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reprocessing.conf import Conf
from reprocessing.domain.dlqs.discovery import SourceKind
from reprocessing.domain.dlqs.dlq_name import propose_name
from reprocessing.domain.errors import RedriveError
from reprocessing.domain.message.arn import ResourceKind, read
from reprocessing.models import DeadLetterQueue
from reprocessing.models.dlq import Mode
from reprocessing.pipeline.dlqs import examine
from reprocessing.pipeline.dlqs.examine import Examination, Wanted
from reprocessing.store.capture import capture_lease
from reprocessing.store.dlqs import dlq_proposal, registration
from reprocessing.store.dlqs.discovered_queues import DiscoveredDlq
from reprocessing.store.proposed_changes import Difference


@dataclass(frozen=True, slots=True)
class Adoption:
    """A discovered DLQ that a person wants to add, and the result of its examination.

    Attributes:
        queue: the discovered DLQ.
        name: the name that the DLQ would get; empty: it cannot be added, for the reason in `error`.
        examination: the result of the examination; None: the queue could not be examined.
        changes: the values that would be stored.
        error: why the DLQ cannot be added, and what to do; empty: it can be added.
    """

    queue: DiscoveredDlq
    name: str = ""
    examination: Examination | None = None
    changes: tuple[Difference, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class AdoptionSettings:
    """The settings that a person gives for all DLQs that are added together.

    `policy`: name of the policy of these DLQs; empty: they get none. `teams`: names of the groups whose members see
    these DLQs.
    """

    policy: str = ""
    teams: tuple[str, ...] = ()


def examine_adoptions(
    queues: Sequence[DiscoveredDlq], conf: Conf, settings: AdoptionSettings = AdoptionSettings()
) -> Iterator[Adoption]:
    """Examine each discovered DLQ, and yield what would be added. Nothing is received, sent or stored."""
    taken = set(DeadLetterQueue.objects.values_list("name", flat=True))
    for queue in queues:
        arn = read(queue.arn)
        if queue.watched_as:
            yield Adoption(queue, error=f"It is already registered as {queue.watched_as}.")
        elif not queue.url or arn is None:
            yield Adoption(queue, error=queue.last_error or "Its URL is not known.")
        else:
            name = propose_name(arn, taken)
            taken.add(name)
            yield _examined(queue, name, conf, settings)


def adopt(adoption: Adoption, *, by: str, reason: str) -> None:
    """Register an examined DLQ, if the values to store are still those that a person saw.

    Raises:
        DlqAlreadyRegistered: another person added the queue, or a DLQ with this name, meanwhile.
        ValueError: the DLQ cannot be added, for the reason in `error`.
    """
    if adoption.examination is None or adoption.error:
        raise ValueError(f"{adoption.queue.arn} cannot be added: {adoption.error}")
    proposal, depth = adoption.examination.proposal, adoption.examination.observed.depth
    registration.register(proposal, by=by, reason=reason, seen=adoption.changes)
    row = DeadLetterQueue.objects.get(name=adoption.name)
    capture_lease.note_depth(row.pk, visible=depth.visible, in_flight=depth.in_flight)


def _examined(queue: DiscoveredDlq, name: str, conf: Conf, settings: AdoptionSettings) -> Adoption:
    given = {"role_arn": queue.role_arn, "policy": settings.policy}
    wanted = Wanted(
        name=name, url=queue.url, sources=named_sources(queue), teams=settings.teams or None,
        dlq={"mode": Mode.OBSERVE.value} | {field: value for field, value in given.items() if value},
    )  # fmt: skip
    try:
        found = examine.dlq(wanted, conf)
    except RedriveError as error:
        return Adoption(queue, name, error=str(error))
    refusals = [
        f"{finding.what} {finding.cure}".strip()
        for finding in found.findings
        if finding.severity is examine.Severity.REFUSE
    ]
    changes = tuple(dlq_proposal.differences(found.proposal))
    return Adoption(queue, name, found, changes, " ".join(refusals))


def named_sources(queue: DiscoveredDlq) -> tuple[str, ...]:
    """Return the ARNs of the DLQ's sources (functions, subscriptions, rules) to which messages can be redriven.

    Source queues are left out, because the examination gets them from SQS.
    """
    sendable = {ResourceKind.QUEUE, ResourceKind.FUNCTION, ResourceKind.SUBSCRIPTION}
    found = [read(source.source_arn) for source in queue.sources if source.kind is not SourceKind.QUEUE]
    return tuple(dict.fromkeys(arn.text for arn in found if arn and arn.named in sendable))
