"""The sections of a form with a preview. They show which fields have values that differ from the defaults."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from django import forms


class SectionedForm(forms.Form):
    """A form whose fields are shown in sections.

    Attributes:
        sections: the headings, each with the names of its fields. A section whose heading is in parentheses is closed
            at first, and a person can open it.
        folds: whether a person can open and close all sections.
    """

    sections: ClassVar[tuple[tuple[str, tuple[str, ...]], ...]] = ()
    folds: ClassVar[bool] = False

    def differs(self, name: str) -> bool:
        """Return whether the value of a field differs from its default: False, unless a subclass knows the defaults."""
        return False


@dataclass(frozen=True, slots=True)
class ShownField:
    """A field of a section.

    `differs`: whether its value differs from the default. `proposed`: the value that is saved if the field stays empty;
    empty: no value is proposed.
    """

    bound: forms.BoundField
    differs: bool
    proposed: str


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a form. `folds`: whether a person can close the section. `is_open`: whether it is open at first."""

    heading: str
    folds: bool
    is_open: bool
    fields: list[ShownField] = field(default_factory=list)

    @property
    def differing(self) -> list[str]:
        """Return the labels of the fields whose values differ from their defaults."""
        return [str(shown.bound.label) for shown in self.fields if shown.differs]


def sections_of(
    form: SectionedForm, *, proposed: Mapping[str, str], troubled: Collection[str], has_preview: bool
) -> list[Section]:
    """Return the sections of a form. A section without fields is left out.

    `proposed`: the values that are saved for empty fields, by field name. `troubled`: the names of fields with a
    problem; their sections are open. `has_preview`: whether the page shows a preview.
    """
    found = []
    for heading, names in form.sections:
        bounds = [form[name] for name in names if name in form.fields]
        begins_closed = heading.startswith("(") or (form.folds and has_preview)
        needed = any(bound.errors or bound.name in troubled for bound in bounds)
        shown = [ShownField(bound, form.differs(bound.name), _proposal(bound, proposed)) for bound in bounds]
        if shown:
            folds = form.folds or heading.startswith("(")
            found.append(Section(heading.strip("()"), folds, needed or not begins_closed, shown))
    return found


def _proposal(bound: forms.BoundField, proposed: Mapping[str, str]) -> str:
    """Return the value that is saved if this field stays empty, as people read it; empty: no value is proposed."""
    value = "" if bound.value() else proposed.get(bound.name, "")
    choices: Any = bound.field.choices if isinstance(bound.field, forms.ChoiceField) else ()
    return str(dict(choices).get(value, value)) if value else ""
