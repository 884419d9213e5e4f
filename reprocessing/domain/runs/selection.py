"""Which letters of a dlq a run was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Selection:
    """What a person asks for; a letter that one of these does not mean is not selected. None, or nothing: any.

    Attributes:
        limit: so many letters at most, the oldest lanes first.
        origin: the name, or the ARN, of the queue they died in.
        died_after: they died then or later.
        died_before: they died before.
        key: their ordering key.
        message_ids: the ids under which they died.
    """

    limit: int | None = None
    origin: str | None = None
    died_after: datetime | None = None
    died_before: datetime | None = None
    key: str | None = None
    message_ids: tuple[str, ...] = ()

    def stored(self, dlq: str) -> dict[str, Any]:
        """Its form in a run of the dlq of this name: what means nothing is left out."""
        more = {
            "origin": self.origin,
            "died_after": self.died_after and self.died_after.isoformat(),
            "died_before": self.died_before and self.died_before.isoformat(),
            "key": self.key,
            "message_ids": list(self.message_ids) or None,
        }
        return {"dlq": dlq, "limit": self.limit} | {name: value for name, value in more.items() if value is not None}

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Selection:
        """The selection in its stored form."""
        after, before = stored.get("died_after"), stored.get("died_before")
        return cls(
            limit=stored.get("limit"),
            origin=stored.get("origin"),
            died_after=datetime.fromisoformat(after) if after else None,
            died_before=datetime.fromisoformat(before) if before else None,
            key=stored.get("key"),
            message_ids=tuple(stored.get("message_ids") or ()),
        )

    def __str__(self) -> str:
        said = [
            f"that died in {self.origin}" if self.origin else "",
            f"that died at {self.died_after.isoformat()} or later" if self.died_after else "",
            f"that died before {self.died_before.isoformat()}" if self.died_before else "",
            f"with the ordering key {self.key}" if self.key is not None else "",
            f"named by message id ({len(self.message_ids)})" if self.message_ids else "",
        ]
        letters = "all letters" if self.limit is None else f"{self.limit} letter{'' if self.limit == 1 else 's'}"
        return " ".join([letters, " and ".join(filter(None, said))]).strip()


#: Every letter that there is.
ALL = Selection()
