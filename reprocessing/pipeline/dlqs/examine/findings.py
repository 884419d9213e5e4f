"""What is to be said of a dlq before it is watched: a finding is a value, with its cure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from reprocessing.domain.ordering.placement import Policy
from reprocessing.models.dlq import Mode
from reprocessing.pipeline.dlqs.examine.gathered import Sight
from reprocessing.pipeline.dlqs.examine.queue_attributes import Seen
from reprocessing.store.dlqs.registration import Proposal


class Severity(StrEnum):
    """What a finding does."""

    REFUSE = "refuse"  #: nothing is written before it is cured
    WARN = "warn"  #: it is written; something will not go as hoped
    NOTE = "note"  #: worth knowing


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. `cure`: what to do about it; empty where there is nothing to be done."""

    severity: Severity
    what: str
    cure: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """What is judged: what was seen, what is proposed, and by which keys and in which mode."""

    sight: Sight
    proposal: Proposal
    policy: Policy
    mode: Mode

    @property
    def name(self) -> str:
        """The dlq's name."""
        return self.proposal.name

    @property
    def arn(self) -> str:
        """The dlq's ARN."""
        return self.sight.dlq.facts.arn

    def value(self, field: str, default: Any = None) -> Any:  # noqa: ANN401  of the row's own type
        """What a field of the dlq's row will hold."""
        held = getattr(self.sight.row, field) if self.sight.row else default
        return self.proposal.dlq.get(field, held)

    def of_target(self, one: Seen | str, field: str) -> Any:  # noqa: ANN401  of the row's own type
        """What a field of a target's row will hold; the target is a queue, or named by its ARN."""
        arn = one if isinstance(one, str) else one.facts.arn
        row = self.sight.targets.get(arn)
        return self.proposal.targets[arn].get(field, getattr(row, field) if row else None)


def refuse(what: str, cure: str) -> Finding:
    """Nothing is written before this is cured."""
    return Finding(Severity.REFUSE, what, cure)


def warn(what: str, cure: str = "") -> Finding:
    """Something will not go as hoped."""
    return Finding(Severity.WARN, what, cure)


def note(what: str, cure: str = "") -> Finding:
    """Worth knowing."""
    return Finding(Severity.NOTE, what, cure)
