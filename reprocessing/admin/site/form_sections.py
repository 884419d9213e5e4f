"""The sections of a form with a preview: which sections are open, and which fields have other than default values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from django import forms


class SectionedForm(forms.Form):
    """A form whose fields are shown in sections.

    Attributes:
        sections: headings, each with the names of its fields. A heading in parentheses: the section is closed at first.
        folds: whether the other sections can be closed, too. A section is opened if one of its fields has a problem.
    """

    sections: ClassVar[tuple[tuple[str, tuple[str, ...]], ...]] = ()
    folds: ClassVar[bool] = False

    def differs(self, name: str) -> bool:
        """Return whether a field's value differs from its default. False here: only subclasses know defaults."""
        return False


@dataclass(frozen=True, slots=True)
class ShownField:
    """A field of a section. `proposed`: the value that is saved if the field stays empty; empty: no proposal."""

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
    """Return the sections that have fields.

    `proposed`: values for empty fields, by field name. `troubled`: names of fields with a problem. `has_preview`:
    whether the page shows a preview.
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
    """Return the value that is proposed for an empty field, as the field shows it; empty: none is proposed."""
    value = "" if bound.value() else proposed.get(bound.name, "")
    choices: Any = bound.field.choices if isinstance(bound.field, forms.ChoiceField) else ()
    return str(dict(choices).get(value, value)) if value else ""
