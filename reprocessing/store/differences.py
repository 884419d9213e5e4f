"""What a proposed change would change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """A value that differs from the proposal."""

    name: str  #: the name of the DLQ, target or rule
    field: str
    before: Any
    after: Any
    kind: str = ""  #: which of these it is, where names may be equal

    @property
    def label(self) -> str:
        """Return what the value belongs to, for people."""
        return f"{self.kind} {self.name}".strip()


def changed_fields(of: str, now: Fields, wanted: Fields) -> list[Difference]:
    """Return the fields whose wanted value is another one than now, or missing now."""
    return [
        Difference(of, name, now.get(name), value)
        for name, value in wanted.items()
        if name not in now or now[name] != value
    ]
