"""Compare the values that a person wants for a DLQ, target or rule with its current values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """A field whose current value differs from the proposed value."""

    name: str  #: the name of the DLQ, target or rule that has the field
    field: str
    before: Any
    after: Any
    kind: str = ""  #: such as "source queue", if objects of different kinds may have the same name

    @property
    def label(self) -> str:
        """Return the kind and name of the changed object, to be shown to people."""
        return f"{self.kind} {self.name}".strip()


def changed_fields(of: str, now: Fields, wanted: Fields) -> list[Difference]:
    """Return the fields whose wanted value differs from the current value (`now`), or that have no current value.

    `of`: the name of the DLQ, target or rule that has the fields.
    """
    return [
        Difference(of, name, now.get(name), value)
        for name, value in wanted.items()
        if name not in now or now[name] != value
    ]
