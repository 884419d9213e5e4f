"""What a page shows before it saves a form: the changes, and the problems that checks of the entered values found."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reprocessing.admin.site import labels
from reprocessing.domain.approvals.requested_action import Messages
from reprocessing.pipeline.dlqs.examine import Finding, Severity
from reprocessing.store.proposed_changes import Difference


@dataclass(frozen=True, slots=True)
class Preview:
    """The changes that a save would make, and the problems that checks of the entered values found.

    Attributes:
        payload: the value that `FormPage.write` saves.
        changes: the fields that a save would change.
        findings: problems; some forbid saving.
        passed: a sentence about each check that found no problem.
        new: whether the row does not exist yet.
        version: version of other data on which the preview depends, for example of all rules.
        facts: labels and values that the page shows.
        preview: further effects of a save, for the template `FormPage.preview`.
        about: number of changed messages by DLQ; it decides whether a second person is needed. Empty: not needed.
        why: returns why a value is proposed; None: the page shows no reasons.
        reported: the reason of values that are only read, and not proposed; the page shows them apart.
        proposed: by field of the form, the value that is saved if the field is empty, as text.
        yaml: the new values as a part of a configuration file; empty: the page does not show it.
    """

    payload: Any
    changes: list[Difference]
    findings: list[Finding] = field(default_factory=list)
    passed: tuple[str, ...] = ()
    new: bool = False
    version: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    preview: Any = None
    about: Messages = field(default_factory=dict)
    why: Callable[[Difference], str] | None = None
    reported: str = ""
    proposed: Mapping[str, str] = field(default_factory=dict)
    yaml: str = ""

    @property
    def has_reasons(self) -> bool:
        """Return whether the page shows why each value is proposed."""
        return self.why is not None

    @property
    def is_refused(self) -> bool:
        """Return whether one of the problems forbids saving."""
        return any(finding.severity is Severity.REFUSE for finding in self.findings)

    @property
    def shown(self) -> list[tuple[str, str, str, str]]:
        """Return the changes as texts: object, label of the field, value before, and value after."""
        return [
            (change.label, labels.column(change.field), value_text(change.before), value_text(change.after))
            for change in self.changes
        ]

    @property
    def proposals(self) -> list[tuple[str, list[tuple[str, str, str]]]]:
        """Return the proposed values by object: label of the field, value, and why."""
        found: dict[str, list[tuple[str, str, str]]] = {}
        for change in self.changes:
            if not self._is_read(change):
                row = (labels.column(change.field), value_text(change.after), self.why(change) if self.why else "")
                found.setdefault(change.label, []).append(row)
        return list(found.items())

    @property
    def read_values(self) -> list[tuple[str, str, str]]:
        """Return the values that are only read: object, label of the field, and value."""
        return [
            (change.label, labels.column(change.field), value_text(change.after))
            for change in self.changes
            if self._is_read(change) and value_text(change.after)
        ]

    def _is_read(self, change: Difference) -> bool:
        why = self.why(change) if self.why else ""
        return why == self.reported or not (why or value_text(change.after))

    @property
    def seen(self) -> str:
        """Return a digest of the changes that this preview shows."""
        changes = [[change.name, change.field, change.before, change.after] for change in self.changes]
        return digest([self.version, changes])


def digest(what: object) -> str:
    """Return a hash of a value as text; equal values have equal hashes."""
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()


def value_text(value: object) -> str:
    """Return the value of a setting as a text for people; empty: there is none."""
    match value:
        case None | "":
            return ""
        case bool():
            return "yes" if value else "no"
        case list():
            return " and ".join(map(str, value))
        case float():
            return f"{value:g}"
        case _:
            return str(value)
