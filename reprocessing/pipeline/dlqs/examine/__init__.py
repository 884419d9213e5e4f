"""Examine a DLQ before it is added or changed: read its queues' attributes, propose its settings, and find problems."""

from __future__ import annotations

from dataclasses import dataclass, field

from reprocessing.conf import Conf
from reprocessing.pipeline.dlqs.examine import (
    celery_workers,
    other_targets,
    policies,
    policy_values,
    queues,
    reasons,
    teams,
)
from reprocessing.pipeline.dlqs.examine.findings import Case, Finding, Severity
from reprocessing.pipeline.dlqs.examine.gathered import Observed, Wanted, observe
from reprocessing.pipeline.dlqs.examine.proposal import mode, policy, propose
from reprocessing.pipeline.dlqs.examine.queue_attributes import queue_address
from reprocessing.pipeline.dlqs.examine.reasons import Reasons
from reprocessing.pipeline.dlqs.examine.targets import TargetCase, find_target, queue_target, target
from reprocessing.store.dlqs import dlq_proposal
from reprocessing.store.dlqs.dlq_proposal import DlqProposal
from reprocessing.store.proposed_changes import Difference

__all__ = [
    "Examination", "Finding", "Severity", "TargetCase", "Wanted", "dlq", "find_target", "queue_address", "queue_target",
    "target",
]  # fmt: skip

_CHECKS = (
    queues.identity,
    queues.sources,
    queues.failures_come_back,
    queues.retention,
    queues.deletion_of_copies,
    queues.native_moves,
    queues.encryption,
    queues.parking,
    celery_workers.tasks,
    other_targets.unreachable_sources,
    other_targets.targets_are_not_watched,
    other_targets.evidence,
    other_targets.unnamed_failures,
    other_targets.published,
    other_targets.changed_targets,
    policies.outcome,
    policies.outcome_after_observing,
    policies.acknowledged,
    policies.awaited,
    policies.dependent_targets,
    policies.order,
    policies.keys,
    policies.pace,
    policies.time,
    teams.groups,
    teams.nobody,
)


@dataclass(frozen=True, slots=True)
class Examination:
    """The result of an examination: the findings about a DLQ, and the values that would be stored (`proposal`).

    `passed`: one sentence for each check without findings, which is the first line of the check's docstring. `reasons`:
    why each value is proposed; the method `why` reads them.
    """

    observed: Observed
    proposal: DlqProposal
    findings: list[Finding]
    passed: tuple[str, ...] = ()
    reasons: Reasons = field(default_factory=dict)

    def why(self, change: Difference) -> str:
        """Return why a value is proposed, and what follows from it; empty: no reason is known."""
        named = str(change.after) if change.field == dlq_proposal.SOURCE else change.field
        return self.reasons.get((change.label, named), "")

    @property
    def is_refused(self) -> bool:
        """Return whether a finding forbids adding the DLQ. Its problem must be solved first."""
        return any(finding.severity is Severity.REFUSE for finding in self.findings)


def dlq(wanted: Wanted, conf: Conf) -> Examination:
    """Examine a DLQ with the options that a person gave; return the result. Nothing is received, sent or written.

    Raises:
        QueueUnreachable: SQS did not answer about the DLQ, a source or the parking queue.
        InvalidSelector: an option switches off a key that is always needed, such as the idempotency key.
    """
    wanted = policy_values.with_policy(wanted)
    observed = observe(wanted)
    proposal = propose(wanted, observed, held_copies_limit=conf.held_copies_limit)
    case = Case(observed, proposal, policy(wanted, observed), mode(wanted, observed))
    found = [(check.__doc__ or "", list(check(case))) for check in _CHECKS]
    found.append((queues.of_the_service.__doc__ or "", list(queues.of_the_service(case, conf.own_queues))))
    passed = tuple(words.partition("\n")[0] for words, findings in found if not findings)
    return Examination(
        observed, proposal, [finding for _, findings in found for finding in findings], tuple(filter(None, passed)),
        reasons.reasons(case, wanted),
    )  # fmt: skip
