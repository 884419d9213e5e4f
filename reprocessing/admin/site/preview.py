"""The preview that a page shows before it saves a form: the changes, and problems with the entered values."""

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
    """The changes that saving a form would make, and the problems with the entered values.

    Attributes:
        payload: the checked values, which the function `FormPage.write` saves.
        changes: the fields that would change, with the values before and after.
        findings: the problems that were found. Some of them forbid saving.
        passed: a sentence about each check that found no problem.
        new: whether saving adds a new row.
        version: a version of other data on which the preview depends, such as the version of all rules.
        facts: further labels and values that the page shows.
        preview: further effects of saving, for the template named by `FormPage.preview`.
        about: the number of messages that would change, by DLQ id. It decides whether a second person is needed. Empty:
            no second person is needed.
        why: function that returns why a value is proposed; None: the page shows no reasons.
        reported: the text that `why` returns for values that were read from AWS and cannot be chosen. The page shows
            these values in a table of their own.
        proposed: the values that are saved for empty fields, as texts by field name.
        yaml: the new values as part of a configuration file; empty: the page does not show it.
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
        """Return each change as texts: the name of the object, the label of the field, the old and the new value."""
        return [
            (change.label, labels.column(change.field), value_text(change.before), value_text(change.after))
            for change in self.changes
        ]

    @property
    def proposals(self) -> list[tuple[str, list[tuple[str, str, str]]]]:
        """Return the proposed values by the name of their object: for each the label, the value and the reason."""
        found: dict[str, list[tuple[str, str, str]]] = {}
        for change in self.changes:
            if not self._is_read(change):
                row = (labels.column(change.field), value_text(change.after), self.why(change) if self.why else "")
                found.setdefault(change.label, []).append(row)
        return list(found.items())

    @property
    def read_values(self) -> list[tuple[str, str, str]]:
        """Return the values that were read from AWS and cannot be chosen: name of the object, label, and value."""
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
        """Return a digest of the changes. If it differs when the form is saved, the person saw other changes."""
        changes = [[change.name, change.field, change.before, change.after] for change in self.changes]
        return digest([self.version, changes])


def digest(what: object) -> str:
    """Return a hash of a value as text; equal values have equal hashes."""
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()


def value_text(value: object) -> str:
    """Return the value of a setting as a text for people; empty: the setting has no value."""
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
