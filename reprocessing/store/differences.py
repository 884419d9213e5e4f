"""What a proposal would change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that is not yet what is proposed.

    `of` is the dlq's, the target's or the rule's name; `kind` says which, where several of one name may be told of.
    """

    of: str
    field: str
    before: Any
    after: Any
    kind: str = ""

    @property
    def about(self) -> str:
        """What it is a value of, for people."""
        return f"{self.kind} {self.of}".strip()


def differing(of: str, now: Fields, wanted: Fields) -> list[Difference]:
    """The values that are wanted otherwise than they are now; those that are not there yet, too."""
    return [
        Difference(of, name, now.get(name), value)
        for name, value in wanted.items()
        if name not in now or now[name] != value
    ]
