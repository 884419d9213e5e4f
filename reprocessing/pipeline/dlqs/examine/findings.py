"""Define findings: problems of a DLQ or a target, each with its cure (what to do about it)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from reprocessing.domain.ordering.placement import KeyPolicy
from reprocessing.models import Reporter
from reprocessing.models.dlq import Mode
from reprocessing.pipeline.dlqs.examine.gathered import Observed
from reprocessing.pipeline.dlqs.examine.queue_attributes import DescribedQueue
from reprocessing.store.dlqs.dlq_proposal import DlqProposal


class Severity(StrEnum):
    """How serious a finding about a DLQ or target is."""

    REFUSE = "refuse"  #: nothing is written until the problem is fixed
    WARN = "warn"  #: the DLQ or target is written all the same
    NOTE = "note"  #: for information


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem of a DLQ or target (`what`), and what to do about it (`cure`; may be empty)."""

    severity: Severity
    what: str
    cure: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """The input of the checks of a DLQ: its state in AWS and PostgreSQL, and the new settings that would be stored."""

    observed: Observed
    proposal: DlqProposal
    policy: KeyPolicy
    mode: Mode

    @property
    def name(self) -> str:
        """Return the DLQ's name."""
        return self.proposal.name

    @property
    def arn(self) -> str:
        """Return the DLQ's ARN."""
        return self.observed.dlq.facts.arn

    def value(self, field: str, default: Any = None) -> Any:  # noqa: ANN401  of the row's own type
        """Return the value that a field of the DLQ will have after the proposed values are stored.

        `default`: returned if the field will have no value.
        """
        held = getattr(self.observed.row, field) if self.observed.row else default
        return self.proposal.dlq.get(field, held)

    def of_target(self, target: DescribedQueue | str, field: str) -> Any:  # noqa: ANN401  of the row's own type
        """Return the value that a field of a target will have after the proposed values are stored.

        `target`: a queue, or the target's ARN.
        """
        arn = target if isinstance(target, str) else target.facts.arn
        row = self.observed.targets.get(arn)
        return self.proposal.targets[arn].get(field, getattr(row, field) if row else None)


def refuse(what: str, cure: str) -> Finding:
    """Return a finding that forbids adding the DLQ or target until it is fixed."""
    return Finding(Severity.REFUSE, what, cure)


def warn(what: str, cure: str = "") -> Finding:
    """Return a finding that is shown as a warning. The DLQ or target is added nevertheless."""
    return Finding(Severity.WARN, what, cure)


def note(what: str, cure: str = "") -> Finding:
    """Return a finding that is shown for information."""
    return Finding(Severity.NOTE, what, cure)


def reporters(arn: str, name: str) -> Iterator[Finding]:
    """Yield a warning if no consumer may report the outcomes of messages that were sent to this target."""
    if not Reporter.objects.filter(targets__arn=arn, revoked_at=None).exists():
        yield warn(
            f"No consumer may report outcomes yet of messages to {name}.",
            f"manage.py add_reporter CONSUMER --target {name} --confirm; not needed if consumers use this database.",
        )
