"""The sections of a form with a preview: which are open, which fields differ from their defaults, what is proposed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from django import forms


class SectionedForm(forms.Form):
    """A form whose fields are shown in sections.

    Attributes:
        sections: headings and their fields. A section with its heading in brackets is closed at first.
        folds: whether every section can be closed. A section is opened if an error or a problem is about its fields.
    """

    sections: ClassVar[tuple[tuple[str, tuple[str, ...]], ...]] = ()
    folds: ClassVar[bool] = False

    def differs(self, name: str) -> bool:
        """Return whether the value of a field differs from its default. Forms without marks return False."""
        return False


@dataclass(frozen=True, slots=True)
class ShownField:
    """A field of a section. `proposed`: the value that is used if the field stays empty; empty: nothing is proposed."""

    bound: forms.BoundField
    differs: bool
    proposed: str


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a form. `folds`: it can be closed; `is_open`: it is open at first."""

    heading: str
    folds: bool
    is_open: bool
    fields: list[ShownField] = field(default_factory=list)

    @property
    def differing(self) -> list[str]:
        """Return the labels of the fields whose values differ from their defaults."""
        return [str(shown.bound.label) for shown in self.fields if shown.differs]


def sections_of(
    form: SectionedForm, *, proposed: Mapping[str, str], troubled: Collection[str], is_looked_at: bool
) -> list[Section]:
    """Return the sections that have fields.

    `proposed`: values for empty fields. `troubled`: fields that problems are about. `is_looked_at`: a preview is shown.
    """
    found = []
    for heading, names in form.sections:
        bounds = [form[name] for name in names if name in form.fields]
        begins_closed = heading.startswith("(") or (form.folds and is_looked_at)
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
